// The names of what differs between releases of Istio. Each has a row in core/profile/releases.cc, which says what is
// so with it, and since when. A room asks for one of them, never for a version.
#pragma once

#include <cstdint>

#include "core/profile/profile.h"

namespace wavetank::pilot {

enum class Change : uint8_t {
  kGatewayOncePerCla,
  kTlsSimpleDropsCrossNetwork,
  kGracefulSecretUpdate,
  kUpstreamEnvoy,
};

}  // namespace wavetank::pilot
