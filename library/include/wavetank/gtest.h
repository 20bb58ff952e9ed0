// Matchers for GoogleTest.
/// \file
/// Matchers for GoogleTest (its gmock part).
/// \code
/// auto requests = world->Send({.cluster = "east", .host = "web.sample:8080"}, 1000);
/// ASSERT_THAT(requests, wavetank::Succeeded());
/// EXPECT_THAT(*requests, SplitsEvenly({"v1", "v2"}));
/// \endcode
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "wavetank/world.h"

namespace wavetank {

inline void PrintTo(const Requests& requests, std::ostream* out) {
  *out << requests.sent << " sent, " << requests.failed << " failed";
  for (const auto& [version, count] : requests.by_version) *out << ", " << version << " " << count;
  for (const Requests::Failure& f : requests.failures) {
    *out << "; " << f.count << " x " << f.flags << " " << f.cause;
    if (!f.upstream.empty()) *out << " (of " << f.upstream << ")";
  }
}
inline void PrintTo(const Settled& settled, std::ostream* out) {
  *out << (settled.settled ? "at rest" : "not at rest");
  for (const std::string& each : settled.at_work) *out << "; " << each;
  for (const std::string& each : settled.disconnected) *out << "; " << each << " has no istiod";
  for (const std::string& each : settled.complaints) *out << "; " << each;
}
template <class T>
void PrintTo(const Result<T>& result, std::ostream* out) {
  if (!result.ok()) {
    *out << "an error";
  } else if constexpr (std::is_same_v<T, World> || std::is_same_v<T, Nothing>) {
    *out << "no error";
  } else {
    *out << testing::PrintToString(*result);
  }
}
inline void PrintTo(const Breach& breach, std::ostream* out) { *out << breach.invariant << ": " << breach.what; }

namespace gtest_internal {
inline std::string InMilliseconds(Nanoseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g ms", static_cast<double>(time.count()) / 1e6);
  return text;
}
}  // namespace gtest_internal

/// A Result that is ok.
MATCHER(Succeeded, "succeeded") {
  if (arg.ok()) return true;
  *result_listener << arg.error();
  return false;
}

/// Every request was answered.
MATCHER(AllAnswered, "all requests are answered") { return arg.sent > 0 && arg.failed == 0; }

/// Everything came to rest, and the last proxy used what followed within the given time.
MATCHER_P(ConvergesWithin, limit, "converges within " + gtest_internal::InMilliseconds(limit)) {
  *result_listener << "took " << gtest_internal::InMilliseconds(arg.convergence.total);
  return arg.settled && arg.convergence.total <= limit;
}

namespace gtest_internal {
// Whether counts may be of equal shares: each within five standard deviations of its share, which chance misses once in
// a million times.
inline bool Even(const std::map<std::string, int64_t>& counts, const std::vector<std::string>& names) {
  int64_t all = 0;
  for (const auto& [name, count] : counts) all += count;
  const double share = 1.0 / static_cast<double>(names.size());
  const double expected = static_cast<double>(all) * share, deviation = std::sqrt(expected * (1 - share));
  for (const std::string& name : names) {
    const auto it = counts.find(name);
    if (it == counts.end() || std::abs(static_cast<double>(it->second) - expected) > 5 * deviation) return false;
  }
  return all > 0 && counts.size() == names.size();
}
}  // namespace gtest_internal

/// The versions that answered are these, evenly, up to chance.
MATCHER_P(SplitsEvenlyAmong, versions, "splits evenly among " + testing::PrintToString(versions)) {
  return gtest_internal::Even(arg.by_version, versions);
}
inline auto SplitsEvenly(std::vector<std::string> versions) { return SplitsEvenlyAmong(std::move(versions)); }

/// The same of clusters.
MATCHER_P(SplitsEvenlyAmongClusters, clusters, "splits evenly among clusters " + testing::PrintToString(clusters)) {
  return gtest_internal::Even(arg.by_cluster, clusters);
}

}  // namespace wavetank
