#include "core/gen/rds/patch_route_list.h"

#include <algorithm>

namespace wavetank::pilot::patch {

size_t RoomLeft(size_t made_for, size_t length) {
  // What Go's allocator hands out, in pointers.
  constexpr size_t kSizes[] = {1,  2,  3,  4,  6,  8,  10, 12, 14, 16, 18, 20,  22,  24,  26,  28,  30,  32,  36,
                               40, 44, 48, 52, 56, 60, 64, 72, 80, 88, 96, 112, 128, 144, 160, 176, 192, 224, 256};
  size_t capacity = made_for;
  while (capacity < length) {
    const size_t wanted = std::max<size_t>(2 * capacity, 1);
    const size_t* size = std::lower_bound(std::begin(kSizes), std::end(kSizes), wanted);
    capacity = size == std::end(kSizes) ? length : *size;
  }
  return capacity - length;
}

}  // namespace wavetank::pilot::patch
