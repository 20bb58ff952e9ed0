// Proxyless gRPC: applications whose gRPC library asks istiod itself (istiod: pilot/pkg/model/context.go,
// IsProxylessGrpc).
#pragma once

#include <string_view>

#include "core/model/proxy.h"

namespace wavetank::pilot {

// GENERATOR of their node's metadata: chooses the generators, too.
inline constexpr std::string_view kGrpcGenerator = "grpc";

inline bool IsProxylessGrpc(const Proxy& proxy) { return proxy.metadata.generator == kGrpcGenerator; }

}  // namespace wavetank::pilot
