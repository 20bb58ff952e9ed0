// A plan as its readers see it: `wavetank plan`, its --json, and its page.
#pragma once

#include <string>
#include <vector>

#include "capacity/plan/plan.h"
#include "nlohmann/json.hpp"

namespace wavetank::capacity {

struct PlanText {
  using Rows = std::vector<std::vector<std::string>>;
  std::string fleet, verdict;  // its size and the SLO; whether that is kept
  Rows figures;                // what, how much, what it means
  Rows kinds, settings;        // with a head each
  std::string binds, assumed;
  std::string extrapolates;  // or ""
};
PlanText TextOf(const Plan& plan);

nlohmann::ordered_json PlanJson(const Plan& plan);

}  // namespace wavetank::capacity
