// Who keeps a world from coming to rest: what istiods, agents and Envoys' configuration do most, lately.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

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
  using Counts = std::map<std::pair<TraceKind, NameId>, int64_t>;
  static constexpr Duration kWindow = 10s;

  void Turn(Time now);

  sim::World& world_;
  Counts last_, now_;
  Time turned_{};
};

}  // namespace wavetank::scenario
