// Scripts that the build puts into the program, on top of reports/page/base.js.
#pragma once

#include <string_view>

namespace wavetank::capacity {

std::string_view PlanScript();   // plan.js
std::string_view SweepScript();  // sweep.js

}  // namespace wavetank::capacity
