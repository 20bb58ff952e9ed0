// A plan as a page: its numbers, its curves, what binds, what was assumed.
#pragma once

#include <string>
#include <vector>

#include "capacity/plan/curves.h"

namespace wavetank::capacity {

// One self-contained page. Its numbers are those of PlanJson() and of TextOf(). `notes`: what the fleet could not say
// of the log that it was made of.
std::string PlanPage(const Plan& plan, const Curves& curves, const std::vector<std::string>& notes);

}  // namespace wavetank::capacity
