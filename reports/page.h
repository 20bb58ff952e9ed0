// What every page is made of: reports of runs, and those of other rooms (capacity/page/).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace wavetank::report {

// One self-contained page: no file beside it, nothing loaded from a network. `scripts` draw `data`: they find it as
// `results` and hand a function to show(), on top of what page/base.js has.
std::string PageHtml(std::string_view title, std::string_view scripts, const nlohmann::ordered_json& data);

// With those above it. Unavailable names the folder that cannot be made.
absl::Status MakeFolder(const std::string& directory);
// Beside its name first and renamed when whole. Unavailable names the file that cannot be written.
absl::Status WriteWhole(const std::string& path, std::string_view text);

}  // namespace wavetank::report
