// Breaches of invariants as verbs print them.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "sim/invariants/invariant.h"

namespace wavetank::report {

// Times are since `beginning`.
std::string ViolationsText(const std::vector<sim::Violation>& violations, Time beginning);
nlohmann::ordered_json ViolationsJson(const std::vector<sim::Violation>& violations, Time beginning);
// Whether the simulated release is not known for one of them.
bool AnySurprise(const std::vector<sim::Violation>& violations);

}  // namespace wavetank::report
