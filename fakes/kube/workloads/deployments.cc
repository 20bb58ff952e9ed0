#include "fakes/kube/workloads/deployments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/assert.h"
#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "fakes/kube/control/pod_template.h"
#include "fakes/kube/objects/conditions.h"
#include "fakes/kube/objects/one_more.h"
#include "fakes/kube/store/event_store.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// Counts a Deployment's templates, as `kubectl rollout history` and `undo` read it off its ReplicaSets.
constexpr const char* kRevision = "deployment.kubernetes.io/revision";
// Which it had before, of a ReplicaSet whose template was the wanted one more than once.
constexpr const char* kRevisionHistory = "deployment.kubernetes.io/revision-history";

int64_t RevisionOf(const kube::Object& set) {
  const auto it = set.meta.annotations.find(kRevision);
  return it == set.meta.annotations.end() ? 0 : std::strtoll(it->second.c_str(), nullptr, 10);
}

// Those of a Deployment's annotations that its ReplicaSet takes over, its change-cause above all (kubernetes:
// pkg/controller/deployment/util, SetNewReplicaSetAnnotations).
json HandedOn(const kube::Object& deployment) {
  json out = json::object();
  for (const auto& [key, value] : deployment.meta.annotations) {
    if (key != "kubectl.kubernetes.io/last-applied-configuration" && key.rfind("deployment.kubernetes.io/", 0) != 0)
      out[key] = value;
  }
  return out;
}

// Go leaves a count of none out.
json SomeOrNone(int64_t count) { return count == 0 ? json() : json(count); }

// One that says the same stays as it is, times and all (kubernetes: pkg/controller/deployment/util,
// SetDeploymentCondition()).
json ConditionSaying(const json& before, const char* type, bool holds, const char* reason, std::string message,
                     const std::string& now) {
  const json& old = ConditionOf(before, type);
  const char* const status = holds ? "True" : "False";
  if (At(old, "status") == status && At(old, "reason") == reason) return old;
  return JsonObject("type", type, "status", status, "reason", reason, "message", std::move(message), "lastUpdateTime",
                    now, "lastTransitionTime", SinceWhen(old, status, now));
}

bool HasTemplate(const kube::Object& set, std::string_view hash) {
  const auto label = set.meta.labels.find("pod-template-hash");
  return label != set.meta.labels.end() && label->second == hash;
}

}  // namespace

DeploymentController::DeploymentController(ApiServer& api, const ClusterOptions& options, PodAdmission* admission)
    : api_(api),
      options_(options),
      pending_(api.host()),
      deployments_(pending_, [this](const NamespacedName& name) { SyncDeployment(name); }),
      annotated_(pending_, [this](const NamespacedName& name) { HandOnAnnotations(name); }),
      sets_(pending_, [this](const NamespacedName& name) { SyncReplicaSet(name); }),
      maker_(api, admission, pending_),
      availability_(api.host()) {
  subscriptions_.Add(api_.Observe("Deployment", [this](const Change& change) {
    const ObjectRef& before = change.previous;
    // A change of what is wanted is seen to below.
    if (before == nullptr || before->meta.generation != change.object->meta.generation) return;
    if (change.type == kube::WatchEventType::kDeleted) return;
    // Mostly it is a report of status.
    if (before->meta.annotations == change.object->meta.annotations) return;
    if (HandedOn(*before) == HandedOn(*change.object)) return;
    annotated_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("Deployment", [this](const Change& change) {
    if (WantsAnew(change)) deployments_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("ReplicaSet", [this](const Change& change) {
    replica_sets_.Follow(change);
    if (WantsAnew(change)) sets_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("Pod", [this](const Change& change) {
    pods_.Follow(change);
    const kube::OwnerReference* owner = ControllerOf(*change.object);
    if (owner == nullptr || owner->kind != "ReplicaSet") return;
    availability_.Follow(change);
    // A ReplicaSet has counted on the pods that it makes.
    const bool made = change.type == kube::WatchEventType::kAdded;
    if (!made && ServesOtherwise(change)) sets_.Add({change.object->meta.ns, owner->name});
  }));
}

void DeploymentController::HandOnAnnotations(const NamespacedName& name) {
  const ObjectRef deployment = api_.Get("Deployment", name);
  if (deployment == nullptr) return;
  const std::string hash = TemplateHash(*deployment);
  for (const ObjectRef& set : ReplicaSetsOf(*deployment)) {
    if (!HasTemplate(*set, hash)) continue;
    api_.Patch("ReplicaSet", {name.ns, set->meta.name}, {{"metadata", {{"annotations", HandedOn(*deployment)}}}})
        .IgnoreError();
  }
}

// What a Deployment wants and what it has.
struct DeploymentController::Rollout {
  ObjectRef deployment;
  NamespacedName name;
  std::string hash;   // of the wanted template
  ObjectRef current;  // the set with that template; null: there is none yet
  std::vector<ObjectRef> old;
  int64_t wanted = 0, old_replicas = 0;
  int64_t revision = 1;  // of the wanted template
  bool recreate = false;
  int64_t surge = 0, unavailable = 0;
};

DeploymentController::Rollout DeploymentController::Look(const ObjectRef& deployment) const {
  Rollout out;
  out.deployment = deployment;
  out.name = {deployment->meta.ns, deployment->meta.name};
  out.hash = TemplateHash(*deployment);
  out.wanted = Replicas(*deployment);
  for (const ObjectRef& set : ReplicaSetsOf(*deployment)) {
    if (HasTemplate(*set, out.hash)) {
      out.current = set;
    } else {
      out.old.push_back(set);
      out.old_replicas += Replicas(*set);
      out.revision = std::max(out.revision, OneMore(RevisionOf(*set)));
    }
  }
  const json& strategy = At(deployment->body, {"spec", "strategy"});
  out.recreate = Text(strategy, "type") == "Recreate";
  const json &surge = At(strategy, {"rollingUpdate", "maxSurge"}),
             &unavailable = At(strategy, {"rollingUpdate", "maxUnavailable"});
  out.surge = Quota(surge.is_null() ? json("25%") : surge, out.wanted, true);
  out.unavailable = Quota(unavailable.is_null() ? json("25%") : unavailable, out.wanted, false);
  if (out.surge == 0 && out.unavailable == 0) out.unavailable = 1;
  return out;
}

void DeploymentController::CreateSet(const Rollout& rollout) {
  const json& spec = At(rollout.deployment->body, "spec");
  json set_template = At(spec, "template");
  if (!set_template.is_object()) set_template = json::object();
  json labels = At(set_template, {"metadata", "labels"});
  if (!labels.is_object()) labels = json::object();
  labels["pod-template-hash"] = rollout.hash;
  if (!At(set_template, "metadata").is_object()) set_template["metadata"] = json::object();
  set_template["metadata"]["labels"] = labels;
  json selector = At(spec, "selector");
  if (!selector.is_object()) selector = json::object();
  if (!At(selector, "matchLabels").is_object()) selector["matchLabels"] = json::object();
  selector["matchLabels"]["pod-template-hash"] = rollout.hash;
  // Recreate: nothing new before the last old pod is gone.
  const int64_t first = rollout.recreate            ? (OldPods(rollout.old) == 0 ? rollout.wanted : 0)
                        : rollout.old_replicas == 0 ? rollout.wanted
                                                    : std::clamp(rollout.wanted + rollout.surge - rollout.old_replicas,
                                                                 int64_t{0}, rollout.wanted);
  json set_spec = {{"replicas", first}, {"selector", std::move(selector)}, {"template", std::move(set_template)}};
  if (spec.contains("minReadySeconds")) set_spec["minReadySeconds"] = spec["minReadySeconds"];
  WAVETANK_ASSERT(first >= 0, first, rollout.wanted);
  WAVETANK_ASSERT(first <= rollout.wanted, first, rollout.wanted);
  json annotations = HandedOn(*rollout.deployment);
  annotations[kRevision] = std::to_string(rollout.revision);
  const absl::StatusOr<ObjectRef> made = api_.Create({{"apiVersion", "apps/v1"},
                                                      {"kind", "ReplicaSet"},
                                                      {"metadata",
                                                       {{"name", rollout.name.name + "-" + rollout.hash},
                                                        {"namespace", rollout.name.ns},
                                                        {"labels", labels},
                                                        {"annotations", std::move(annotations)},
                                                        {"ownerReferences", OwnedBy(*rollout.deployment)}}},
                                                      {"spec", std::move(set_spec)}});
  if (made.ok() && first > 0) TellScaled(**made, "up", std::to_string(first));
  if (!rollout.old.empty()) deployments_.Add(rollout.name);
}

// kubernetes: pkg/controller/deployment/sync.go.
void DeploymentController::TellScaled(const kube::Object& set, const char* way, const std::string& to) {
  EventStore* events = api_.listening();
  const kube::OwnerReference* owner = events == nullptr ? nullptr : ControllerOf(set);
  const ObjectRef deployment = owner == nullptr ? nullptr : api_.Get("Deployment", {set.meta.ns, owner->name});
  if (deployment == nullptr) return;
  events->Tell(*deployment, {.component = "deployment-controller",
                             .reason = "ScalingReplicaSet",
                             .message = fmt::format("Scaled {} replica set {} to {}", way, set.meta.name, to)});
}

void DeploymentController::Scale(const ObjectRef& set, int64_t replicas) {
  WAVETANK_ASSERT(set != nullptr);
  WAVETANK_ASSERT(replicas >= 0, replicas);
  const int64_t before = Replicas(*set);
  if (before == replicas) return;
  if (!api_.Patch("ReplicaSet", {set->meta.ns, set->meta.name}, {{"spec", {{"replicas", replicas}}}}).ok()) return;
  TellScaled(*set, replicas > before ? "up" : "down", fmt::format("{} from {}", replicas, before));
}

void DeploymentController::SyncDeployment(const NamespacedName& name) {
  const ObjectRef deployment = api_.Get("Deployment", name);
  // One that is going waits for its dependents, and makes no more.
  if (deployment == nullptr || deployment->meta.deleting) return;
  const Rollout rollout = Look(deployment);
  if (rollout.current == nullptr) return CreateSet(rollout);
  const kube::Object& current = *rollout.current;
  if (const int64_t was = RevisionOf(current); was < rollout.revision) {  // a template of old is the wanted one again
    json annotations = {{kRevision, std::to_string(rollout.revision)}};
    if (was > 0) {
      const auto before = current.meta.annotations.find(kRevisionHistory);
      annotations[kRevisionHistory] =
          before == current.meta.annotations.end() ? std::to_string(was) : fmt::format("{},{}", before->second, was);
    }
    api_.Patch("ReplicaSet", {name.ns, current.meta.name}, {{"metadata", {{"annotations", std::move(annotations)}}}})
        .IgnoreError();
  }
  if (const Duration min_ready = MinReady(*deployment); MinReady(current) != min_ready) {
    api_.Patch("ReplicaSet", {name.ns, current.meta.name},
               {{"spec", {{"minReadySeconds", std::chrono::duration_cast<std::chrono::seconds>(min_ready).count()}}}})
        .IgnoreError();
  }
  // A change of the spec that scales nothing is seen all the same.
  if (rollout.old_replicas == 0 && Replicas(current) == rollout.wanted &&
      Number(At(deployment->body, "status"), "observedGeneration") < deployment->meta.generation) {
    api_.Patch("Deployment", name, {{"status", {{"observedGeneration", deployment->meta.generation}}}}).IgnoreError();
  }
  if (rollout.recreate) {
    for (const ObjectRef& set : rollout.old) Scale(set, 0);
    if (OldPods(rollout.old) == 0) Scale(rollout.current, rollout.wanted);
    return;
  }
  if (rollout.old_replicas == 0 || Replicas(current) > rollout.wanted) return Scale(rollout.current, rollout.wanted);
  // A rolling change (kubernetes: pkg/controller/deployment/rolling.go). First the new set grows into what surge
  // allows; a later round, when that is under way, shrinks the old ones by what availability allows.
  const int64_t room = rollout.wanted + rollout.surge - rollout.old_replicas - Replicas(current);
  if (room > 0 && Replicas(current) < rollout.wanted)
    return Scale(rollout.current, std::min(rollout.wanted, Replicas(current) + room));
  ShrinkOld(rollout);
}

void DeploymentController::ShrinkOld(const Rollout& rollout) {
  const Duration min_ready = MinReady(*rollout.deployment);
  const auto available_pods = [&](const ObjectRef& set) {
    int64_t available = 0;
    for (const ObjectRef& pod : PodsOf(*set))
      available += !pod->meta.deleting && availability_.Available(*pod, min_ready) ? 1 : 0;
    return available;
  };
  const int64_t least = rollout.wanted - rollout.unavailable, new_ready = available_pods(rollout.current),
                new_replicas = Replicas(*rollout.current);
  // New pods that are not available yet count as lost already.
  int64_t budget = rollout.old_replicas + new_replicas - least - (new_replicas - new_ready);
  if (budget <= 0) return;
  std::map<std::string, int64_t> left, ready;  // by name of the old set
  int64_t all_ready = new_ready;
  for (const ObjectRef& set : rollout.old) {
    left[set->meta.name] = Replicas(*set);
    all_ready += ready[set->meta.name] = available_pods(set);
  }
  // Those that serve nobody go first: losing them costs no availability.
  for (const ObjectRef& set : rollout.old) {
    const int64_t broken = std::max<int64_t>(left[set->meta.name] - ready[set->meta.name], 0);
    const int64_t less = std::min(budget, broken);
    left[set->meta.name] -= less;
    budget -= less;
  }
  int64_t healthy = std::min(budget, all_ready - least);
  for (const ObjectRef& set : rollout.old) {
    const int64_t less = std::clamp<int64_t>(healthy, 0, left[set->meta.name]);
    left[set->meta.name] -= less;
    healthy -= less;
  }
  for (const ObjectRef& set : rollout.old) Scale(set, left[set->meta.name]);
}

// Pods of these sets, those on their way out included.
int64_t DeploymentController::OldPods(const std::vector<ObjectRef>& sets) const {
  int64_t pods = 0;
  for (const ObjectRef& set : sets) pods += static_cast<int64_t>(PodsOf(*set).size());
  return pods;
}

void DeploymentController::SyncReplicaSet(const NamespacedName& name) {
  const ObjectRef set = api_.Get("ReplicaSet", name);
  if (set == nullptr) return;
  std::vector<ObjectRef> pods;
  int64_t ready = 0, available = 0;
  const Duration min_ready = MinReady(*set);
  for (ObjectRef& pod : PodsOf(*set)) {
    if (pod->meta.deleting) continue;
    ready += PodReady(*pod) ? 1 : 0;
    available += availability_.Available(*pod, min_ready) ? 1 : 0;
    pods.push_back(std::move(pod));
  }
  if (const Duration next = availability_.UntilNext(pods, min_ready); next > Duration::zero())
    pending_.After(next, [this, name] { sets_.Add(name); });
  const int64_t wanted = Replicas(*set);
  const int64_t have = static_cast<int64_t>(pods.size()) + being_made_[name];
  for (int64_t i = have; i < wanted && !set->meta.deleting; ++i) CreatePod(set);
  if (have > wanted) {
    // Those that are not ready go first, then the youngest.
    std::stable_sort(pods.begin(), pods.end(), [](const ObjectRef& a, const ObjectRef& b) {
      if (PodReady(*a) != PodReady(*b)) return PodReady(*b);
      return a->meta.resource_version > b->meta.resource_version;
    });
    for (int64_t i = wanted; i < static_cast<int64_t>(pods.size()); ++i) {
      const std::string& pod = pods[static_cast<size_t>(i - wanted)]->meta.name;
      if (api_.Delete("Pod", {name.ns, pod}).ok()) TellDeleted(api_, *set, pod);
    }
  }
  json status = JsonObject("replicas", pods.size(), "fullyLabeledReplicas", SomeOrNone(pods.size()), "readyReplicas",
                           SomeOrNone(ready), "availableReplicas", SomeOrNone(available), "observedGeneration",
                           set->meta.generation);
  api_.Patch("ReplicaSet", name, JsonObject("status", std::move(status))).IgnoreError();
  const kube::OwnerReference* owner = ControllerOf(*set);
  if (owner == nullptr) return;
  WriteDeploymentStatus({name.ns, owner->name});
}

void DeploymentController::WriteDeploymentStatus(const NamespacedName& name) {
  const ObjectRef deployment = api_.Get("Deployment", name);
  if (deployment == nullptr) return;
  int64_t all = 0, all_ready = 0, all_available = 0, updated = 0, revision = 0, sets_want = 0;
  const Rollout rollout = Look(deployment);
  const std::string& hash = rollout.hash;
  for (const ObjectRef& sibling : ReplicaSetsOf(*deployment)) {
    const json& sibling_status = At(sibling->body, "status");
    sets_want += Replicas(*sibling);
    all += Number(sibling_status, "replicas");
    if (HasTemplate(*sibling, hash)) {
      updated += Number(sibling_status, "replicas");
      revision = RevisionOf(*sibling);
    }
    all_ready += Number(sibling_status, "readyReplicas");
    all_available += Number(sibling_status, "availableReplicas");
  }
  // kubernetes: pkg/controller/deployment/sync.go, calculateStatus; util, DeploymentComplete.
  const int64_t all_wanted = Replicas(*deployment);
  const bool available = all_available >= all_wanted - rollout.unavailable,
             complete = all_available == all_wanted && updated == all_wanted && all == all_wanted;
  const json& before = At(deployment->body, {"status", "conditions"});
  const std::string now = api_.DateNow();
  const std::string current = rollout.current == nullptr ? name.name : rollout.current->meta.name;
  json conditions = json::array();
  conditions.push_back(ConditionSaying(
      before, "Available", available, available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
      available ? "Deployment has minimum availability." : "Deployment does not have minimum availability.", now));
  conditions.push_back(ConditionSaying(
      before, "Progressing", true, complete ? "NewReplicaSetAvailable" : "ReplicaSetUpdated",
      fmt::format("ReplicaSet \"{}\" {}", current, complete ? "has successfully progressed." : "is progressing."),
      now));
  json status =
      JsonObject("replicas", SomeOrNone(all), "readyReplicas", SomeOrNone(all_ready), "availableReplicas",
                 SomeOrNone(all_available), "unavailableReplicas",
                 SomeOrNone(std::max<int64_t>(0, sets_want - all_available)), "updatedReplicas", SomeOrNone(updated),
                 "observedGeneration", deployment->meta.generation, "conditions", std::move(conditions));
  json change = JsonObject("status", std::move(status));
  // `kubectl rollout undo` replaces the annotations, and so wants some.
  if (revision > 0 && RevisionOf(*deployment) != revision)
    change["metadata"]["annotations"][kRevision] = std::to_string(revision);
  api_.Patch("Deployment", name, std::move(change)).IgnoreError();
  if (complete) DropOldSets(*deployment, hash);
  // A rolling change goes on when pods became available.
  if (ReplicaSetsOf(*deployment).size() > 1) deployments_.Add(name);
}

// kubernetes: pkg/controller/deployment/sync.go, cleanupDeployment.
void DeploymentController::DropOldSets(const kube::Object& deployment, const std::string& hash) {
  std::vector<ObjectRef> old = ReplicaSetsOf(deployment);
  std::erase_if(old, [&](const ObjectRef& set) {
    return HasTemplate(*set, hash) || set->meta.deleting || Replicas(*set) != 0 ||
           Number(At(set->body, "status"), "replicas") != 0;
  });
  const size_t gone = BeyondLimit(old.size(), At(deployment.body, {"spec", "revisionHistoryLimit"}), 10);
  if (gone == 0) return;
  std::stable_sort(old.begin(), old.end(),
                   [](const ObjectRef& a, const ObjectRef& b) { return RevisionOf(*a) < RevisionOf(*b); });
  for (size_t i = 0; i < gone; ++i) api_.Delete("ReplicaSet", {old[i]->meta.ns, old[i]->meta.name}).IgnoreError();
}

void DeploymentController::CreatePod(const ObjectRef& set) {
  const NamespacedName set_name{set->meta.ns, set->meta.name};
  const uint64_t ordinal = ordinals_[set_name]++;
  const std::string suffix = GeneratedSuffix(options_.name, options_.seed, set_name, ordinal);
  ++being_made_[set_name];
  maker_.Make({.pod = PodOfTemplate(At(set->body, {"spec", "template"}), *set, set_name.name + "-" + suffix),
               .owner_kind = "ReplicaSet",
               .owner = set_name,
               .wanted = [](const kube::Object& owner) { return Replicas(owner) > 0; },
               .done =
                   [this, set_name](bool made) {
                     const int64_t left = --being_made_[set_name];
                     // Another ReplicaSet may have this one's name by now, and has counted on the pod. And pods that
                     // are there are told of before they are ready.
                     if (!made || left == 0) sets_.Add(set_name);
                   }});
}

}  // namespace wavetank::fakekube
