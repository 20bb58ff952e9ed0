// Virtual time as calendar dates (proleptic Gregorian, UTC), without the C library's time zone.
#pragma once

#include <cstdint>

#include "core/base/time.h"

namespace wavetank::x509 {

struct CivilTime {
  int year, month, day, hour, minute, second;
};

CivilTime ToCivil(int64_t unix_seconds);
int64_t FromCivil(const CivilTime& t);

// Whole seconds since 1970 at `time`, rounded down.
int64_t UnixSeconds(Time time);
// Saturates at the ends of Time's range.
Time FromUnixSeconds(int64_t unix_seconds);

}  // namespace wavetank::x509
