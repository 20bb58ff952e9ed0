// What every cluster's API server says of itself: the Service `kubernetes` in `default`, its Endpoints and its slice,
// the certificate by which pods know it, and the roles that RBAC begins with (default_roles.yaml).
#pragma once

#include "absl/status/status.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::serve {

// Applies them to every cluster that has no such Service, as inputs. No server listens at their address, which is that
// of the first node: pods of a simulated world talk to no API server through its network.
absl::Status DefineKubernetesService(sim::World& world);

}  // namespace wavetank::serve
