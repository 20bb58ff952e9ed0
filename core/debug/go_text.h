// JSON, dates and sizes as Go's standard library writes them.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace wavetank::debug {

// encoding/json: "<", ">" and "&" are escaped. `indent` spaces a level, or all in one line.
std::string GoText(const nlohmann::ordered_json& value, int indent = -1);
// RFC 3339 with as many digits of a second as it takes; of the world's calendar.
std::string GoTime(Time time);
// istiod: pilot/pkg/networking/util, ByteCount: "1.2kB".
std::string ByteCount(int64_t bytes);

}  // namespace wavetank::debug
