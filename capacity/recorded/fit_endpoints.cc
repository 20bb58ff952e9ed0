#include "capacity/recorded/fit_endpoints.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace wavetank::capacity {
namespace {

constexpr double kLeastExponent = 0.1, kMostExponent = 3, kStep = 0.05;

// Of the n-th largest Service of `of`, in so many clusters that are alike: each has a first, a second, ...
double Expected(const EndpointsSpec& spec, size_t n, size_t of, size_t clusters) {
  if (spec.kind == EndpointsSpec::Kind::kZipf) {
    return std::max(1.0, std::floor(static_cast<double>(spec.most) /
                                    std::pow(static_cast<double>(n / clusters + 1), spec.exponent)));
  }
  const double share = (static_cast<double>(n) + 0.5) / static_cast<double>(of);
  return static_cast<double>(spec.most) - share * static_cast<double>(spec.most - spec.least);
}

// How far off in proportion: the mean over the Services, and of the sum.
double Distance(const EndpointsSpec& spec, const std::vector<int64_t>& falling, size_t clusters) {
  double off = 0, sum = 0, expected_sum = 0;
  for (size_t n = 0; n < falling.size(); ++n) {
    const double is = static_cast<double>(falling[n]), expected = Expected(spec, n, falling.size(), clusters);
    off += std::abs(std::log((expected + 1) / (is + 1)));
    sum += is;
    expected_sum += expected;
  }
  return off / static_cast<double>(falling.size()) + std::abs(std::log((expected_sum + 1) / (sum + 1)));
}

}  // namespace

EndpointsSpec FitEndpoints(std::vector<int64_t> endpoints, size_t clusters) {
  EndpointsSpec best;
  if (endpoints.empty()) return best;
  std::sort(endpoints.begin(), endpoints.end(), std::greater<>());
  if (endpoints.front() == endpoints.back()) {
    best.fixed = endpoints.front();
    return best;
  }
  best.kind = EndpointsSpec::Kind::kRange;
  best.most = endpoints.front();
  best.least = endpoints.back();
  clusters = std::clamp<size_t>(clusters, 1, endpoints.size());
  double least = Distance(best, endpoints, clusters);
  EndpointsSpec zipf;
  zipf.kind = EndpointsSpec::Kind::kZipf;
  // Of the largest in each cluster.
  const int64_t firsts =
      std::accumulate(endpoints.begin(), endpoints.begin() + static_cast<std::ptrdiff_t>(clusters), int64_t{0});
  zipf.most = std::max<int64_t>(1, std::llround(static_cast<double>(firsts) / static_cast<double>(clusters)));
  for (int step = 0; kLeastExponent + step * kStep <= kMostExponent + kStep / 2; ++step) {
    zipf.exponent = kLeastExponent + step * kStep;
    const double distance = Distance(zipf, endpoints, clusters);
    if (distance >= least) continue;
    least = distance;
    best = zipf;
  }
  return best;
}

}  // namespace wavetank::capacity
