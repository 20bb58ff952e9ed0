// Faults from within: places of our own code where something lawful but rare may happen, as FoundationDB's BUGGIFY.
//
//   delay += BuggifyDelay(BuggifyPoint::kWatchEventLate);
//
// A point does nothing unless its run has it switched on (the input `buggify`, sim/inputs/kinds/buggify.h). It then
// fires now and again, by a random stream of its own (seed and name): another point, on or off, changes nothing for it,
// and the same inputs fire it at the same times. What a point does is something that Kubernetes, gRPC or Go may do at
// any time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "core/base/run_context.h"
#include "core/base/time.h"

namespace wavetank {

enum class BuggifyPoint : uint8_t {
  kWatchEventLate,
  kWatchBroken,
  kWatchExpired,
  kRequestLate,
  kRequestThrottled,
  kAnswerLost,
  kControllerLate,
  kSlicesLate,
  kPodLate,
  kLoadBalancerLate,
  kKubeProxyLate,
  kRegistryLate,
  kDebounceLate,
  kPushOrder,
  kGenerationLate,
  kCacheForgets,
  kCertificateLate,
  kMessageLate,
  kStreamBroken,
  kApplyLate,
  kDnsOrder,
  kDnsFails,
};
inline constexpr size_t kBuggifyPoints = static_cast<size_t>(BuggifyPoint::kDnsFails) + 1;

struct BuggifyRow {
  BuggifyPoint point;
  std::string_view name, says;
  uint64_t chance_ppm;  // of each time that it is passed
  Duration most{};      // of a delay; zero: it is none
};
// In the order of their numbers.
std::span<const BuggifyRow> BuggifyRows();
// Nothing: no point has that name.
std::optional<BuggifyPoint> FindBuggifyPoint(std::string_view name);

// The points of one run, and how often each fired. Found by the run that a thread is busy with (current_run), for as
// long as this stands.
class Buggify {
 public:
  // `run` must outlive it. No other one stands for it.
  Buggify(assertion::RunContext& run, uint64_t seed);
  Buggify(const Buggify&) = delete;
  Buggify& operator=(const Buggify&) = delete;
  ~Buggify();
  // Null: nothing was ever switched on in that run.
  static Buggify* Of(const assertion::RunContext* run);

  // These and no others from now on. Those that go on keep their streams.
  void Switch(const std::vector<BuggifyPoint>& on);
  bool Fires(BuggifyPoint point);
  // Uniform in [0, bound), for what a point that fired does.
  uint64_t Below(BuggifyPoint point, uint64_t bound) { return At(point).stream.Below(bound); }
  int64_t fired(BuggifyPoint point) const { return points_[static_cast<size_t>(point)].fired; }
  // "watch-broken 2, message-late 14": what fired until now; empty if nothing did.
  std::string Fired() const;

 private:
  struct State {
    RandomStream stream;
    bool on = false;
    int64_t fired = 0;
  };
  State& At(BuggifyPoint point) { return points_[static_cast<size_t>(point)]; }

  std::vector<State> points_;
  assertion::RunContext::Registration last_word_;
};

// Of all runs of this process; a point that meets none costs no more than this look.
inline std::atomic<int> buggify_runs{0};

namespace buggify_internal {
bool Fires(BuggifyPoint point);
Duration Delay(BuggifyPoint point);
}  // namespace buggify_internal

inline bool BuggifyFires(BuggifyPoint point) {
  return buggify_runs.load(std::memory_order_relaxed) != 0 && buggify_internal::Fires(point);
}
// Zero unless it fires; then up to its row's `most`.
inline Duration BuggifyDelay(BuggifyPoint point) {
  return buggify_runs.load(std::memory_order_relaxed) == 0 ? Duration::zero() : buggify_internal::Delay(point);
}
// Of a point that has just fired.
uint64_t BuggifyBelow(BuggifyPoint point, uint64_t bound);

}  // namespace wavetank
