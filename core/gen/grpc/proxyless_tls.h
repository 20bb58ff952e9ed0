// Transport sockets of proxyless gRPC: certificates come from the providers "default" of the client's bootstrap, which
// Istio's agent writes (gRFC A29; istiod: pilot/pkg/networking/grpcgen/grpcgen.go, buildCommonTLSContext).
#pragma once

#include <string>
#include <vector>

#include "envoy/config/core/v3/base.pb.h"

namespace wavetank::pilot {

// The server must have one of `sans`; empty: any that the root vouches for.
::envoy::config::core::v3::TransportSocket ProxylessUpstreamTls(const std::vector<std::string>& sans);
// Clients must show a certificate.
::envoy::config::core::v3::TransportSocket ProxylessDownstreamTls();

}  // namespace wavetank::pilot
