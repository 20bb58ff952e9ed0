#include "fakes/kube/nodes/node_lifecycle.h"

#include <optional>
#include <string_view>
#include <utility>

#include "core/base/assert.h"
#include "core/base/bounds.h"
#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "fakes/kube/nodes/node_conditions.h"
#include "fakes/kube/nodes/pod_events.h"
#include "fakes/kube/objects/conditions.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr Duration kGrace = 40s;
constexpr int64_t kTolerationSeconds = 300;
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";

json WithoutUnreachable(const json& taints) {
  json out = json::array();
  for (const json& taint : Items(taints)) {
    if (Text(taint, "key") != kUnreachable) out.push_back(taint);
  }
  return out;
}

// How long the pod tolerates an unreachable node; nullopt: for ever.
std::optional<Duration> Toleration(const kube::Object& pod) {
  for (const json& each : Items(At(pod.body, {"spec", "tolerations"}))) {
    const std::string key = Text(each, "key"), effect = Text(each, "effect");
    if ((!key.empty() && key != kUnreachable) || (!effect.empty() && effect != "NoExecute")) continue;
    if (!each.contains("tolerationSeconds")) return std::nullopt;
    // kubernetes: pkg/controller/nodelifecycle/scheduler/taint_manager.go: what is not positive tolerates nothing.
    return bounds::Seconds(Number(each, "tolerationSeconds", 0));
  }
  for (const json& owner : Items(At(pod.body, {"metadata", "ownerReferences"}))) {
    if (Text(owner, "kind") == "DaemonSet") return std::nullopt;  // its controller adds the toleration
  }
  return std::chrono::seconds(kTolerationSeconds);
}

bool RunsOn(const kube::Object& pod, const std::string& node) { return Text(At(pod.body, "spec"), "nodeName") == node; }

}  // namespace

bool NodeLifecycle::StillSilent(const std::string& node, int64_t silence) const {
  const auto it = silent_.find(node);
  WAVETANK_ASSERT(silence <= silences_, silence, silences_);  // none that has not begun
  return it != silent_.end() && it->second == silence;
}

void NodeLifecycle::Silent(const std::string& node) {
  const int64_t silence = ++silences_;
  silent_[node] = silence;
  pending_.After(kGrace, [this, node, silence] { NotReady(node, silence); });
}

void NodeLifecycle::NotReady(const std::string& node, int64_t silence) {
  const ObjectRef object = api_.Get("Node", {"", node});
  if (!StillSilent(node, silence) || object == nullptr) return;
  json taints = WithoutUnreachable(At(object->body, {"spec", "taints"}));
  for (const char* const effect : {"NoSchedule", "NoExecute"})
    taints.push_back(JsonObject("key", std::string(kUnreachable), "effect", effect));
  api_.Patch("Node", {"", node}, {{"spec", {{"taints", std::move(taints)}}}}).IgnoreError();
  json conditions = ConditionsOfSilentNode(At(object->body, {"status", "conditions"}), api_.DateNow());
  api_.Patch("Node", {"", node}, {{"status", {{"conditions", std::move(conditions)}}}}).IgnoreError();
  TellNodeStatus(api_, *object, false);
  for (const ObjectRef& pod : api_.List("Pod")) {
    if (!RunsOn(*pod, node) || pod->meta.deleting) continue;
    json not_ready = At(pod->body, {"status", "conditions"});
    SetCondition(not_ready, JsonObject("type", "Ready", "status", "False", "lastProbeTime", nullptr), api_.DateNow());
    api_.Patch("Pod", {pod->meta.ns, pod->meta.name}, {{"status", {{"conditions", std::move(not_ready)}}}})
        .IgnoreError();
    TellNodeNotReady(api_, *pod);
    Evict(*pod, node, silence);
  }
}

void NodeLifecycle::Evict(const kube::Object& pod, const std::string& node, int64_t silence) {
  const std::optional<Duration> toleration = Toleration(pod);
  if (!toleration) return;
  pending_.After(*toleration,
                 [this, node, silence, name = NamespacedName{pod.meta.ns, pod.meta.name}, uid = pod.meta.uid] {
                   const ObjectRef now = api_.Get("Pod", name);
                   if (!StillSilent(node, silence) || now == nullptr || now->meta.uid != uid) return;
                   TellEvicted(api_, *now);
                   api_.Delete("Pod", name).IgnoreError();
                 });
}

void NodeLifecycle::Heard(const std::string& node) {
  silent_.erase(node);
  const ObjectRef object = api_.Get("Node", {"", node});
  if (object == nullptr) return;
  json taints = WithoutUnreachable(At(object->body, {"spec", "taints"}));
  api_.Patch("Node", {"", node}, {{"spec", {{"taints", taints.empty() ? json(nullptr) : std::move(taints)}}}})
      .IgnoreError();
  json conditions = ConditionsOfHealthyNode(At(object->body, {"status", "conditions"}), api_.DateNow());
  api_.Patch("Node", {"", node}, {{"status", {{"conditions", std::move(conditions)}}}}, kKubelet).IgnoreError();
  TellNodeStatus(api_, *object, true);
}

}  // namespace wavetank::fakekube
