#include "fakes/envoy/filters/registry.h"

#include <array>

#include "fakes/envoy/filters/alpn.h"
#include "fakes/envoy/filters/cors.h"
#include "fakes/envoy/filters/ext_authz.h"
#include "fakes/envoy/filters/fault.h"
#include "fakes/envoy/filters/heads/compressor.h"
#include "fakes/envoy/filters/heads/dynamic_forward.h"
#include "fakes/envoy/filters/heads/header_mutation.h"
#include "fakes/envoy/filters/heads/header_to_metadata.h"
#include "fakes/envoy/filters/heads/health_check.h"
#include "fakes/envoy/filters/istio_authn.h"
#include "fakes/envoy/filters/jwt_filter.h"
#include "fakes/envoy/filters/limits/buffer.h"
#include "fakes/envoy/filters/limits/local_ratelimit.h"
#include "fakes/envoy/filters/limits/ratelimit.h"
#include "fakes/envoy/filters/lua/lua.h"
#include "fakes/envoy/filters/rbac.h"
#include "fakes/envoy/filters/terminal.h"

namespace wavetank::envoysim {

const FilterRegistry& AllFilters() {
  static const std::array http = {
      AlpnFilterType(),           BufferFilterType(),      CompressorFilterType(), RateLimitFilterType(),
      CorsFilterType(),           ExtAuthzFilterType(),    FaultFilterType(),      HeaderToMetadataFilterType(),
      HeaderMutationFilterType(), HealthCheckFilterType(), IstioAuthnFilterType(), JwtFilterType(),
      LocalRateLimitFilterType(), LuaFilterType(),         RbacFilterType(),       RouterFilterType(),
      DynamicForwardFilterType(),
  };
  static const std::array network = {
      ConnectionManagerType(), NetworkExtAuthzType(), NetworkIstioAuthnType(), NetworkRbacType(),
      SniClusterType(),        TcpProxyType(),        SniDynamicForwardType(),
  };
  static const FilterRegistry registry(http, network);
  return registry;
}

}  // namespace wavetank::envoysim
