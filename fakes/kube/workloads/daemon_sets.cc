#include "fakes/kube/workloads/daemon_sets.h"

#include <algorithm>

#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "fakes/kube/control/node_fit.h"
#include "fakes/kube/control/pod_template.h"
#include "fakes/kube/workloads/revisions.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

bool AnyReady(const std::vector<ObjectRef>& pods) {
  return std::any_of(pods.begin(), pods.end(), [](const ObjectRef& pod) { return PodReady(*pod); });
}

}  // namespace

DaemonSetController::DaemonSetController(ApiServer& api, const ClusterOptions& options, PodAdmission* admission)
    : api_(api),
      options_(options),
      pending_(api.host()),
      queue_(pending_, [this](const NamespacedName& name) { Sync(name); }),
      maker_(api, admission, pending_),
      availability_(api.host()) {
  subscriptions_.Add(api_.Observe("DaemonSet", [this](const Change& change) {
    if (WantsAnew(change)) queue_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("Node", [this](const Change&) {
    for (const ObjectRef& set : api_.List("DaemonSet")) queue_.Add({set->meta.ns, set->meta.name});
  }));
  subscriptions_.Add(api_.Observe("Pod", [this](const Change& change) {
    const kube::OwnerReference* owner = ControllerOf(*change.object);
    if (owner == nullptr || owner->kind != "DaemonSet") return;
    pods_.Follow(change);
    availability_.Follow(change);
    if (ServesOtherwise(change)) queue_.Add({change.object->meta.ns, owner->name});
  }));
}

bool DaemonSetController::AnyAvailable(const std::vector<ObjectRef>& pods, Duration min_ready) const {
  return std::any_of(pods.begin(), pods.end(),
                     [&](const ObjectRef& pod) { return availability_.Available(*pod, min_ready); });
}

void DaemonSetController::Sync(const NamespacedName& name) {
  const ObjectRef set = api_.Get("DaemonSet", name);
  if (set == nullptr || set->meta.deleting) return;
  const std::string hash = TemplateHash(*set);
  std::set<std::string> live;
  for (const ObjectRef& pod : pods_.Of(api_, *set, "Pod")) {
    if (const auto label = pod->meta.labels.find(kRevisionLabel); label != pod->meta.labels.end())
      live.insert(name.name + "-" + label->second);
  }
  KeepRevision(api_, *set, name.name + "-" + hash, {{kRevisionLabel, hash}}, live);
  Nodes nodes;
  for (const ObjectRef& node : api_.List("Node"))
    nodes[node->meta.name].takes_it = NodeRefuses(*node, At(set->body, {"spec", "template", "spec"}), true).empty();
  for (const ObjectRef& pod : pods_.Of(api_, *set, "Pod")) {
    if (pod->meta.deleting) continue;
    NodePods& there = nodes[Text(At(pod->body, "spec"), "nodeName")];
    const auto label = pod->meta.labels.find(kRevisionLabel);
    (label != pod->meta.labels.end() && label->second == hash ? there.fresh : there.old).push_back(pod);
  }
  const Duration next = availability_.UntilNext(pods_.Of(api_, *set, "Pod"), MinReady(*set));
  if (next > Duration::zero()) pending_.After(next, [this, name] { queue_.Add(name); });
  for (const auto& [node, pods] : nodes) {
    if (!pods.takes_it) {
      Delete(*set, pods.old);
      Delete(*set, pods.fresh);
    } else if (pods.old.empty() && pods.fresh.empty()) {
      Create(*set, node);
    }
  }
  if (Text(At(set->body, {"spec", "updateStrategy"}), "type") != "OnDelete") Replace(*set, nodes);
  WriteStatus(*set, nodes);
}

// A rolling change: with a surge the new pod comes first, without one the old pod goes first; either on as many nodes
// at a time as the strategy allows.
void DaemonSetController::Replace(const kube::Object& set, const Nodes& nodes) {
  const json& rolling = At(set.body, {"spec", "updateStrategy", "rollingUpdate"});
  const Duration min_ready = MinReady(set);
  int64_t wanted = 0, without = 0, surging = 0;
  for (const auto& [node, pods] : nodes) {
    if (!pods.takes_it) continue;
    ++wanted;
    without += AnyAvailable(pods.old, min_ready) || AnyAvailable(pods.fresh, min_ready) ? 0 : 1;
    surging +=
        !pods.old.empty() && (!pods.fresh.empty() || being_made_.count({{set.meta.ns, set.meta.name}, node})) ? 1 : 0;
  }
  const int64_t surge = rolling.contains("maxSurge") ? Quota(rolling["maxSurge"], wanted, true) : 0;
  const int64_t unavailable = rolling.contains("maxUnavailable") ? Quota(rolling["maxUnavailable"], wanted, true) : 1;
  int64_t may_surge = surge - surging, may_go = surge > 0 ? 0 : std::max<int64_t>(unavailable, 1) - without;
  for (const auto& [node, pods] : nodes) {
    if (!pods.takes_it || pods.old.empty()) continue;
    if (AnyAvailable(pods.fresh, min_ready) || !AnyAvailable(pods.old, min_ready)) {
      Delete(set, pods.old);  // it serves nobody, or somebody else does already
    } else if (surge > 0 && pods.fresh.empty()) {
      if (may_surge-- > 0) Create(set, node);
    } else if (may_go-- > 0) {
      Delete(set, pods.old);
    }
  }
}

void DaemonSetController::Delete(const kube::Object& set, const std::vector<ObjectRef>& pods) {
  for (const ObjectRef& pod : pods) {
    if (api_.Delete("Pod", {pod->meta.ns, pod->meta.name}).ok()) TellDeleted(api_, set, pod->meta.name);
  }
}

void DaemonSetController::Create(const kube::Object& set, const std::string& node) {
  const NamespacedName name{set.meta.ns, set.meta.name};
  if (!being_made_.insert({name, node}).second) return;
  json pod = PodOfTemplate(At(set.body, {"spec", "template"}), set,
                           name.name + "-" + GeneratedSuffix(options_.name, options_.seed, name, made_[name]++));
  pod["metadata"]["labels"][kRevisionLabel] = TemplateHash(set);
  pod["spec"]["nodeName"] = node;
  maker_.Make({.pod = std::move(pod),
               .owner_kind = "DaemonSet",
               .owner = name,
               .wanted = [](const kube::Object&) { return true; },
               .done =
                   [this, name, node](bool) {
                     const size_t was_made = being_made_.erase({name, node});
                     WAVETANK_ASSERT(was_made == 1, name.ns, name.name, node);  // done is called once
                     // One that is there is told of before it is ready.
                     queue_.Add(name);
                   }});
}

void DaemonSetController::WriteStatus(const kube::Object& set, const Nodes& nodes) {
  int64_t wanted = 0, there = 0, misplaced = 0, ready = 0, available = 0, updated = 0;
  const Duration min_ready = MinReady(set);
  for (const auto& [node, pods] : nodes) {
    const bool any = !pods.old.empty() || !pods.fresh.empty();
    if (!pods.takes_it) {
      misplaced += any ? 1 : 0;
      continue;
    }
    ++wanted;
    there += any ? 1 : 0;
    ready += AnyReady(pods.old) || AnyReady(pods.fresh) ? 1 : 0;
    available += AnyAvailable(pods.old, min_ready) || AnyAvailable(pods.fresh, min_ready) ? 1 : 0;
    updated += pods.fresh.empty() ? 0 : 1;
  }
  WAVETANK_ASSERT(ready <= there, ready, there);
  WAVETANK_ASSERT(available <= wanted, available, wanted);
  WAVETANK_ASSERT(there <= wanted, there, wanted);
  api_.Patch("DaemonSet", {set.meta.ns, set.meta.name},
             {{"status",
               {{"desiredNumberScheduled", wanted},
                {"currentNumberScheduled", there},
                {"numberMisscheduled", misplaced},
                {"numberReady", ready},
                {"numberAvailable", available},
                {"numberUnavailable", wanted - available},
                {"updatedNumberScheduled", updated},
                {"observedGeneration", set.meta.generation}}}})
      .IgnoreError();
}

}  // namespace wavetank::fakekube
