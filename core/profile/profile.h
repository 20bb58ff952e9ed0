// Behaviour profiles: Istio 1.18.2 with its known bugs, and one named switch per rule that a later version changed.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wavetank::pilot {

struct Profile {
  // istio#56355: emit each east-west gateway once per ClusterLoadAssignment, not once per locality group.
  bool gateway_once_per_cla = false;
  // istio#46555: a DestinationRule with TLS mode SIMPLE keeps cross-network endpoints out, as DISABLE does.
  bool tls_simple_drops_cross_network = false;
  // istio#36365: a changed remote Secret starts the new registry and syncs it before the old one is removed.
  bool graceful_secret_update = false;
  // Not of istiod: leave out what a stock Envoy does not know (istio.alpn, metadata exchange, istio.stats).
  bool upstream_envoy = false;

  std::string Name() const;  // "istio-1.18+gateway-once-per-cla"
};

// "istio-1.18" followed by "+switch" any number of times; InvalidArgument lists the known switches.
absl::StatusOr<Profile> ParseProfile(std::string_view name);

}  // namespace wavetank::pilot
