#pragma once

#include "core/base/time.h"

namespace wavetank::security {

inline constexpr Duration kYear = std::chrono::hours(24 * 365);

}  // namespace wavetank::security
