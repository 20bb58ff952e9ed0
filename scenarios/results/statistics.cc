#include "scenarios/results/statistics.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <numeric>

namespace wavetank::scenario {

GoodnessOfFit ChiSquaredTest(const std::vector<int64_t>& observed, const std::vector<double>& shares) {
  GoodnessOfFit fit;
  const int64_t total = std::accumulate(observed.begin(), observed.end(), int64_t{0});
  if (total == 0) {
    fit.p_value = 0;
    return fit;
  }
  int categories = 0;
  for (size_t i = 0; i < observed.size(); ++i) {
    if (shares[i] <= 0) {
      fit.impossible = fit.impossible || observed[i] > 0;
      continue;
    }
    ++categories;
    const double expected = shares[i] * static_cast<double>(total);
    const double deviation = static_cast<double>(observed[i]) - expected;
    fit.statistic += deviation * deviation / expected;
  }
  if (fit.impossible) {
    fit.p_value = 0;
  } else if (categories > 1) {
    const boost::math::chi_squared distribution(categories - 1);
    fit.p_value = boost::math::cdf(boost::math::complement(distribution, fit.statistic));
  }
  return fit;
}

}  // namespace wavetank::scenario
