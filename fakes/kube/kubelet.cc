#include "fakes/kube/kubelet.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/kube/time_format.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

std::string DateNow(Host& host) {
  return kube::FormatRfc3339(kWorldEpochUnixSeconds + host.Now().time_since_epoch() / std::chrono::seconds(1));
}

json Conditions(bool ready) {
  const char* text = ready ? "True" : "False";
  return json::array({{{"type", "Initialized"}, {"status", "True"}},
                      {{"type", "Ready"}, {"status", text}},
                      {{"type", "ContainersReady"}, {"status", text}},
                      {{"type", "PodScheduled"}, {"status", "True"}}});
}

}  // namespace

Kubelet::Kubelet(ApiServer& api, const ClusterOptions& options, PodRuntime* runtime)
    : api_(api),
      options_(options),
      runtime_(runtime),
      pending_(api.host()),
      jitter_(options.seed, "kubelet/" + options.name) {
  api_.Observe("Pod", [this](const Change& change) {
    const NamespacedName name{change.object->meta.ns, change.object->meta.name};
    switch (change.type) {
      case kube::WatchEventType::kAdded:
        starting_.insert(name);
        pending_.After(options_.schedule, [this, name] { Schedule(name); });
        break;
      case kube::WatchEventType::kModified:
        if (change.object->meta.deleting && !change.previous->meta.deleting) Terminate(change.object);
        break;
      case kube::WatchEventType::kDeleted:
        starting_.erase(name);
        used_ips_.erase(change.object->body["status"].value("podIP", ""));
        if (runtime_ != nullptr) runtime_->Remove(change.object);
        break;
      case kube::WatchEventType::kBookmark:
        break;
    }
  });
}

std::string Kubelet::AllocateIp(std::string_view key) {
  const std::string network = options_.pod_cidr.substr(0, options_.pod_cidr.find('.', options_.pod_cidr.find('.') + 1));
  for (uint64_t attempt = 0;; ++attempt) {
    const uint64_t draw = HashName(key, attempt) % 65024 + 256;
    if ((draw & 0xff) == 0 || (draw & 0xff) == 255) continue;
    std::string ip = fmt::format("{}.{}.{}", network, draw >> 8, draw & 0xff);
    if (used_ips_.insert(ip).second) return ip;
  }
}

void Kubelet::Schedule(const NamespacedName& name) {
  const ObjectRef pod = api_.Get("Pod", name);
  if (pod == nullptr || pod->meta.deleting) return;
  std::string node = pod->body["spec"].value("nodeName", "");
  if (node.empty()) {
    // Round robin over the nodes: a spread that a person can foresee.
    node = options_.nodes.empty() ? "node1" : options_.nodes[scheduled_++ % options_.nodes.size()].name;
    api_.Patch("Pod", name, {{"spec", {{"nodeName", node}}}}).IgnoreError();
  }
  pending_.After(options_.container_start, [this, name, uid = pod->meta.uid] { Run(name, uid); });
}

void Kubelet::Run(const NamespacedName& name, const std::string& uid) {
  const ObjectRef pod = api_.Get("Pod", name);
  if (pod == nullptr || pod->meta.uid != uid || pod->meta.deleting) return;
  std::string ip = pod->body["status"].value("podIP", "");
  if (ip.empty()) ip = AllocateIp(name.ns + "/" + name.name);
  absl::StatusOr<ObjectRef> running = api_.Patch("Pod", name,
                                                 {{"status",
                                                   {{"phase", "Running"},
                                                    {"podIP", ip},
                                                    {"podIPs", json::array({{{"ip", ip}}})},
                                                    {"startTime", DateNow(api_.host())},
                                                    {"conditions", Conditions(false)}}}});
  if (!running.ok()) return;
  const Duration delay =
      options_.readiness + Duration(jitter_.Between(0, std::max<int64_t>(options_.readiness_jitter.count(), 0)));
  if (runtime_ == nullptr) {
    pending_.After(delay, [this, name, uid] { SetReady(name, uid, true); });
    return;
  }
  // The pod's own start-up, then its readiness probe.
  runtime_->Start(*running, [this, name, uid, delay](bool ready) {
    pending_.After(ready ? delay : Duration::zero(), [this, name, uid, ready] { SetReady(name, uid, ready); });
  });
}

void Kubelet::SetReady(const NamespacedName& name, const std::string& uid, bool ready) {
  const ObjectRef pod = api_.Get("Pod", name);
  if (pod == nullptr || pod->meta.uid != uid || pod->meta.deleting) return;
  if (ready) starting_.erase(name);
  api_.Patch("Pod", name, {{"status", {{"conditions", Conditions(ready)}}}}).IgnoreError();
}

void Kubelet::Terminate(const ObjectRef& pod) {
  const NamespacedName name{pod->meta.ns, pod->meta.name};
  starting_.erase(name);
  if (runtime_ != nullptr) runtime_->Terminate(pod);
  const int64_t grace = pod->body["spec"].value("terminationGracePeriodSeconds", int64_t{30});
  // Processes that heed SIGTERM are gone long before the grace period ends.
  const Duration delay = std::min<Duration>(options_.termination, std::chrono::seconds(std::max<int64_t>(grace, 0)));
  pending_.After(delay, [this, name, uid = pod->meta.uid] {
    const ObjectRef now = api_.Get("Pod", name);
    if (now != nullptr && now->meta.uid == uid) api_.Finalize("Pod", name).IgnoreError();
  });
}

}  // namespace wavetank::fakekube
