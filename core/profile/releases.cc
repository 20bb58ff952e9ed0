#include "core/profile/releases.h"

namespace wavetank::pilot {

const std::vector<Release>& Releases() {
  static const auto* const rows = new std::vector<Release>{{Profile().base, Profile().istio, Profile().envoy}};
  return *rows;
}

const std::vector<ProfileRow>& ProfileRows() {
  static const auto* const rows = new std::vector<ProfileRow>{
      {Change::kGatewayOncePerCla, "gateway-once-per-cla",
       "each east-west gateway stands once in a ClusterLoadAssignment, not once per locality group", "", "",
       "https://github.com/istio/istio/issues/56355"},
      {Change::kTlsSimpleDropsCrossNetwork, "tls-simple-drops-cross-network",
       "a DestinationRule with TLS mode SIMPLE keeps cross-network endpoints out, as DISABLE does", "1.20", "",
       "https://github.com/istio/istio/issues/46555"},
      {Change::kGracefulSecretUpdate, "graceful-secret-update",
       "a changed remote Secret starts the new registry and syncs it before the old one is removed", "1.30", "",
       "https://github.com/istio/istio/issues/36365"},
      {Change::kUpstreamEnvoy, "upstream-envoy",
       "what a stock Envoy does not know is left out (istio.alpn, metadata exchange, istio.stats)", "", "", ""},
  };
  return *rows;
}

}  // namespace wavetank::pilot
