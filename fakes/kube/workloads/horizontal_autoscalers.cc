#include "fakes/kube/workloads/horizontal_autoscalers.h"

#include <optional>
#include <string>
#include <utility>

#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "fakes/kube/control/pod_template.h"
#include "fakes/kube/objects/conditions.h"
#include "fakes/kube/store/event_store.h"
#include "fmt/format.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kAutoscaler = "HorizontalPodAutoscaler";
constexpr const char* kScaled[] = {"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"};
// kube-controller-manager --horizontal-pod-autoscaler-sync-period.
constexpr Duration kAutoscalerPeriod = 15s;

struct Wish {
  int64_t replicas = 0;
  const char* reason = "";
};

// nullopt: it is within its bounds, or switched off.
std::optional<Wish> OutOfBounds(const kube::Object& autoscaler, const kube::Object& target) {
  const json& spec = At(autoscaler.body, "spec");
  const int64_t now = Replicas(target), least = Number(spec, "minReplicas", 1), most = Number(spec, "maxReplicas", now);
  if (now == 0 && least != 0) return std::nullopt;
  if (now > most) return Wish{most, "Current number of replicas above Spec.MaxReplicas"};
  if (now < least) return Wish{least, "Current number of replicas below Spec.MinReplicas"};
  return std::nullopt;
}

json AutoscalerCondition(const char* type, bool status, const char* reason, const std::string& message) {
  return JsonObject("type", type, "status", status ? "True" : "False", "reason", reason, "message", message);
}

// As much of a HorizontalPodAutoscaler's conditions as follows from its target alone.
json AutoscalerConditions(const ObjectRef& target, const std::string& name) {
  json out = json::array();
  if (target == nullptr) {
    out.push_back(AutoscalerCondition(
        "AbleToScale", false, "FailedGetScale",
        fmt::format("the HPA controller was unable to get the target's current scale: {} not found", name)));
    return out;
  }
  out.push_back(AutoscalerCondition("AbleToScale", true, "SucceededGetScale",
                                    "the HPA controller was able to get the target's current scale"));
  if (Replicas(*target) == 0) {
    out.push_back(AutoscalerCondition("ScalingActive", false, "ScalingDisabled",
                                      "scaling is disabled since the replica count of the target is zero"));
  } else {
    out.push_back(
        AutoscalerCondition("ScalingActive", false, "FailedGetResourceMetric",
                            "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to "
                            "get metrics for resource cpu: unable to fetch metrics from resource metrics API: the "
                            "server could not find the requested resource (get pods.metrics.k8s.io)"));
  }
  return out;
}

}  // namespace

HorizontalAutoscaler::HorizontalAutoscaler(ApiServer& api)
    : api_(api), pending_(api.host()), queue_(pending_, [this](const NamespacedName& name) { Sync(name); }) {
  subscriptions_.Add(api_.Observe(kAutoscaler, [this](const Change& change) {
    if (change.type != kube::WatchEventType::kDeleted) queue_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  for (const char* kind : kScaled) {
    subscriptions_.Add(api_.Observe(kind, [this](const Change& change) {
      for (const ObjectRef& autoscaler : api_.List(kAutoscaler, change.object->meta.ns)) {
        const json& target = At(autoscaler->body, {"spec", "scaleTargetRef"});
        if (Text(target, "kind") == change.object->kind && Text(target, "name") == change.object->meta.name)
          queue_.Add({autoscaler->meta.ns, autoscaler->meta.name});
      }
    }));
  }
}

ObjectRef HorizontalAutoscaler::TargetOf(const kube::Object& autoscaler) const {
  const json& target = At(autoscaler.body, {"spec", "scaleTargetRef"});
  for (const char* kind : kScaled) {
    if (Text(target, "kind") == kind) return api_.Get(kind, {autoscaler.meta.ns, Text(target, "name")});
  }
  return nullptr;
}

void HorizontalAutoscaler::Sync(const NamespacedName& name) {
  const ObjectRef autoscaler = api_.Get(kAutoscaler, name);
  if (autoscaler == nullptr) return;
  const ObjectRef target = TargetOf(*autoscaler);
  WriteStatus(*autoscaler, target);
  if (target == nullptr || !OutOfBounds(*autoscaler, *target) || !due_.insert(name).second) return;
  pending_.After(kAutoscalerPeriod, [this, name] {
    due_.erase(name);
    Rescale(name);
  });
}

void HorizontalAutoscaler::Rescale(const NamespacedName& name) {
  const ObjectRef autoscaler = api_.Get(kAutoscaler, name);
  const ObjectRef target = autoscaler == nullptr ? nullptr : TargetOf(*autoscaler);
  if (target == nullptr) return;
  const std::optional<Wish> wish = OutOfBounds(*autoscaler, *target);
  if (!wish) return;
  if (!api_.Patch(target->kind, {target->meta.ns, target->meta.name}, {{"spec", {{"replicas", wish->replicas}}}}).ok())
    return;
  EventStore* const events = api_.listening();
  if (events == nullptr) return;
  events->Tell(*autoscaler, {.component = "horizontal-pod-autoscaler",
                             .reason = "SuccessfulRescale",
                             .message = fmt::format("New size: {}; reason: {}", wish->replicas, wish->reason)});
}

void HorizontalAutoscaler::WriteStatus(const kube::Object& autoscaler, const ObjectRef& target) {
  const json& ref = At(autoscaler.body, {"spec", "scaleTargetRef"});
  json conditions = AutoscalerConditions(target, fmt::format("{} \"{}\"", Text(ref, "kind"), Text(ref, "name")));
  for (json& condition : conditions) {
    const json& before = ConditionOf(At(autoscaler.body, {"status", "conditions"}), Text(condition, "type"));
    condition["lastTransitionTime"] = SinceWhen(before, Text(condition, "status"), api_.DateNow());
  }
  json body = autoscaler.body;
  json& status = body["status"];
  if (!status.is_object()) status = json::object();
  status["conditions"] = std::move(conditions);
  status["currentReplicas"] = target == nullptr ? 0 : Number(At(target->body, "status"), "replicas");
  const std::optional<Wish> wish = target == nullptr ? std::nullopt : OutOfBounds(autoscaler, *target);
  status["desiredReplicas"] = wish ? wish->replicas : target == nullptr ? 0 : Replicas(*target);
  body["metadata"].erase("resourceVersion");
  api_.Update(std::move(body)).IgnoreError();
}

}  // namespace wavetank::fakekube
