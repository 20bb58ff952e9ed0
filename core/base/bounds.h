// How much of anything may come from outside: every limit in one place, each far above what a mesh needs and far below
// what a machine cannot bear. What exceeds one is refused with a message that names it, before it is expanded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/time.h"

namespace wavetank::bounds {

// Documents, YAML and JSON.
inline constexpr int kDepth = 100;            // levels; libraries recurse when they copy and print
inline constexpr int kJsonDepth = 500;        // of whatever JSON is parsed: dumps, tokens, annotations, answers
inline constexpr int kTextDepth = 1000;       // brackets in YAML that is not parsed yet
inline constexpr size_t kValues = 2'000'000;  // after aliases are expanded
inline constexpr size_t kScenarioBytes = 16u << 20;
inline constexpr size_t kManifestBytes = 64u << 20;
inline constexpr size_t kDumpBytes = size_t{1} << 30;  // of what a command is given as one file
inline constexpr int kScenarioDepth = 64;

// Kubernetes.
inline constexpr size_t kObjectBytes = 3u << 19;  // 1.5 MiB: etcd's --max-request-bytes
inline constexpr int64_t kReplicas = 20'000;      // of one workload

// Scenarios and inputs.
inline constexpr int64_t kPerKilosecond = 1'000'000'000;  // a million requests per second of one flow
inline constexpr int64_t kRequests = 1'000'000'000;       // of one flow
inline constexpr Duration kInputDuration = 24h * 366 * 10;

// Seconds that an object names: none where it says less, at most so many that sums of times stay in range, and beyond
// which nobody waits.
constexpr Duration Seconds(int64_t seconds) {
  constexpr int64_t kMost = kInputDuration / 1s;
  return std::chrono::seconds(seconds < 0 ? 0 : seconds > kMost ? kMost : seconds);
}

}  // namespace wavetank::bounds
