#include "fakes/kube/workloads/replication_controllers.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "fakes/kube/control/pod_template.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kManaged = "ReplicationController";

// Whether a pod has all of these labels.
bool HasLabels(const kube::Object& pod, const json& labels) {
  if (!labels.is_object()) return true;
  for (const auto& [key, value] : labels.items()) {
    const auto label = pod.meta.labels.find(key);
    if (label == pod.meta.labels.end() || value != label->second) return false;
  }
  return true;
}

bool Takes(const kube::Object& controller, const kube::Object& pod) {
  const json& selector = At(controller.body, {"spec", "selector"});
  return selector.is_object() && !selector.empty() && HasLabels(pod, selector);
}

}  // namespace

ReplicationManager::ReplicationManager(ApiServer& api, const ClusterOptions& options, PodAdmission* admission)
    : api_(api),
      options_(options),
      pending_(api.host()),
      queue_(pending_, [this](const NamespacedName& name) { Sync(name); }),
      maker_(api, admission, pending_),
      availability_(api.host()) {
  subscriptions_.Add(api_.Observe(kManaged, [this](const Change& change) {
    if (WantsAnew(change)) queue_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("Pod", [this](const Change& change) {
    pods_.Follow(change);
    const kube::OwnerReference* owner = ControllerOf(*change.object);
    const bool relabelled = change.previous != nullptr && change.previous->meta.labels != change.object->meta.labels;
    if (owner == nullptr) {
      // Somebody may take it.
      for (const ObjectRef& each : api_.List(kManaged, change.object->meta.ns)) {
        if (Takes(*each, *change.object)) queue_.Add({each->meta.ns, each->meta.name});
      }
      return;
    }
    if (owner->kind != kManaged) return;
    availability_.Follow(change);
    const bool ended = HasEnded(change.object->body);
    if (relabelled || ended || ServesOtherwise(change)) queue_.Add({change.object->meta.ns, owner->name});
  }));
}

void ReplicationManager::Claim(const kube::Object& controller) {
  for (const ObjectRef& pod : pods_.Of(api_, controller, "Pod")) {
    if (Takes(controller, *pod)) continue;
    api_.Patch("Pod", {pod->meta.ns, pod->meta.name}, {{"metadata", {{"ownerReferences", nullptr}}}}).IgnoreError();
  }
  for (const ObjectRef& pod : api_.List("Pod", controller.meta.ns)) {
    if (ControllerOf(*pod) != nullptr || pod->meta.deleting || HasEnded(pod->body) || !Takes(controller, *pod))
      continue;
    json owners = At(pod->body, {"metadata", "ownerReferences"});
    if (!owners.is_array()) owners = json::array();
    owners.push_back(OwnedBy(controller).front());
    api_.Patch("Pod", {pod->meta.ns, pod->meta.name}, {{"metadata", {{"ownerReferences", std::move(owners)}}}})
        .IgnoreError();
  }
}

void ReplicationManager::Sync(const NamespacedName& name) {
  const ObjectRef controller = api_.Get(kManaged, name);
  if (controller == nullptr || controller->meta.deleting) return;
  Claim(*controller);
  std::vector<ObjectRef> pods = pods_.Of(api_, *controller, "Pod");
  std::erase_if(pods, [](const ObjectRef& pod) { return pod->meta.deleting || HasEnded(pod->body); });
  if (const Duration next = availability_.UntilNext(pods, MinReady(*controller)); next > Duration::zero())
    pending_.After(next, [this, name] { queue_.Add(name); });
  const int64_t wanted = Replicas(*controller);
  for (int64_t have = static_cast<int64_t>(pods.size()) + being_made_[name]; have < wanted; ++have) Create(controller);
  WriteStatus(*controller, pods);
  if (static_cast<int64_t>(pods.size()) > wanted) DeleteBeyond(*controller, std::move(pods), wanted);
}

void ReplicationManager::DeleteBeyond(const kube::Object& controller, std::vector<ObjectRef> pods, int64_t wanted) {
  // Those that are not ready go first, then the youngest.
  std::stable_sort(pods.begin(), pods.end(), [](const ObjectRef& a, const ObjectRef& b) {
    if (PodReady(*a) != PodReady(*b)) return PodReady(*b);
    return a->meta.resource_version > b->meta.resource_version;
  });
  for (size_t i = 0; static_cast<int64_t>(pods.size() - i) > wanted; ++i) {
    if (api_.Delete("Pod", {controller.meta.ns, pods[i]->meta.name}).ok())
      TellDeleted(api_, controller, pods[i]->meta.name);
  }
}

void ReplicationManager::Create(const ObjectRef& controller) {
  const NamespacedName name{controller->meta.ns, controller->meta.name};
  const std::string suffix = GeneratedSuffix(options_.name, options_.seed, name, ordinals_[name]++);
  ++being_made_[name];
  maker_.Make({.pod = PodOfTemplate(At(controller->body, {"spec", "template"}), *controller, name.name + "-" + suffix),
               .owner_kind = kManaged,
               .owner = name,
               .wanted = [](const kube::Object& owner) { return Replicas(owner) > 0; },
               .done =
                   [this, name](bool) {
                     const int64_t left = --being_made_[name];
                     WAVETANK_ASSERT(left >= 0, name.ns, name.name, left);  // done is called once
                     if (left == 0) queue_.Add(name);
                   }});
}

void ReplicationManager::WriteStatus(const kube::Object& controller, const std::vector<ObjectRef>& pods) {
  const json& labels = At(controller.body, {"spec", "template", "metadata", "labels"});
  int64_t labelled = 0, ready = 0, available = 0;
  for (const ObjectRef& pod : pods) {
    labelled += HasLabels(*pod, labels) ? 1 : 0;
    ready += PodReady(*pod) ? 1 : 0;
    available += availability_.Available(*pod, MinReady(controller)) ? 1 : 0;
  }
  WAVETANK_ASSERT(available <= ready, available, ready);
  api_.Patch(kManaged, {controller.meta.ns, controller.meta.name},
             JsonObject("status",
                        JsonObject("replicas", pods.size(), "fullyLabeledReplicas", labelled, "readyReplicas", ready,
                                   "availableReplicas", available, "observedGeneration", controller.meta.generation)))
      .IgnoreError();
}

}  // namespace wavetank::fakekube
