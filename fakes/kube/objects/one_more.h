// Counting on from numbers that stand in objects, where a client may have written any.
#pragma once

#include <cstdint>

namespace wavetank::fakekube {

// The next number; of the largest there is none.
constexpr int64_t OneMore(int64_t number) { return number < INT64_MAX ? number + 1 : number; }

}  // namespace wavetank::fakekube
