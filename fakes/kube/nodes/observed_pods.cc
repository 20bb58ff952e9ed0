#include "fakes/kube/nodes/observed_pods.h"

#include <utility>

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

std::string StatusText(const kube::Object& pod, const char* field) {
  const auto status = pod.body.find("status");
  if (status == pod.body.end() || !status->is_object()) return {};
  const auto it = status->find(field);
  return it != status->end() && it->is_string() ? it->get<std::string>() : std::string();
}

// Such a pod has its node's address, and shares it with others.
bool OnHostNetwork(const kube::Object& pod) {
  const auto spec = pod.body.find("spec");
  if (spec == pod.body.end() || !spec->is_object()) return false;
  const auto it = spec->find("hostNetwork");
  return it != spec->end() && it->is_boolean() && it->get<bool>();
}

}  // namespace

ObservedPods::ObservedPods(ApiServer& api, PodRuntime* runtime) : runtime_(runtime) {
  if (runtime_ == nullptr) return;
  subscriptions_.Add(api.Observe("Pod", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted) {
      End(change.object);
    } else {
      Follow(change.object);
    }
  }));
}

void ObservedPods::Follow(const ObjectRef& pod) {
  const NamespacedName name{pod->meta.ns, pod->meta.name};
  const Life life{pod->meta.uid, StatusText(*pod, "podIP"), pod->meta.deleting};
  const bool runs = StatusText(*pod, "phase") == "Running" && !life.ip.empty() && !OnHostNetwork(*pod);
  const auto known = running_.find(name);
  if (known != running_.end()) {
    Life& before = known->second;
    if (!runs || before.uid != life.uid || before.ip != life.ip) {
      End(pod);
    } else {
      if (life.terminating && !before.terminating) {
        starting_.erase(name);
        runtime_->Terminate(pod);
      }
      before = life;
      runtime_->Restated(pod);
      return;
    }
  }
  if (!runs) return;
  running_[name] = life;
  starting_.insert(name);
  runtime_->Start(pod, [this, name, uid = life.uid](bool ready) {
    if (ready_) return ready_(name, uid, ready);
    if (ready) starting_.erase(name);
  });
  if (life.terminating) {
    starting_.erase(name);
    runtime_->Terminate(pod);
  }
}

void ObservedPods::HandOver(Ready ready) {
  subscriptions_.Clear();
  starting_.clear();
  ready_ = std::move(ready);
}

void ObservedPods::End(const ObjectRef& pod) {
  const NamespacedName name{pod->meta.ns, pod->meta.name};
  if (running_.erase(name) == 0) return;
  starting_.erase(name);
  runtime_->Remove(pod);
}

}  // namespace wavetank::fakekube
