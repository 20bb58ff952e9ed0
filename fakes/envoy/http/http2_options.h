// How many requests at a time a connection of HTTP/2 carries: of a cluster's pools, and of a connection manager.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "fakes/envoy/extensions/release.h"

namespace envoy::config::core::v3 {
class Http2ProtocolOptions;
}

namespace wavetank::envoysim {

// HTTP/2 has no more names for streams.
inline constexpr uint32_t kAnyNumberOfStreams = 2147483647;

// InvalidArgument: Envoy's words if it would be refused. What is not said is the release's default.
absl::StatusOr<uint32_t> ConcurrentStreams(const envoy::config::core::v3::Http2ProtocolOptions& options,
                                           EnvoyRelease release);

}  // namespace wavetank::envoysim
