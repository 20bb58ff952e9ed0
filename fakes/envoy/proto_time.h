// Times as Envoy's configuration states them.
#pragma once

#include "core/base/time.h"
#include "google/protobuf/duration.pb.h"

namespace wavetank::envoysim {

inline Duration ToDuration(const google::protobuf::Duration& d) {
  return std::chrono::seconds(d.seconds()) + std::chrono::nanoseconds(d.nanos());
}

}  // namespace wavetank::envoysim
