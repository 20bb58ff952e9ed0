#include "core/gateway_api/conditions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/json_access.h"

namespace wavetank::gatewayapi {

using nlohmann::json;

json SetConditions(int64_t generation, const std::string& now, json existing, const Conditions& conditions) {
  if (!existing.is_array()) existing = json::array();
  for (const auto& [type, condition] : conditions) {
    const bool status = condition.good != condition.error.has_value();
    const std::string& message = condition.error ? condition.error->message : condition.message;
    json next = {{"type", type},
                 {"status", status ? "True" : "False"},
                 {"lastTransitionTime", now},
                 {"reason", condition.error ? condition.error->reason : condition.reason},
                 {"message", message}};
    if (generation != 0) next["observedGeneration"] = generation;
    const auto at = std::find_if(existing.begin(), existing.end(),
                                 [&, &type = type](const json& c) { return Text(c, "type") == type; });
    if (at == existing.end()) {
      existing.push_back(std::move(next));
      continue;
    }
    if (Text(*at, "status") == Text(next, "status")) {
      // istiod: UpdateConditionIfChanged, which does not look at the reason.
      if (Text(*at, "message") == message && Number(*at, "observedGeneration") == generation) continue;
      if (const std::string since = Text(*at, "lastTransitionTime"); !since.empty()) next["lastTransitionTime"] = since;
    }
    *at = std::move(next);
  }
  return existing;
}

std::string ReadableJoin(const std::vector<std::string>& parts) {
  if (parts.size() < 2) return absl::StrJoin(parts, "");
  if (parts.size() == 2) return parts[0] + " and " + parts[1];
  return absl::StrJoin(parts.begin(), parts.end() - 1, ", ") + ", and " + parts.back();
}

}  // namespace wavetank::gatewayapi
