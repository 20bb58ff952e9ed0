#include "fakes/kube/workloads/inferred.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fakes/kube/control/owned.h"
#include "fakes/kube/control/pod_template.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kTemplateHash = "pod-template-hash";
constexpr const char* kControllerRevision = "controller-revision-hash";
// Labels that controllers give each pod apart.
constexpr const char* kOwnLabels[] = {kTemplateHash, kControllerRevision, "statefulset.kubernetes.io/pod-name",
                                      "apps.kubernetes.io/pod-index"};

struct OwnerName {
  std::string ns, kind, name;
  friend auto operator<=>(const OwnerName&, const OwnerName&) = default;
};
using Owned = std::map<OwnerName, std::vector<ObjectRef>>;

std::string LabelText(const kube::Object& pod, const char* label) {
  const auto it = pod.meta.labels.find(label);
  return it == pod.meta.labels.end() ? std::string() : it->second;
}

// The template that would have made the pod.
json TemplateOf(const kube::Object& pod) {
  json labels = json::object();
  for (const auto& [key, value] : pod.meta.labels) labels[key] = value;
  for (const char* label : kOwnLabels) labels.erase(label);
  json metadata = {{"labels", std::move(labels)}};
  if (const json& annotations = At(pod.body, {"metadata", "annotations"}); annotations.is_object())
    metadata["annotations"] = annotations;
  json spec = At(pod.body, "spec");
  if (!spec.is_object()) spec = json::object();
  // What a scheduler, a StatefulSet or a DaemonSet wrote into this one.
  for (const char* own : {"nodeName", "hostname", "subdomain"}) spec.erase(own);
  if (!At(spec, {"affinity", "nodeAffinity"}).is_null()) spec["affinity"].erase("nodeAffinity");
  return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

json Workload(const char* kind, const OwnerName& name, json pod_template) {
  json labels = pod_template["metadata"]["labels"];
  return {{"apiVersion", "apps/v1"},
          {"kind", kind},
          {"metadata", {{"name", name.name}, {"namespace", name.ns}, {"labels", labels}}},
          {"spec", {{"selector", {{"matchLabels", labels}}}, {"template", std::move(pod_template)}}}};
}

class Inference {
 public:
  explicit Inference(ApiServer& api) : api_(api) {}

  std::vector<std::string> Run() {
    std::map<std::string, std::pair<int, std::string>> orphans;  // by kind of owner: how many, one of them
    for (const ObjectRef& pod : api_.List("Pod")) {
      if (HasEnded(pod->body)) continue;
      const kube::OwnerReference* owner = ControllerOf(*pod);
      const std::string kind = owner == nullptr ? "nobody" : owner->kind;
      if (kind == "ReplicaSet" || kind == "StatefulSet" || kind == "DaemonSet") {
        pods_[{pod->meta.ns, kind, owner->name}].push_back(pod);
      } else {
        auto& [count, example] = orphans[kind];
        if (count++ == 0) example = pod->meta.ns + "/" + pod->meta.name;
      }
    }
    // ReplicaSets by the Deployment that their names tell.
    std::map<OwnerName, std::vector<OwnerName>> deployments;
    for (const auto& [owner, pods] : pods_) {
      if (owner.kind != "ReplicaSet") {
        AddSet(owner, pods);
        continue;
      }
      const std::string suffix = "-" + LabelText(*pods.front(), kTemplateHash);
      if (suffix.size() > 1 && owner.name.ends_with(suffix)) {
        deployments[{owner.ns, "Deployment", owner.name.substr(0, owner.name.size() - suffix.size())}].push_back(owner);
      } else {
        AddReplicaSet(owner, pods, {});
      }
    }
    for (auto& [deployment, sets] : deployments) AddDeployment(deployment, std::move(sets));
    for (const auto& [kind, found] : orphans) {
      notes_.push_back(fmt::format("{} pods of {} ({}{}) are made again by nobody once they are gone", found.first,
                                   kind == "nobody" ? "no workload" : "a " + kind, found.second,
                                   found.first > 1 ? " and others" : ""));
    }
    return std::move(notes_);
  }

 private:
  // Null, and a note: the API server refuses it.
  ObjectRef Create(json body) {
    const OwnerName name{Text(body["metadata"], "namespace"), Text(body, "kind"), Text(body["metadata"], "name")};
    if (ObjectRef there = api_.Get(name.kind, {name.ns, name.name}); there != nullptr) return there;
    const absl::StatusOr<ObjectRef> made = api_.Create(std::move(body));
    if (made.ok()) return *made;
    notes_.push_back(fmt::format("{} {}/{} of the record cannot be made again: {}", name.kind, name.ns, name.name,
                                 Message(made.status())));
    return nullptr;
  }

  // The pods become the owner's; how many did and are to stay.
  int64_t Adopt(const kube::Object& owner, const std::vector<ObjectRef>& pods) {
    int64_t out = 0;
    for (const ObjectRef& pod : pods) {
      const bool adopted =
          api_.Patch("Pod", {pod->meta.ns, pod->meta.name}, {{"metadata", {{"ownerReferences", OwnedBy(owner)}}}}).ok();
      out += adopted && !pod->meta.deleting ? 1 : 0;
    }
    return out;
  }

  void SetReplicas(const kube::Object& set, int64_t replicas) {
    api_.Patch(set.kind, {set.meta.ns, set.meta.name}, {{"spec", {{"replicas", replicas}}}}).IgnoreError();
  }

  // From now on the recorded hash is that of the template, as it stands.
  void KeepHash(const kube::Object& workload, const std::string& recorded) {
    const std::string value = TemplateHash(workload) + "=" + recorded;
    api_.Patch(workload.kind, {workload.meta.ns, workload.meta.name},
               {{"metadata", {{"annotations", {{std::string(kRecordedHash), value}}}}}})
        .IgnoreError();
  }

  int64_t AddReplicaSet(const OwnerName& name, const std::vector<ObjectRef>& pods, const ObjectRef& deployment) {
    json body = Workload("ReplicaSet", name, TemplateOf(*pods.front()));
    const std::string hash = LabelText(*pods.front(), kTemplateHash);
    if (!hash.empty()) {
      for (json* labels : {&body["metadata"]["labels"], &body["spec"]["selector"]["matchLabels"],
                           &body["spec"]["template"]["metadata"]["labels"]}) {
        (*labels)[kTemplateHash] = hash;
      }
    }
    if (deployment != nullptr) body["metadata"]["ownerReferences"] = OwnedBy(*deployment);
    body["spec"]["replicas"] = 0;
    const ObjectRef set = Create(std::move(body));
    if (set == nullptr) return 0;
    const int64_t adopted = Adopt(*set, pods);
    SetReplicas(*set, adopted);
    return adopted;
  }

  void AddDeployment(const OwnerName& name, std::vector<OwnerName> sets) {
    // The newest template is the wanted one.
    const auto newest = [&](const OwnerName& set) {
      std::string out;
      for (const ObjectRef& pod : pods_[set]) out = std::max(out, Text(At(pod->body, "metadata"), "creationTimestamp"));
      return out;
    };
    std::stable_sort(sets.begin(), sets.end(),
                     [&](const OwnerName& a, const OwnerName& b) { return newest(a) > newest(b); });
    const kube::Object& pod = *pods_[sets.front()].front();
    json body = Workload("Deployment", name, TemplateOf(pod));
    body["spec"]["replicas"] = 0;
    const ObjectRef deployment = Create(std::move(body));
    if (deployment == nullptr) return;
    KeepHash(*deployment, LabelText(pod, kTemplateHash));
    int64_t replicas = 0;
    for (const OwnerName& set : sets) replicas += AddReplicaSet(set, pods_[set], deployment);
    SetReplicas(*deployment, replicas);
    if (sets.size() > 1) {
      notes_.push_back(
          fmt::format("Deployment {}/{} was being rolled out; it goes on with {} replicas, as many as it "
                      "has pods",
                      name.ns, name.name, replicas));
    }
  }

  void AddSet(const OwnerName& name, const std::vector<ObjectRef>& pods) {
    json body = Workload(name.kind.c_str(), name, TemplateOf(*pods.front()));
    const bool stateful = name.kind == "StatefulSet";
    if (stateful) {
      body["spec"]["replicas"] = 0;
      body["spec"]["serviceName"] = Text(At(pods.front()->body, "spec"), "subdomain", name.name);
    }
    const ObjectRef set = Create(std::move(body));
    if (set == nullptr) return;
    std::string hash = LabelText(*pods.front(), kControllerRevision);
    if (hash.starts_with(name.name + "-")) hash = hash.substr(name.name.size() + 1);
    if (!hash.empty()) KeepHash(*set, hash);
    const int64_t adopted = Adopt(*set, pods);
    if (stateful) SetReplicas(*set, adopted);
  }

  ApiServer& api_;
  Owned pods_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> InferWorkloads(ApiServer& api) { return Inference(api).Run(); }

}  // namespace wavetank::fakekube
