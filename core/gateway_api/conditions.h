// Conditions of statuses (istiod: pilot/pkg/config/kube/gateway/conditions.go, pilot/pkg/model/kstatus).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

struct Condition {
  std::string reason, message;  // without an error
  bool good = true;             // its status without an error; an error turns it round
  std::optional<ConfigError> error = std::nullopt;
};
using Conditions = std::map<std::string, Condition>;  // by type

// The list `existing` with these in it: one that says the same stays as it is, and the time of its last change is that
// of its status.
nlohmann::json SetConditions(int64_t generation, const std::string& now, nlohmann::json existing,
                             const Conditions& conditions);

// "a", "a and b", "a, b, and c".
std::string ReadableJoin(const std::vector<std::string>& parts);

}  // namespace wavetank::gatewayapi
