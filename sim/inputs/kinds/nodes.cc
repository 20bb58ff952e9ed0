#include "sim/inputs/kinds/nodes.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "core/kube/time_format.h"
#include "core/kube/types.h"
#include "fakes/kube/cluster.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/objects/dumped.h"
#include "fmt/format.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {
namespace {

using nlohmann::json;

constexpr Duration kWrongest = 24h * 3650;  // of a clock: dates stay dates that certificates can have
constexpr Duration kEvictAgain = 5s;        // kubectl: pkg/drain/drain.go, evictPods

// NotFound, with the nodes that there are.
absl::StatusOr<World::Site*> SiteOfNode(InputTarget& target, const std::string& cluster, const std::string& node) {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok() || (*site)->cluster().api().Get("Node", {"", node}) != nullptr) return site;
  std::string names;
  for (const kube::ObjectRef& each : (*site)->cluster().api().List("Node")) {
    names += (names.empty() ? "" : ", ") + each->meta.name;
  }
  return absl::InvalidArgumentError(fmt::format("cluster '{}' has no node '{}'; it has {}", cluster, node, names));
}

absl::Status PatchNode(World::Site& site, const std::string& node, json spec) {
  return site.cluster().api().Patch("Node", {"", node}, {{"spec", std::move(spec)}}).status();
}

bool OfDaemonSet(const kube::Object& pod) {
  for (const json& owner : Items(At(pod.body, {"metadata", "ownerReferences"}))) {
    if (Text(owner, "kind") == "DaemonSet") return true;
  }
  return false;
}

// Asks for what still runs there and has not been asked for; comes back for what was refused.
void Evict(World& world, Host& host, const std::string& cluster, const std::string& node, Time deadline) {
  World::Site& site = *world.FindSite(cluster);
  bool refused = false;
  for (const kube::ObjectRef& pod : site.cluster().api().List("Pod")) {
    if (kube::ParsePod(*pod).node_name != node || pod->meta.deleting || OfDaemonSet(*pod)) continue;
    fakekube::http::Request request;
    request.method = "POST";
    request.path = fmt::format("/api/v1/namespaces/{}/pods/{}/eviction", pod->meta.ns, pod->meta.name);
    request.content_type = "application/json";
    request.parsed =
        std::make_shared<const json>(json{{"apiVersion", "policy/v1"},
                                          {"kind", "Eviction"},
                                          {"metadata", {{"namespace", pod->meta.ns}, {"name", pod->meta.name}}}});
    refused = site.rest().Execute(site.rest().Open(std::move(request))).code == 429 || refused;
  }
  if (!refused || (deadline != Time{} && host.Now() + kEvictAgain > deadline)) return;
  host.RunAfter(kEvictAgain, [&world, &host, cluster, node, deadline] { Evict(world, host, cluster, node, deadline); });
}

// Empty without a Deployment. In the order in which they can be applied.
std::vector<kube::ObjectRef> PartsOfGateway(const fakekube::ApiServer& api, const kube::NamespacedName& name) {
  std::vector<kube::ObjectRef> out;
  const kube::ObjectRef deployment = api.Get("Deployment", name);
  if (deployment == nullptr) return out;
  const std::string account = Text(At(deployment->body, {"spec", "template", "spec"}), "serviceAccountName");
  if (kube::ObjectRef own = account.empty() ? nullptr : api.Get("ServiceAccount", {name.ns, account}))
    out.push_back(own);
  if (kube::ObjectRef service = api.Get("Service", name)) out.push_back(service);
  out.push_back(deployment);
  for (const kube::ObjectRef& scaler : api.List("HorizontalPodAutoscaler", name.ns)) {
    const json& scaled = At(scaler->body, {"spec", "scaleTargetRef"});
    if (Text(scaled, "kind") == "Deployment" && Text(scaled, "name") == name.name) out.push_back(scaler);
  }
  if (kube::ObjectRef budget = api.Get("PodDisruptionBudget", name)) out.push_back(budget);
  return out;
}

}  // namespace

void RestartWorkload::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("kind", Need::kRequired, workload_kind);
  visitor.Visit("namespace", Need::kRequired, ns);
  visitor.Visit("name", Need::kRequired, name);
  visitor.Visit("at", Need::kSparse, at);
}

absl::Status RestartWorkload::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  const int64_t now = kWorldEpochUnixSeconds + target.host.Now().time_since_epoch() / std::chrono::seconds(1);
  const std::optional<int64_t> told = at.empty() ? now : kube::ParseRfc3339(at);
  if (!told) return absl::InvalidArgumentError("at: '" + at + "' is no date; write 2023-07-01T12:00:00Z");
  const json annotations = {{"kubectl.kubernetes.io/restartedAt", kube::FormatRfc3339(*told)}};
  return (*site)
      ->cluster()
      .api()
      .Patch(workload_kind, {ns, name}, {{"spec", {{"template", {{"metadata", {{"annotations", annotations}}}}}}}})
      .status();
}

void CordonNode::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("node", Need::kRequired, node);
  visitor.Visit("unschedulable", Need::kRequired, unschedulable);
}

absl::Status CordonNode::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = SiteOfNode(target, cluster, node);
  if (!site.ok()) return site.status();
  return PatchNode(**site, node, {{"unschedulable", unschedulable ? json(true) : json(nullptr)}});
}

void TaintNode::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("node", Need::kRequired, node);
  visitor.Visit("key", Need::kRequired, key);
  visitor.Visit("value", Need::kSparse, value);
  visitor.Visit("effect", Need::kSparse, effect);
  visitor.Visit("remove", Need::kSparse, remove);
}

absl::Status TaintNode::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = SiteOfNode(target, cluster, node);
  if (!site.ok()) return site.status();
  json taints = json::array();
  bool found = false;
  for (const json& taint : Items(At((*site)->cluster().api().Get("Node", {"", node})->body, {"spec", "taints"}))) {
    const bool same = Text(taint, "key") == key && (effect.empty() || Text(taint, "effect") == effect);
    if (!same) taints.push_back(taint);
    found = found || same;
  }
  if (remove && !found) return absl::InvalidArgumentError(fmt::format("node '{}' has no taint '{}'", node, key));
  if (!remove) {
    taints.push_back({{"key", key}, {"effect", effect}});
    if (!value.empty()) taints.back()["value"] = value;
  }
  return PatchNode(**site, node, {{"taints", taints.empty() ? json(nullptr) : std::move(taints)}});
}

void DrainNode::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("node", Need::kRequired, node);
  visitor.Visit("timeoutNs", Need::kSparse, timeout);
}

absl::Status DrainNode::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = SiteOfNode(target, cluster, node);
  if (!site.ok()) return site.status();
  if (absl::Status status = PatchNode(**site, node, {{"unschedulable", true}}); !status.ok()) return status;
  const Time deadline = timeout > Duration::zero() ? target.host.Now() + timeout : Time{};
  Evict(target.world, target.host, cluster, node, deadline);
  return absl::OkStatus();
}

void SetNode::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("node", Need::kRequired, node);
  visitor.Visit("lost", Need::kRequired, lost);
}

absl::Status SetNode::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = SiteOfNode(target, cluster, node);
  if (!site.ok()) return site.status();
  return (*site)->SetNodeLost(node, lost);
}

void MoveGateway::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("to", Need::kRequired, to);
  visitor.Visit("namespace", Need::kRequired, ns);
  visitor.Visit("name", Need::kRequired, name);
}

absl::Status MoveGateway::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> from = target.FindSite(cluster), there = target.FindSite(to);
  if (!from.ok()) return from.status();
  if (!there.ok()) return there.status();
  if (*from == *there) return absl::InvalidArgumentError(fmt::format("gateway {} is in {} already", name, to));
  fakekube::ApiServer& old_api = (*from)->cluster().api();
  fakekube::ApiServer& new_api = (*there)->cluster().api();
  std::vector<kube::ObjectRef> parts = PartsOfGateway(old_api, {ns, name});
  if (parts.empty()) return absl::InvalidArgumentError(fmt::format("{} has no Deployment {}/{}", cluster, ns, name));
  if (new_api.Get("Namespace", {"", ns}) == nullptr)
    return absl::InvalidArgumentError(fmt::format("{} has no namespace {}", to, ns));
  if (new_api.Get("Deployment", {ns, name}) != nullptr)
    return absl::InvalidArgumentError(fmt::format("{} has a Deployment {}/{} already", to, ns, name));
  std::vector<fakekube::Manifest> moved;
  for (const kube::ObjectRef& part : parts) moved.push_back({.object = part->body});
  fakekube::CleanDumped(&moved);
  for (fakekube::Manifest& manifest : moved) {
    if (absl::Status status = (*there)->Apply(std::move(manifest.object)); !status.ok()) return status;
  }
  for (const kube::ObjectRef& part : parts) {
    if (part->kind == "ServiceAccount") continue;  // others may use it
    if (absl::Status status = old_api.Delete(part->kind, {ns, part->meta.name}); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void SetClock::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("node", Need::kRequired, node);
  visitor.Visit("aheadNs", Need::kRequired, ahead);
}

absl::Status SetClock::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = SiteOfNode(target, cluster, node);
  if (!site.ok()) return site.status();
  if (ahead > kWrongest || ahead < -kWrongest)
    return absl::InvalidArgumentError("a clock is wrong by ten years at most");
  (*site)->nodes().SetClock(node, ahead);
  return absl::OkStatus();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterNodes(InputTable& table) {
  table.Add<inputs::RestartWorkload>();
  table.Add<inputs::CordonNode>();
  table.Add<inputs::TaintNode>();
  table.Add<inputs::DrainNode>();
  table.Add<inputs::SetNode>();
  table.Add<inputs::MoveGateway>();
  table.Add<inputs::SetClock>();
}
}  // namespace wavetank::sim
