// The table of `istioctl proxy-status` (istioctl: pkg/writer/pilot/status.go).
#pragma once

#include <map>
#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::cli::tables {

// What /debug/syncz of each istiod says, by the istiod's pod. `proxy`: a part of the proxies' IDs; empty: all.
std::string StatusTable(const std::map<std::string, nlohmann::json>& syncz, const std::string& proxy);

}  // namespace wavetank::cli::tables
