// Texts that the build puts into the program: the report's own page and the chart library of the distribution.
#pragma once

#include <string_view>

namespace wavetank::report::assets {

std::string_view ReportCss();
std::string_view BaseJs();    // of every page
std::string_view ReportJs();  // of a run's
std::string_view ChartJs();   // Chart.js, as packaged by Debian

}  // namespace wavetank::report::assets
