// In which order a file has its records: collectors' exports are often newest first, or in no order at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wavetank::importing {

enum class LineOrder : uint8_t { kForward, kBackward, kMixed };

// By a file's beginning. Several processes' logs one behind the other, or beside each other, go forward.
LineOrder OrderOf(std::string_view head);

// The same lines in the order of their times; those without a time stay behind the one that they follow. Of one time
// those that came later in a backward file come first. O(n log n) in lines.
std::string Sorted(std::string_view text, LineOrder order);

}  // namespace wavetank::importing
