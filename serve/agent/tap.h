// istiod's debug pages through an agent, at its port 15004 (istiod: pkg/istio-agent/xds_proxy.go, makeTapHandler): a
// GET of /debug/NAME becomes a request of the type istio.io/debug/NAME on the agent's own stream, and what istiod
// answers is printed as JSON.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/agent/xds_relay.h"
#include "fakes/kube/http/message/message.h"

namespace envoy::service::discovery::v3 {
class DiscoveryResponse;
}

namespace wavetank::serve {

// How long the agent waits for istiod.
inline constexpr Duration kTapPatience = 5s;

// What a request asks of istiod, or the answer to one that asks nothing: 404, or 400 for a query that cannot be read.
struct TapQuestion {
  std::optional<agent::OwnRequest> ask;
  fakekube::http::Response refusal;
};
TapQuestion ReadTap(const fakekube::http::Request& request);

// A DiscoveryResponse as JSON: protobuf's, with what its resources hold opened; as Go prints the structure where that
// is none of Envoy's types (the pages of istio.io/debug).
std::string TapJson(const envoy::service::discovery::v3::DiscoveryResponse& response);

// 200 with that JSON; 503 for Unavailable, 504 without words for DeadlineExceeded.
fakekube::http::Response TapResponse(const absl::StatusOr<std::string>& json);

}  // namespace wavetank::serve
