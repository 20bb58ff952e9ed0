// Tokens that come back with virtual time. Two kinds, by the Envoy's release: before 1.31 a timer that starts with the
// configuration adds a portion every interval; since then the same amount flows back continuously.
// Envoy: source/extensions/filters/common/local_ratelimit/local_ratelimit_impl.cc, common/common/token_bucket_impl.cc
#pragma once

#include <cstdint>

#include "core/base/time.h"

namespace wavetank::envoysim {

struct TokenBucketSpec {
  uint32_t max_tokens = 0, tokens_per_fill = 1;
  Duration fill_interval{};  // positive
};

class TokenBucket {
 public:
  // Full at `start`. `by_timer`: as before 1.31.
  TokenBucket(const TokenBucketSpec& spec, Time start, bool by_timer) : spec_(spec), by_timer_(by_timer), at_(start) {
    credit_ = Full();
  }

  // Takes a token; false: there is none.
  bool Take(Time now);
  uint32_t Remaining(Time now);
  // Whole seconds until the next token, or the timer's next portion.
  int64_t SecondsToReset(Time now);
  const TokenBucketSpec& spec() const { return spec_; }

 private:
  // Tokens times the interval in nanoseconds, so that fractions are exact.
  using Credit = unsigned __int128;
  Credit Full() const { return static_cast<Credit>(spec_.max_tokens) * One(); }
  Credit One() const { return static_cast<Credit>(spec_.fill_interval.count()); }
  void Fill(Time now);

  TokenBucketSpec spec_;
  bool by_timer_;
  Time at_;  // until when it is filled
  Credit credit_ = 0;
};

}  // namespace wavetank::envoysim
