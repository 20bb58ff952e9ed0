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
  using Counts = absl::flat_hash_map<uint64_t, int64_t>;  // by kind and subject; each record of the trace counts here
  static constexpr Duration kWindow = 10s;

  void Turn(Time now);

  sim::World& world_;
  Counts last_, now_;
  Time turned_{};
};

}  // namespace wavetank::scenario
