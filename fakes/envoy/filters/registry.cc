#include "fakes/envoy/filters/registry.h"

#include <array>

#include "fakes/envoy/filters/alpn.h"
#include "fakes/envoy/filters/cors.h"
#include "fakes/envoy/filters/ext_authz.h"
#include "fakes/envoy/filters/fault.h"
#include "fakes/envoy/filters/istio_authn.h"
#include "fakes/envoy/filters/jwt_filter.h"
#include "fakes/envoy/filters/rbac.h"
#include "fakes/envoy/filters/terminal.h"

namespace wavetank::envoysim {

const FilterRegistry& AllFilters() {
  static const std::array http = {
      AlpnFilterType(),       CorsFilterType(), ExtAuthzFilterType(), FaultFilterType(),
      IstioAuthnFilterType(), JwtFilterType(),  RbacFilterType(),     RouterFilterType(),
  };
  static const std::array network = {
      ConnectionManagerType(), NetworkExtAuthzType(), NetworkIstioAuthnType(),
      NetworkRbacType(),       SniClusterType(),      TcpProxyType(),
  };
  static const FilterRegistry registry(http, network);
  return registry;
}

}  // namespace wavetank::envoysim
