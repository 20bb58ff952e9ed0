#include "fakes/kube/housekeeping/disruption_budgets.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "core/kube/label_selector.h"
#include "fakes/kube/control/owned.h"
#include "fakes/kube/control/pod_template.h"
#include "fakes/kube/objects/conditions.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kKind = "PodDisruptionBudget";

bool Selects(const kube::Object& budget, const kube::Object& pod) {
  const json& selector = At(budget.body, {"spec", "selector"});
  if (!selector.is_object() || pod.meta.ns != budget.meta.ns) return false;
  const auto parsed = kube::LabelSelector::FromJson(selector);
  return parsed.ok() && parsed->Matches(pod.meta.labels);
}

bool Percent(const json& value) { return value.is_string(); }

}  // namespace

DisruptionBudgetController::DisruptionBudgetController(ApiServer& api)
    : api_(api), pending_(api.host()), queue_(pending_, [this](const NamespacedName& name) { Sync(name); }) {
  subscriptions_.Add(api_.Observe(kKind, [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted) return;
    // Its own status comes back here, too, and is equal then.
    queue_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("Pod", [this](const Change& change) {
    if (change.previous != nullptr) QueueBudgetsOf(*change.previous);
    QueueBudgetsOf(*change.object);
  }));
}

void DisruptionBudgetController::QueueBudgetsOf(const kube::Object& pod) {
  for (const ObjectRef& budget : api_.List(kKind, pod.meta.ns)) {
    if (Selects(*budget, pod)) queue_.Add({budget->meta.ns, budget->meta.name});
  }
}

int64_t DisruptionBudgetController::Expected(const std::vector<ObjectRef>& pods) const {
  std::map<std::string, int64_t> scales;  // by uid of the workload
  for (const ObjectRef& pod : pods) {
    const kube::OwnerReference* owner = ControllerOf(*pod);
    ObjectRef workload = owner == nullptr ? nullptr : api_.Get(owner->kind, {pod->meta.ns, owner->name});
    if (workload == nullptr) continue;
    if (const kube::OwnerReference* above = ControllerOf(*workload); above != nullptr) {
      if (ObjectRef deployment = api_.Get(above->kind, {pod->meta.ns, above->name}); deployment != nullptr)
        workload = std::move(deployment);
    }
    scales[workload->meta.uid] = Replicas(*workload);
  }
  int64_t sum = 0;
  for (const auto& [uid, replicas] : scales) sum += replicas;
  return sum;
}

void DisruptionBudgetController::Sync(const NamespacedName& name) {
  const ObjectRef budget = api_.Get(kKind, name);
  if (budget == nullptr) return;
  std::vector<ObjectRef> pods;
  int64_t healthy = 0;
  json disrupted = json::object();
  for (ObjectRef& pod : api_.List("Pod", name.ns)) {
    if (!Selects(*budget, *pod)) continue;
    const json& since = At(budget->body, {"status", "disruptedPods", pod->meta.name});
    if (!since.is_null() && !pod->meta.deleting) disrupted[pod->meta.name] = since;
    healthy += PodReady(*pod) && !pod->meta.deleting && since.is_null() ? 1 : 0;
    pods.push_back(std::move(pod));
  }
  const json &least = At(budget->body, {"spec", "minAvailable"}), &most = At(budget->body, {"spec", "maxUnavailable"});
  int64_t expected = static_cast<int64_t>(pods.size()), desired = 0;
  if (!most.is_null()) {
    expected = Expected(pods);
    desired = std::max<int64_t>(expected - Quota(most, expected, true), 0);
  } else if (!least.is_null()) {
    if (Percent(least)) expected = Expected(pods);
    desired = Quota(least, expected, true);
  }
  const int64_t allowed = expected > 0 ? std::max<int64_t>(healthy - desired, 0) : 0;
  WAVETANK_ASSERT(healthy <= static_cast<int64_t>(pods.size()), healthy, pods.size());
  WAVETANK_ASSERT(allowed <= healthy, allowed, healthy);  // no more may go than are well
  const char* const type = "DisruptionAllowed";
  const char* const status = allowed > 0 ? "True" : "False";
  json condition =
      JsonObject("type", type, "status", status, "reason", allowed > 0 ? "SufficientPods" : "InsufficientPods",
                 "message", "", "observedGeneration", budget->meta.generation, "lastTransitionTime",
                 SinceWhen(ConditionOf(At(budget->body, {"status", "conditions"}), type), status, api_.DateNow()));
  json body = budget->body;
  body["status"] = JsonObject("currentHealthy", healthy, "desiredHealthy", desired, "disruptionsAllowed", allowed,
                              "expectedPods", expected, "observedGeneration", budget->meta.generation, "conditions",
                              json::array({std::move(condition)}));
  if (!disrupted.empty()) body["status"]["disruptedPods"] = std::move(disrupted);
  body["metadata"].erase("resourceVersion");
  api_.Update(std::move(body)).IgnoreError();
}

}  // namespace wavetank::fakekube
