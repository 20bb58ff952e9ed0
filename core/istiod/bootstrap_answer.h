// istiod's answer to an agent that asks for its Envoy's bootstrap (BOOTSTRAP_XDS_AGENT; istiod:
// pilot/pkg/xds/bootstrapds.go).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wavetank::pilot {

class PushContext;
struct Node;
struct Profile;

inline constexpr std::string_view kBootstrapTypeUrl = "type.googleapis.com/envoy.config.bootstrap.v3.Bootstrap";

// A Bootstrap message, encoded: made of the node's own description as the agent would make it, with what EnvoyFilters
// merge into BOOTSTRAP. InvalidArgument: the node is none of a proxy's, or its configuration names what no bootstrap
// has.
absl::StatusOr<std::string> BootstrapFor(const PushContext& push, const Profile& profile, const Node& node);

}  // namespace wavetank::pilot
