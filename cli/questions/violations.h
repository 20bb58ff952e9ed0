// Breaches of invariants as verbs print them.
#pragma once

#include <vector>

#include "nlohmann/json.hpp"
#include "sim/invariants/invariant.h"

namespace wavetank::cli {

// Times are since `beginning`.
void PrintViolations(const std::vector<sim::Violation>& violations, Time beginning);
nlohmann::ordered_json ViolationsJson(const std::vector<sim::Violation>& violations, Time beginning);
// Whether the simulated release is not known for one of them.
bool AnySurprise(const std::vector<sim::Violation>& violations);

}  // namespace wavetank::cli
