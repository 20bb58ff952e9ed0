// The fault filter's configuration, from the HTTP filter chain or a route.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "fakes/envoy/route_config.h"

namespace envoy::extensions::filters::http::fault::v3 {
class HTTPFault;
}
namespace envoy::type::v3 {
class FractionalPercent;
}

namespace wavetank::envoysim {

uint32_t PartsPerMillion(const envoy::type::v3::FractionalPercent& percent);

absl::StatusOr<FaultConfig> CompileFault(const envoy::extensions::filters::http::fault::v3::HTTPFault& fault);

}  // namespace wavetank::envoysim
