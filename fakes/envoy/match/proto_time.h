// Times and fractions as Envoy's configuration states them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/time.h"
#include "envoy/type/v3/percent.pb.h"
#include "google/protobuf/duration.pb.h"

namespace wavetank::envoysim {

// Envoy: source/common/protobuf/utility.cc, kMaxSecondsValue.
inline constexpr int64_t kMaxDurationSeconds = 9'223'372'035;

// Whole milliseconds, as Envoy's timers count (source/common/protobuf/utility.cc, durationToMilliseconds). What no
// Envoy takes (durations.h) ends at the ends of the range.
inline Duration ToDuration(const google::protobuf::Duration& d) {
  const std::chrono::seconds seconds(std::clamp(d.seconds(), -kMaxDurationSeconds, kMaxDurationSeconds));
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      seconds + Duration(std::clamp<int32_t>(d.nanos(), -999'999'999, 999'999'999)));
}

// Of what comes again and again. Envoy's timer of no millisecond comes with each turn of its event loop.
inline Duration ToPeriod(const google::protobuf::Duration& d) { return std::max<Duration>(ToDuration(d), 1ms); }

inline bool IsZero(const google::protobuf::Duration& d) { return d.seconds() == 0 && d.nanos() == 0; }

// What one of its numerators is of a million.
inline uint64_t MillionthsOfOne(const envoy::type::v3::FractionalPercent& percent) {
  if (percent.denominator() == envoy::type::v3::FractionalPercent::TEN_THOUSAND) return 100;
  return percent.denominator() == envoy::type::v3::FractionalPercent::MILLION ? 1 : 10'000;
}

inline uint32_t PartsPerMillion(const envoy::type::v3::FractionalPercent& percent) {
  return static_cast<uint32_t>(std::min<uint64_t>(percent.numerator() * MillionthsOfOne(percent), 1'000'000));
}

}  // namespace wavetank::envoysim
