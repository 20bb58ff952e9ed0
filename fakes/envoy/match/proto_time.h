// Times and fractions as Envoy's configuration states them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/time.h"
#include "envoy/type/v3/percent.pb.h"
#include "google/protobuf/duration.pb.h"

namespace wavetank::envoysim {

inline Duration ToDuration(const google::protobuf::Duration& d) {
  return std::chrono::seconds(d.seconds()) + std::chrono::nanoseconds(d.nanos());
}

inline uint32_t PartsPerMillion(const envoy::type::v3::FractionalPercent& percent) {
  uint64_t scale = 10'000;
  if (percent.denominator() == envoy::type::v3::FractionalPercent::TEN_THOUSAND) scale = 100;
  if (percent.denominator() == envoy::type::v3::FractionalPercent::MILLION) scale = 1;
  return static_cast<uint32_t>(std::min<uint64_t>(percent.numerator() * scale, 1'000'000));
}

}  // namespace wavetank::envoysim
