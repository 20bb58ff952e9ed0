// What simulated proxies do not ask for, but the comparison does: the name table of each sidecar's agent (NDS), and the
// filters that a proxy's listeners leave to ECDS. A stream of its own per proxy, with the proxy's node.
#pragma once

#include "core/base/time.h"
#include "oracles/control_plane/held_mesh.h"
#include "sim/world.h"

namespace wavetank::serve {

// Asks whoever serves the world's proxies, lets time pass until all have answered, and gives `held` the answers. False:
// somebody has not answered within `limit`.
bool AskBesides(sim::World& world, HeldCollector& held, Duration limit);

}  // namespace wavetank::serve
