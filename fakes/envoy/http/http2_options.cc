#include "fakes/envoy/http/http2_options.h"

#include "envoy/config/core/v3/protocol.pb.h"

namespace wavetank::envoysim {

absl::StatusOr<uint32_t> ConcurrentStreams(const envoy::config::core::v3::Http2ProtocolOptions& options,
                                           EnvoyRelease release) {
  if (!options.has_max_concurrent_streams())
    return release.Has(EnvoyChange::kStreamsAreBounded) ? 1024 : kAnyNumberOfStreams;
  const uint32_t said = options.max_concurrent_streams().value();
  if (said == 0 || said > kAnyNumberOfStreams) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (Http2ProtocolOptionsValidationError.MaxConcurrentStreams: value must be "
        "inside range [1, 2147483647])");
  }
  return said;
}

}  // namespace wavetank::envoysim
