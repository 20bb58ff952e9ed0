// Follows a change through the trace: from the object that was written to the proxies that use what became of it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scenarios/results/result.h"
#include "sim/kernel/kernel.h"

namespace wavetank::scenario {

class ConvergenceTracker {
 public:
  // Watches `kernel`'s trace from now on; both live as long as each other.
  explicit ConvergenceTracker(sim::Kernel& kernel);

  // A change begins: what is caused by inputs from number `first` on belongs to it.
  void Begin(Time event, uint64_t first_input);
  // What the change came to, per proxy that got something because of it, slowest first.
  Convergence End() const;

 private:
  struct Moment {
    Time at;
    Duration latency{};  // kWatchDelivered: since the write
  };
  struct Pushing {  // of one istiod
    std::vector<Moment> watches, updates, debounced;
  };
  using ByType = std::vector<std::pair<NameId, std::vector<Moment>>>;  // a handful of types
  struct Receiving {                                                   // of one proxy
    NameId istiod = kNoName;
    std::vector<Moment> queued, dequeued;
    ByType sent, received;
    Time applied{};
    NameId applied_type = kNoName;
    int responses = 0;
  };

  static std::vector<Moment>& OfType(ByType& by_type, NameId type);
  void Observe(const sim::TraceEvent& event);
  bool Concerns(CauseId cause);

  sim::Kernel& kernel_;
  Time event_{};
  uint64_t first_input_ = 0;
  bool on_ = false;
  absl::flat_hash_map<CauseId, bool> concerns_;
  std::map<NameId, NameId> istiod_of_;                   // proxy -> istiod, at all times
  std::map<std::string, Pushing, std::less<>> pushing_;  // by istiod
  absl::flat_hash_map<NameId, Receiving> receiving_;     // looked up for each record of a push
};

}  // namespace wavetank::scenario
