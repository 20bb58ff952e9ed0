// What ProxyConfig adds to a bootstrap: tracers, metrics and access log services, statsd. Private to this room.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/agent/bootstrap.h"

namespace wavetank::agent {

inline constexpr char kType[] = "@type";

nlohmann::ordered_json TcpAddress(const std::string& address, int port);
nlohmann::ordered_json StaticCluster(const std::string& name, const nlohmann::ordered_json& address);
void AddHttp2(nlohmann::ordered_json& cluster);

struct BootstrapParts {
  std::vector<nlohmann::ordered_json> clusters;
  nlohmann::ordered_json tracing;  // null: none
  nlohmann::ordered_json stats_sinks = nlohmann::ordered_json::array();
};
// InvalidArgument: an address without a port; FailedPrecondition: a tracer that needs a cloud's platform.
absl::StatusOr<BootstrapParts> MakeBootstrapParts(const pilot::ProxyBootstrap& proxy,
                                                  const EnvoyBootstrapOptions& options,
                                                  const std::string& lookup_family);

}  // namespace wavetank::agent
