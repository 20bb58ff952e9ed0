// What a fleet must keep: 'convergence p99 <= 2s, error 0'.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::capacity {

struct Slo {
  // Of all changes in this share (ppm) the last proxy has it within `limit`; zero: not asked for.
  int64_t convergence_ppm = 990'000;
  Duration limit{};
  int64_t cpu_ppm = 0;     // of the limit that istiods may use on average; 0: not asked for
  int64_t memory_ppm = 0;  // of the limit
  bool no_error = false;   // nothing is killed for memory, and every change arrives

  std::string Text() const;
};

// Terms with commas between them: "convergence p50|p90|p99|max <= DURATION", "cpu <= SHARE", "memory <= SHARE", "error
// 0". InvalidArgument: names the term and what it should look like.
absl::StatusOr<Slo> ParseSlo(std::string_view text);

}  // namespace wavetank::capacity
