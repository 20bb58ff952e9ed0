#include "fakes/kube/objects/conditions.h"

#include <utility>

#include "core/base/json_access.h"

namespace wavetank::fakekube {

using nlohmann::json;

bool IsOfType(const json& condition, std::string_view type) {
  const auto* const its = At(condition, "type").get_ptr<const std::string*>();
  return its != nullptr && *its == type;
}

const json& ConditionOf(const json& conditions, std::string_view type) {
  for (const json& condition : Items(conditions)) {
    if (IsOfType(condition, type)) return condition;
  }
  static const json kNone;
  return kNone;
}

std::string SinceWhen(const json& before, std::string_view status, const std::string& now) {
  return Text(before, "status") == status ? Text(before, "lastTransitionTime", now) : now;
}

void SetCondition(json& conditions, json condition, const std::string& now) {
  if (!conditions.is_array()) conditions = json::array();
  const std::string type = Text(condition, "type");
  for (json& old : conditions) {
    if (!IsOfType(old, type)) continue;
    condition["lastTransitionTime"] = SinceWhen(old, Text(condition, "status"), now);
    old = std::move(condition);
    return;
  }
  condition["lastTransitionTime"] = now;
  conditions.push_back(std::move(condition));
}

}  // namespace wavetank::fakekube
