// Watches a world for breaches of invariants. A world with a watch does what it would do without one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/base/observers.h"
#include "sim/invariants/held.h"
#include "sim/invariants/invariant.h"

namespace wavetank::sim {

class InvariantWatch {
 public:
  struct Options {
    // Whether a breach becomes an event of the world's trace, with its causes, and so part of its digest. A replay of a
    // log that knows none of them only tells them.
    bool in_trace = true;
  };

  // From now on, for as long as the watch lives; the world must live as long. InvalidArgument: no invariant has a name.
  static absl::StatusOr<std::unique_ptr<InvariantWatch>> Attach(World& world, const std::vector<std::string>& names,
                                                                const Options& options);
  ~InvariantWatch();

  // In the order of time.
  const std::vector<Violation>& violations() const { return violations_; }
  // Looks once more, as if the control plane had come to rest: before a world ends.
  void LookNow();
  // Something that needs patience is being watched.
  bool InDoubt() const { return impatient_; }

 private:
  friend class Checker;
  struct State {
    Breach breach;
    Time since{};
    size_t violation = 0;  // its number from 1; 0: patience
  };
  using Scope = std::map<std::string, State>;

  InvariantWatch(World& world, const Options& options) : world_(world), options_(options) {}
  void Observe(const TraceEvent& event);
  void ArmRest(Duration delay);
  void ArmTick();
  void AtRest();
  void Rest();
  void Tick();
  void Tell(size_t checker, const std::string& scope, std::vector<Breach> breaches, Duration patience);
  void Flush();

  World& world_;
  const Options options_;
  Held held_;
  struct Entry {
    std::string name;
    std::unique_ptr<Checker> checker;
    std::map<std::string, Scope, std::less<>> scopes;
  };
  std::vector<Entry> checkers_;
  std::vector<Violation> violations_;
  std::vector<std::pair<size_t, CauseId>> untold_;  // violations that the trace does not have yet
  CauseId last_cause_ = kNoCause;
  Time last_event_{};
  bool rest_armed_ = false, tick_armed_ = false, flush_armed_ = false, impatient_ = false, ticked_ = false;
  std::shared_ptr<InvariantWatch*> self_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::sim
