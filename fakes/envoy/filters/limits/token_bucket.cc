#include "fakes/envoy/filters/limits/token_bucket.h"

#include <algorithm>

namespace wavetank::envoysim {

void TokenBucket::Fill(Time now) {
  if (now <= at_) return;
  if (by_timer_) {
    const int64_t fills = (now - at_) / spec_.fill_interval;
    at_ += spec_.fill_interval * fills;
    const Credit more = static_cast<Credit>(fills) * spec_.tokens_per_fill * One();
    credit_ = std::min(Full(), credit_ + more);
    return;
  }
  const Credit more = static_cast<Credit>((now - at_).count()) * spec_.tokens_per_fill;
  credit_ = std::min(Full(), credit_ + more);
  at_ = now;
}

bool TokenBucket::Take(Time now) {
  Fill(now);
  if (credit_ < One()) return false;
  credit_ -= One();
  return true;
}

uint32_t TokenBucket::Remaining(Time now) {
  Fill(now);
  return static_cast<uint32_t>(credit_ / One());
}

int64_t TokenBucket::SecondsToReset(Time now) {
  Fill(now);
  if (by_timer_) return std::chrono::duration_cast<std::chrono::seconds>(at_ + spec_.fill_interval - now).count();
  if (credit_ >= One() || spec_.tokens_per_fill == 0) return 0;
  const Credit nanoseconds = (One() - credit_) / spec_.tokens_per_fill;
  return static_cast<int64_t>((nanoseconds + 999'999'999) / 1'000'000'000);
}

}  // namespace wavetank::envoysim
