// Discovery responses as bytes for gRPC. Resources are encoded once and shared by all proxies with the same view; large
// ones go out as references, so that a push to a thousand clients holds one copy.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "core/xds/messages.h"

namespace wavetank::serve {

// envoy.service.discovery.v3.DiscoveryResponse and DeltaDiscoveryResponse, in their binary form.
grpc::ByteBuffer Encode(const pilot::DiscoveryResponse& response);
grpc::ByteBuffer Encode(const pilot::DeltaDiscoveryResponse& response);

}  // namespace wavetank::serve
