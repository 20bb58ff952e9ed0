#include "fakes/kube/deployments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/json_access.h"
#include "core/base/json_text.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// The alphabet of Kubernetes' generated names: no vowels, nothing that reads as
// a word.
constexpr std::string_view kSafeLetters = "bcdfghjklmnpqrstvwxz2456789";

std::string SafeText(uint64_t value, int letters) {
  std::string out;
  for (int i = 0; i < letters; ++i, value /= kSafeLetters.size()) out += kSafeLetters[value % kSafeLetters.size()];
  return out;
}

// "25%" of replicas, or a number. Surge rounds up, unavailable rounds down.
int64_t Quota(const json& value, int64_t replicas, bool round_up) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_string()) return round_up ? 1 : 0;
  const std::string text = value.get<std::string>();
  const int64_t percent = std::strtoll(text.c_str(), nullptr, 10);
  return round_up ? (replicas * percent + 99) / 100 : replicas * percent / 100;
}

int64_t Replicas(const kube::Object& object) {
  const auto spec = object.body.find("spec");
  if (spec == object.body.end() || !spec->is_object()) return 1;
  const auto replicas = spec->find("replicas");
  return replicas != spec->end() && replicas->is_number_integer() ? replicas->get<int64_t>() : 1;
}

bool PodReady(const kube::Object& pod) {
  const auto status = pod.body.find("status");
  if (status == pod.body.end() || !status->contains("conditions")) return false;
  for (const json& condition : status->at("conditions")) {
    if (Text(condition, "type") == "Ready") return Text(condition, "status") == "True";
  }
  return false;
}

const kube::OwnerReference* Controller(const kube::Object& object) {
  for (const kube::OwnerReference& owner : object.meta.owner_references) {
    if (owner.controller) return &owner;
  }
  return nullptr;
}

bool Controls(const kube::Object& owner, const kube::Object& object) {
  const kube::OwnerReference* controller = Controller(object);
  return controller != nullptr && controller->uid == owner.meta.uid && object.meta.ns == owner.meta.ns;
}

json OwnedBy(const kube::Object& owner) {
  return json::array({{{"apiVersion", owner.api_version},
                       {"kind", owner.kind},
                       {"name", owner.meta.name},
                       {"uid", owner.meta.uid},
                       {"controller", true},
                       {"blockOwnerDeletion", true}}});
}

std::string TemplateHash(const kube::Object& deployment) {
  const auto spec = deployment.body.find("spec");
  if (spec == deployment.body.end() || !spec->is_object()) return SafeText(HashName("{}"), 10);
  return SafeText(HashName(JsonText(spec->value("template", json::object()))), 10);
}

// Counts a Deployment's templates, as `kubectl rollout history` and `undo` read it off its ReplicaSets.
constexpr const char* kRevision = "deployment.kubernetes.io/revision";

int64_t RevisionOf(const kube::Object& set) {
  const auto it = set.meta.annotations.find(kRevision);
  return it == set.meta.annotations.end() ? 0 : std::strtoll(it->second.c_str(), nullptr, 10);
}

bool HasTemplate(const kube::Object& set, std::string_view hash) {
  const auto label = set.meta.labels.find("pod-template-hash");
  return label != set.meta.labels.end() && label->second == hash;
}

}  // namespace

DeploymentController::DeploymentController(ApiServer& api, const ClusterOptions& options, PodAdmission* admission)
    : api_(api), options_(options), admission_(admission), pending_(api.host()) {
  api_.Observe("Deployment", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted) return;
    // A write of status alone changes nothing that is wanted.
    if (change.previous != nullptr && change.previous->meta.generation == change.object->meta.generation) return;
    Queue({change.object->meta.ns, change.object->meta.name});
  });
  api_.Observe("ReplicaSet", [this](const Change& change) {
    Index(change, &replica_sets_of_);
    if (change.type == kube::WatchEventType::kDeleted) return;
    if (change.previous != nullptr && change.previous->meta.generation == change.object->meta.generation) return;
    QueueReplicaSet({change.object->meta.ns, change.object->meta.name});
  });
  api_.Observe("Pod", [this](const Change& change) {
    Index(change, &pods_of_);
    const kube::OwnerReference* owner = Controller(*change.object);
    if (owner == nullptr || owner->kind != "ReplicaSet") return;
    const bool gone = change.type == kube::WatchEventType::kDeleted;
    const bool ready_changed = change.previous != nullptr && PodReady(*change.previous) != PodReady(*change.object);
    const bool deleting_changed =
        change.previous != nullptr && change.previous->meta.deleting != change.object->meta.deleting;
    if (gone || ready_changed || deleting_changed) QueueReplicaSet({change.object->meta.ns, owner->name});
  });
}

void DeploymentController::Index(const Change& change, Controlled* index) {
  const NamespacedName name{change.object->meta.ns, change.object->meta.name};
  const auto owner_of = [](const ObjectRef& object) {
    const kube::OwnerReference* owner = object == nullptr ? nullptr : Controller(*object);
    return owner == nullptr ? std::string() : owner->uid;
  };
  const bool gone = change.type == kube::WatchEventType::kDeleted;
  const std::string now = gone ? std::string() : owner_of(change.object);
  for (const std::string& before : {owner_of(change.previous), gone ? owner_of(change.object) : std::string()}) {
    const auto known = index->find(before);
    if (before == now || known == index->end()) continue;
    known->second.erase(name);
    if (known->second.empty()) index->erase(known);
  }
  if (!now.empty()) (*index)[now].insert(name);
}

std::vector<ObjectRef> DeploymentController::ControlledBy(const kube::Object& owner, const char* kind,
                                                          const Controlled& index) const {
  std::vector<ObjectRef> out;
  const auto known = index.find(owner.meta.uid);
  if (known == index.end()) return out;
  for (const NamespacedName& name : known->second) {
    ObjectRef object = api_.Get(kind, name);
    if (object != nullptr && Controls(owner, *object)) out.push_back(std::move(object));
  }
  return out;
}

void DeploymentController::Queue(const NamespacedName& name) {
  if (queued_[name]) return;
  queued_[name] = true;
  pending_.After(5ms, [this, name] {
    queued_[name] = false;
    SyncDeployment(name);
  });
}

void DeploymentController::QueueReplicaSet(const NamespacedName& name) {
  if (queued_sets_[name]) return;
  queued_sets_[name] = true;
  pending_.After(5ms, [this, name] {
    queued_sets_[name] = false;
    SyncReplicaSet(name);
  });
}

void DeploymentController::SyncDeployment(const NamespacedName& name) {
  const ObjectRef deployment = api_.Get("Deployment", name);
  // One that is going waits for its dependents, and makes no more.
  if (deployment == nullptr || deployment->meta.deleting) return;
  const json& spec = deployment->body.at("spec");
  const json& pod_template = At(spec, "template");
  const std::string hash = TemplateHash(*deployment);
  const int64_t wanted = Replicas(*deployment);

  ObjectRef current;
  std::vector<ObjectRef> old;
  int64_t revision = 1;
  for (const ObjectRef& set : ReplicaSetsOf(*deployment)) {
    if (HasTemplate(*set, hash)) {
      current = set;
    } else {
      old.push_back(set);
      revision = std::max(revision, RevisionOf(*set) + 1);
    }
  }
  int64_t old_replicas = 0;
  for (const ObjectRef& set : old) old_replicas += Replicas(*set);
  const json& strategy = At(spec, "strategy");
  const bool recreate = Text(strategy, "type") == "Recreate";
  const json& rolling = At(strategy, "rollingUpdate");
  int64_t surge = Quota(rolling.contains("maxSurge") ? rolling["maxSurge"] : json("25%"), wanted, true);
  int64_t unavailable =
      Quota(rolling.contains("maxUnavailable") ? rolling["maxUnavailable"] : json("25%"), wanted, false);
  if (surge == 0 && unavailable == 0) unavailable = 1;

  if (current == nullptr) {
    json labels = At(pod_template, {"metadata", "labels"});
    if (!labels.is_object()) labels = json::object();
    labels["pod-template-hash"] = hash;
    json set_template = pod_template;
    if (!set_template.is_object()) set_template = json::object();
    if (!At(set_template, "metadata").is_object()) set_template["metadata"] = json::object();
    set_template["metadata"]["labels"] = labels;
    json selector = At(spec, "selector");
    if (!selector.is_object()) selector = json::object();
    if (!At(selector, "matchLabels").is_object()) selector["matchLabels"] = json::object();
    selector["matchLabels"]["pod-template-hash"] = hash;
    // Recreate: nothing new before the last old pod is gone.
    const int64_t first = recreate            ? (OldPods(old) == 0 ? wanted : 0)
                          : old_replicas == 0 ? wanted
                                              : std::clamp(wanted + surge - old_replicas, int64_t{0}, wanted);
    api_.Create({{"apiVersion", "apps/v1"},
                 {"kind", "ReplicaSet"},
                 {"metadata",
                  {{"name", name.name + "-" + hash},
                   {"namespace", name.ns},
                   {"labels", labels},
                   {"annotations", {{kRevision, std::to_string(revision)}}},
                   {"ownerReferences", OwnedBy(*deployment)}}},
                 {"spec", {{"replicas", first}, {"selector", selector}, {"template", set_template}}}})
        .IgnoreError();
    if (!old.empty()) Queue(name);
    return;
  }
  if (RevisionOf(*current) < revision) {  // a template of old is the wanted one again
    api_.Patch("ReplicaSet", {name.ns, current->meta.name},
               {{"metadata", {{"annotations", {{kRevision, std::to_string(revision)}}}}}})
        .IgnoreError();
  }
  // A change of the spec that scales nothing is seen all the same.
  if (old_replicas == 0 && Replicas(*current) == wanted &&
      Number(At(deployment->body, "status"), "observedGeneration") < deployment->meta.generation) {
    api_.Patch("Deployment", name, {{"status", {{"observedGeneration", deployment->meta.generation}}}}).IgnoreError();
  }
  const auto scale = [&](const ObjectRef& set, int64_t replicas) {
    if (Replicas(*set) == replicas) return;
    api_.Patch("ReplicaSet", {set->meta.ns, set->meta.name}, {{"spec", {{"replicas", replicas}}}}).IgnoreError();
  };
  if (recreate) {
    for (const ObjectRef& set : old) scale(set, 0);
    if (OldPods(old) == 0) scale(current, wanted);
    return;
  }
  if (old_replicas == 0 || Replicas(*current) > wanted) return scale(current, wanted);

  // A rolling change (kubernetes: pkg/controller/deployment/rolling.go). First
  // the new set grows into what surge allows; a later round, when that is under
  // way, shrinks the old ones by what availability allows.
  const int64_t room = wanted + surge - old_replicas - Replicas(*current);
  if (room > 0 && Replicas(*current) < wanted) {
    return scale(current, std::min(wanted, Replicas(*current) + room));
  }
  const auto ready_pods = [&](const ObjectRef& set) {
    int64_t ready = 0;
    for (const ObjectRef& pod : PodsOf(*set)) ready += !pod->meta.deleting && PodReady(*pod) ? 1 : 0;
    return ready;
  };
  const int64_t least = wanted - unavailable, new_ready = ready_pods(current);
  // New pods that are not ready yet count as lost already.
  int64_t budget = old_replicas + Replicas(*current) - least - (Replicas(*current) - new_ready);
  if (budget <= 0) return;
  std::map<std::string, int64_t> left, ready;  // by name of the old set
  int64_t all_ready = new_ready;
  for (const ObjectRef& set : old) {
    left[set->meta.name] = Replicas(*set);
    all_ready += ready[set->meta.name] = ready_pods(set);
  }
  // Those that serve nobody go first: losing them costs no availability.
  for (const ObjectRef& set : old) {
    const int64_t broken = std::max<int64_t>(left[set->meta.name] - ready[set->meta.name], 0);
    const int64_t less = std::min(budget, broken);
    left[set->meta.name] -= less;
    budget -= less;
  }
  int64_t healthy = std::min(budget, all_ready - least);
  for (const ObjectRef& set : old) {
    const int64_t less = std::clamp<int64_t>(healthy, 0, left[set->meta.name]);
    left[set->meta.name] -= less;
    healthy -= less;
  }
  for (const ObjectRef& set : old) scale(set, left[set->meta.name]);
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
  int64_t ready = 0;
  for (ObjectRef& pod : PodsOf(*set)) {
    if (pod->meta.deleting) continue;
    ready += PodReady(*pod) ? 1 : 0;
    pods.push_back(std::move(pod));
  }
  const int64_t wanted = Replicas(*set);
  const int64_t have = static_cast<int64_t>(pods.size()) + being_admitted_[name];
  for (int64_t i = have; i < wanted && !set->meta.deleting; ++i) CreatePod(set);
  if (have > wanted) {
    // Those that are not ready go first, then the youngest.
    std::stable_sort(pods.begin(), pods.end(), [](const ObjectRef& a, const ObjectRef& b) {
      if (PodReady(*a) != PodReady(*b)) return PodReady(*b);
      return a->meta.resource_version > b->meta.resource_version;
    });
    for (int64_t i = wanted; i < static_cast<int64_t>(pods.size()); ++i) {
      api_.Delete("Pod", {name.ns, pods[static_cast<size_t>(i - wanted)]->meta.name}).IgnoreError();
    }
  }
  const json status = {{"replicas", pods.size()},
                       {"readyReplicas", ready},
                       {"availableReplicas", ready},
                       {"observedGeneration", set->meta.generation}};
  api_.Patch("ReplicaSet", name, {{"status", status}}).IgnoreError();
  const kube::OwnerReference* owner = Controller(*set);
  if (owner == nullptr) return;
  const ObjectRef deployment = api_.Get("Deployment", {name.ns, owner->name});
  if (deployment == nullptr) return;
  int64_t all = 0, all_ready = 0, updated = 0;
  const std::string hash = TemplateHash(*deployment);
  for (const ObjectRef& sibling : ReplicaSetsOf(*deployment)) {
    const json& sibling_status = At(sibling->body, "status");
    all += Number(sibling_status, "replicas");
    if (HasTemplate(*sibling, hash)) updated += Number(sibling_status, "replicas");
    all_ready += Number(sibling_status, "readyReplicas");
  }
  const int64_t all_wanted = Replicas(*deployment);
  const bool available = all_ready >= all_wanted, complete = available && updated == all_wanted && all == all_wanted;
  const json conditions = {{{"type", "Available"},
                            {"status", available ? "True" : "False"},
                            {"reason", available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable"}},
                           {{"type", "Progressing"},
                            {"status", "True"},
                            {"reason", complete ? "NewReplicaSetAvailable" : "ReplicaSetUpdated"}}};
  api_.Patch("Deployment", {name.ns, owner->name},
             {{"status",
               {{"replicas", all},
                {"readyReplicas", all_ready},
                {"availableReplicas", all_ready},
                {"updatedReplicas", updated},
                {"observedGeneration", deployment->meta.generation},
                {"conditions", conditions}}}})
      .IgnoreError();
  // A rolling change goes on when pods became ready.
  if (ReplicaSetsOf(*deployment).size() > 1) Queue({name.ns, owner->name});
}

void DeploymentController::CreatePod(const ObjectRef& set) {
  const NamespacedName set_name{set->meta.ns, set->meta.name};
  const uint64_t ordinal = ordinals_[set_name]++;
  const json& pod_template = At(set->body, {"spec", "template"});
  json metadata = At(pod_template, "metadata");
  if (!metadata.is_object()) metadata = json::object();
  const std::string suffix = SafeText(
      HashName(fmt::format("{}/{}/{}/{}", options_.name, set_name.ns, set_name.name, ordinal), options_.seed), 5);
  metadata["name"] = set_name.name + "-" + suffix;
  metadata["generateName"] = set_name.name + "-";
  metadata["namespace"] = set_name.ns;
  metadata["ownerReferences"] = OwnedBy(*set);
  json pod = {
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", At(pod_template, "spec")}};
  ++being_admitted_[set_name];
  Admit(std::move(pod), set_name, 0);
}

void DeploymentController::Admit(json pod, const NamespacedName& set_name, int attempt) {
  const auto store = [this, set_name, attempt](absl::StatusOr<json> admitted, const json& original) {
    // Its ReplicaSet went while the webhook was asked, maybe with the whole
    // namespace.
    const ObjectRef set = api_.Get("ReplicaSet", set_name);
    if (set == nullptr || set->meta.deleting || original["metadata"]["ownerReferences"][0]["uid"] != set->meta.uid) {
      --being_admitted_[set_name];
      QueueReplicaSet(set_name);
      return;
    }
    absl::Status status = admitted.ok() ? api_.Create(*std::move(admitted)).status() : admitted.status();
    if (status.ok() || absl::IsAlreadyExists(status)) {
      --being_admitted_[set_name];
      return;
    }
    // As the ReplicaSet controller: again, after 5 ms doubling up to 82 s (the
    // default rate limiter's steps, capped).
    const Duration delay = Duration(5ms) * (int64_t{1} << std::min(attempt, 14));
    pending_.After(delay, [this, set_name, attempt, original] {
      const ObjectRef now = api_.Get("ReplicaSet", set_name);
      if (now == nullptr || Replicas(*now) == 0) {
        --being_admitted_[set_name];
        return;
      }
      Admit(original, set_name, attempt + 1);
    });
  };
  if (admission_ == nullptr) {
    const json original = pod;
    return store(std::move(pod), original);
  }
  const ObjectRef ns = api_.Get("Namespace", {"", set_name.ns});
  json review = pod;
  SetDefaults(review);
  admission_->Review(std::move(review), ns == nullptr ? kube::Labels() : ns->meta.labels,
                     [store, original = std::move(pod)](absl::StatusOr<json> admitted) mutable {
                       store(std::move(admitted), original);
                     });
}

}  // namespace wavetank::fakekube
