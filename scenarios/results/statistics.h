// The statistics of expectations. Floating point is allowed here: nothing of it reaches a world's state.
#pragma once

#include <cstdint>
#include <vector>

namespace wavetank::scenario {

struct GoodnessOfFit {
  double statistic = 0;     // Pearson's chi-squared
  double p_value = 1;       // of a deviation at least as large, if the shares were true
  bool impossible = false;  // something was seen whose share is zero
};

// Observed counts against shares that add up to 1. A share of zero forbids its count; the others are compared by
// Pearson's chi-squared test with (number of non-zero shares - 1) degrees of freedom. No counts at all: p = 0.
GoodnessOfFit ChiSquaredTest(const std::vector<int64_t>& observed, const std::vector<double>& shares);

}  // namespace wavetank::scenario
