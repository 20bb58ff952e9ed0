#include "fakes/kube/objects/conditions.h"

#include <utility>

#include "core/base/json_access.h"

namespace wavetank::fakekube {

using nlohmann::json;

namespace {

bool IsOf(const json& condition, std::string_view type) {
  const auto* const its = At(condition, "type").get_ptr<const std::string*>();
  return its != nullptr && *its == type;
}

}  // namespace

const json& ConditionOf(const json& conditions, std::string_view type) {
  for (const json& condition : Items(conditions)) {
    if (IsOf(condition, type)) return condition;
  }
  static const json kNone;
  return kNone;
}

void SetCondition(json& conditions, json condition, const std::string& now) {
  if (!conditions.is_array()) conditions = json::array();
  const std::string type = Text(condition, "type");
  for (json& old : conditions) {
    if (!IsOf(old, type)) continue;
    const bool same = At(old, "status") == At(condition, "status");
    condition["lastTransitionTime"] = same ? Text(old, "lastTransitionTime", now) : now;
    old = std::move(condition);
    return;
  }
  condition["lastTransitionTime"] = now;
  conditions.push_back(std::move(condition));
}

}  // namespace wavetank::fakekube
