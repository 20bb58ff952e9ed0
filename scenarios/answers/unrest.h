// Who keeps a world from coming to rest: what istiods, agents and Envoys' configuration do most, lately.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sim/kernel/kernel.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

class Unrest {
 public:
  // Watches `world`'s trace from now on; both live as long as each other.
  explicit Unrest(sim::World& world);

  // "cluster1: istiod ... has pushes to do", "istiod-...: 40 XdsDisconnected in the last 10 s". Empty: at rest.
  std::vector<std::string> Reasons() const;

 private:
  // What a window's records were, by kind and subject. Each record of the trace is noted, and hardly anybody asks: so
  // it is counted when they ask, or when there is too much to keep.
  struct Window {
    std::vector<uint64_t> noted;
    absl::flat_hash_map<uint64_t, int64_t> counts;  // of those that are noted no more
  };
  static constexpr Duration kWindow = 10s;
  static constexpr size_t kMostNoted = size_t{1} << 20;

  void Turn(Time now);

  sim::World& world_;
  Window last_, now_;
  Time turned_{};
};

}  // namespace wavetank::scenario
