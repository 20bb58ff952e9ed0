#include "fakes/kube/workloads/stateful_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "fakes/kube/control/pod_template.h"
#include "fakes/kube/workloads/revisions.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kPodNameLabel = "statefulset.kubernetes.io/pod-name";

int64_t FirstOrdinal(const kube::Object& set) { return BoundedCount(At(set.body, {"spec", "ordinals", "start"}), 0); }
int64_t EndOfOrdinals(const kube::Object& set) { return FirstOrdinal(set) + Replicas(set); }

std::string PodName(const kube::Object& set, int64_t ordinal) { return fmt::format("{}-{}", set.meta.name, ordinal); }

std::optional<int64_t> OrdinalOf(const kube::Object& set, std::string_view pod) {
  if (!pod.starts_with(set.meta.name + "-")) return std::nullopt;
  pod.remove_prefix(set.meta.name.size() + 1);
  int64_t ordinal = 0;
  const auto [end, error] = std::from_chars(pod.data(), pod.data() + pod.size(), ordinal);
  if (error != std::errc() || end != pod.data() + pod.size()) return std::nullopt;
  return ordinal;
}

std::string_view RevisionLabelOf(const kube::Object& pod) {
  const auto label = pod.meta.labels.find(kRevisionLabel);
  return label == pod.meta.labels.end() ? std::string_view() : std::string_view(label->second);
}

// Pods below it keep the revision that they have.
int64_t Partition(const kube::Object& set) {
  return FirstOrdinal(set) + BoundedCount(At(set.body, {"spec", "updateStrategy", "rollingUpdate", "partition"}), 0);
}

bool OneByOne(const kube::Object& set) { return Text(At(set.body, "spec"), "podManagementPolicy") != "Parallel"; }
bool OnDelete(const kube::Object& set) { return Text(At(set.body, {"spec", "updateStrategy"}), "type") == "OnDelete"; }

// As labels of what is made for it.
json SelectorLabels(const kube::Object& set) {
  const json& labels = At(set.body, {"spec", "selector", "matchLabels"});
  return labels.is_object() ? labels : json::object();
}

std::string ClaimName(const json& claim, const std::string& pod) {
  return fmt::format("{}-{}", Text(At(claim, "metadata"), "name"), pod);
}

// A pod's volumes, with the claims in place of those that have their names.
json Volumes(const json& own, const json& claims, const std::string& pod) {
  json out = json::array();
  for (const json& claim : claims) {
    out.push_back({{"name", Text(At(claim, "metadata"), "name")},
                   {"persistentVolumeClaim", {{"claimName", ClaimName(claim, pod)}}}});
  }
  for (const json& volume : own) {
    const bool claimed =
        std::any_of(out.begin(), out.end(), [&](const json& claim) { return claim["name"] == At(volume, "name"); });
    if (!claimed) out.push_back(volume);
  }
  return out;
}

}  // namespace

StatefulSetController::StatefulSetController(ApiServer& api, PodAdmission* admission)
    : api_(api),
      pending_(api.host()),
      queue_(pending_, [this](const NamespacedName& name) { Sync(name); }),
      maker_(api, admission, pending_),
      availability_(api.host()) {
  subscriptions_.Add(api_.Observe("StatefulSet", [this](const Change& change) {
    if (WantsAnew(change)) queue_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("Pod", [this](const Change& change) {
    const kube::OwnerReference* owner = ControllerOf(*change.object);
    if (owner == nullptr || owner->kind != "StatefulSet") return;
    pods_.Follow(change);
    availability_.Follow(change);
    if (ServesOtherwise(change)) queue_.Add({change.object->meta.ns, owner->name});
  }));
}

bool StatefulSetController::Healthy(const kube::Object& set, const kube::Object& pod) const {
  return !pod.meta.deleting && availability_.Available(pod, MinReady(set));
}

void StatefulSetController::Sync(const NamespacedName& name) {
  const ObjectRef set = api_.Get("StatefulSet", name);
  if (set == nullptr || set->meta.deleting) return;
  const std::string update = fmt::format("{}-{}", name.name, TemplateHash(*set));
  std::string current = Text(At(set->body, "status"), "currentRevision", update);
  KeepRevision(api_, *set, update, SelectorLabels(*set), {current});
  Pods pods;
  for (const ObjectRef& pod : pods_.Of(api_, *set, "Pod")) {
    if (const std::optional<int64_t> ordinal = OrdinalOf(*set, pod->meta.name)) pods[*ordinal] = pod;
  }
  const Duration next = availability_.UntilNext(pods_.Of(api_, *set, "Pod"), MinReady(*set));
  if (next > Duration::zero()) pending_.After(next, [this, name] { queue_.Add(name); });
  Step(set, current, update, pods);
  WriteStatus(set, current, update, pods);
}

void StatefulSetController::Step(const ObjectRef& set, const std::string& current, const std::string& update,
                                 const Pods& pods) {
  const int64_t end = EndOfOrdinals(*set);
  const bool one_by_one = OneByOne(*set);
  const NamespacedName name{set->meta.ns, set->meta.name};
  for (int64_t ordinal = FirstOrdinal(*set); ordinal < end; ++ordinal) {
    const auto there = pods.find(ordinal);
    if (there == pods.end()) {
      if (being_made_.count({name, ordinal}) == 0) Create(set, ordinal < Partition(*set) ? current : update, ordinal);
      if (one_by_one) return;
    } else if (one_by_one && !Healthy(*set, *there->second)) {
      return;
    }
  }
  // From the last one down; none while another one is still going.
  for (auto it = pods.rbegin(); it != pods.rend(); ++it) {
    if (it->first >= FirstOrdinal(*set) && it->first < end) continue;
    if (!it->second->meta.deleting) DeletePod(*set, it->second->meta.name);
    if (one_by_one) return;
  }
  if (OnDelete(*set)) return;
  for (auto it = pods.rbegin(); it != pods.rend() && it->first >= Partition(*set); ++it) {
    if (it->first >= end) continue;
    if (RevisionLabelOf(*it->second) != update && !it->second->meta.deleting) {
      DeletePod(*set, it->second->meta.name);
      return;
    }
    if (!Healthy(*set, *it->second)) return;
  }
}

void StatefulSetController::DeletePod(const kube::Object& set, const std::string& pod) {
  if (api_.Delete("Pod", {set.meta.ns, pod}).ok()) TellDeleted(api_, set, pod);
}

void StatefulSetController::Create(const ObjectRef& set, const std::string& revision, int64_t ordinal) {
  const NamespacedName name{set->meta.ns, set->meta.name};
  const ObjectRef kept = api_.Get("ControllerRevision", {name.ns, revision});
  const json pod_template = kept == nullptr ? At(set->body, {"spec", "template"}) : TemplateOfRevision(kept.get());
  const std::string pod_name = PodName(*set, ordinal);
  json pod = PodOfTemplate(pod_template, *set, pod_name);
  pod["metadata"]["labels"][kRevisionLabel] = revision;
  pod["metadata"]["labels"][kPodNameLabel] = pod_name;
  json& spec = pod["spec"];
  if (!spec.is_object()) spec = json::object();
  spec["hostname"] = pod_name;
  if (const std::string service = Text(At(set->body, "spec"), "serviceName"); !service.empty())
    spec["subdomain"] = service;
  const json& claims = Items(At(set->body, {"spec", "volumeClaimTemplates"}));
  if (!claims.empty()) spec["volumes"] = Volumes(Items(At(spec, "volumes")), claims, pod_name);
  for (const json& claim : claims) Claim(*set, claim, ClaimName(claim, pod_name));
  WAVETANK_ASSERT(ordinal >= FirstOrdinal(*set), ordinal);
  const bool fresh = being_made_.insert({name, ordinal}).second;
  WAVETANK_ASSERT(fresh, name.ns, name.name, ordinal);  // two pods of one name
  maker_.Make({.pod = std::move(pod),
               .owner_kind = "StatefulSet",
               .owner = name,
               .wanted = [ordinal](const kube::Object& owner) { return ordinal < EndOfOrdinals(owner); },
               .done =
                   [this, name, ordinal](bool) {
                     const size_t was_made = being_made_.erase({name, ordinal});
                     WAVETANK_ASSERT(was_made == 1, name.ns, name.name, ordinal);  // done is called once
                     // One that is there is told of before it is ready.
                     queue_.Add(name);
                   }});
}

// A claim outlives its pod, and is bound at once: storage is not modelled.
void StatefulSetController::Claim(const kube::Object& set, const json& claim, const std::string& name) {
  if (api_.Get("PersistentVolumeClaim", {set.meta.ns, name}) != nullptr) return;
  api_.Create({{"apiVersion", "v1"},
               {"kind", "PersistentVolumeClaim"},
               {"metadata", {{"name", name}, {"namespace", set.meta.ns}, {"labels", SelectorLabels(set)}}},
               {"spec", At(claim, "spec")},
               {"status", {{"phase", "Bound"}}}})
      .IgnoreError();
}

void StatefulSetController::WriteStatus(const ObjectRef& set, const std::string& current, const std::string& update,
                                        const Pods& pods) {
  int64_t there = 0, ready = 0, available = 0, old = 0, updated = 0;
  for (const auto& [ordinal, pod] : pods) {
    ++there;
    ready += PodReady(*pod) ? 1 : 0;
    available += availability_.Available(*pod, MinReady(*set)) ? 1 : 0;
    if (pod->meta.deleting) continue;
    old += RevisionLabelOf(*pod) == current ? 1 : 0;
    updated += RevisionLabelOf(*pod) == update ? 1 : 0;
  }
  WAVETANK_ASSERT(ready <= there, ready, there);
  WAVETANK_ASSERT(available <= ready, available, ready);
  WAVETANK_ASSERT(updated <= there, updated, there);
  const bool complete = !OnDelete(*set) && updated == Replicas(*set) && there == updated && ready == updated;
  api_.Patch("StatefulSet", {set->meta.ns, set->meta.name},
             {{"status",
               {{"replicas", there},
                {"readyReplicas", ready},
                {"availableReplicas", available},
                {"currentReplicas", complete ? updated : old},
                {"updatedReplicas", updated},
                {"currentRevision", complete ? update : current},
                {"updateRevision", update},
                {"observedGeneration", set->meta.generation},
                {"collisionCount", 0}}}})
      .IgnoreError();
}

}  // namespace wavetank::fakekube
