// Kubernetes' resource quantities: "500m", "1.5Gi", "2e3", 2.
#pragma once

#include <optional>
#include <string>

#include "absl/numeric/int128.h"
#include "nlohmann/json_fwd.hpp"

namespace wavetank::kube {

inline constexpr int64_t kNanosPerUnit = 1'000'000'000;

// The amount in thousand-millionths of its unit, exactly, so that "9m" is "0.009". As apimachinery has it
// (pkg/api/resource): what is finer is rounded away from zero, what is more than an int64 holds is capped there.
// nullopt for what is no quantity.
std::optional<absl::int128> QuantityNanos(const nlohmann::json& quantity);

// As it was written, for messages.
std::string QuantityText(const nlohmann::json& quantity);

}  // namespace wavetank::kube
