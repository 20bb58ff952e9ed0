// Durations as messages hold them.
#pragma once

#include <cstdint>

#include "core/base/time.h"
#include "google/protobuf/duration.pb.h"

namespace wavetank::pilot {

inline void SetDuration(Duration from, google::protobuf::Duration* to) {
  to->set_seconds(from.count() / 1'000'000'000);
  to->set_nanos(static_cast<int32_t>(from.count() % 1'000'000'000));
}

}  // namespace wavetank::pilot
