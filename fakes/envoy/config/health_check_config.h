// An envoy.config.core.v3.HealthCheck, compiled: how a cluster's hosts are asked whether they are well.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/http/header_operations.h"
#include "fakes/envoy/lb/endpoint_table.h"
#include "fakes/envoy/match/matchers.h"

namespace envoy::config::core::v3 {
class HealthCheck;
}

namespace wavetank::envoysim {

class Extensions;
struct RequestSpec;

struct HealthCheckConfig {
  enum class Kind : uint8_t { kHttp, kTcp, kGrpc };
  Kind kind = Kind::kHttp;
  Duration timeout{}, interval{};
  // Of a cluster that no connection was made to yet.
  Duration no_traffic_interval = 60s, no_traffic_healthy_interval = 60s;
  Duration unhealthy_interval{}, unhealthy_edge_interval{}, healthy_edge_interval{};
  Duration initial_jitter{}, interval_jitter{};
  uint32_t interval_jitter_percent = 0;
  uint32_t unhealthy_threshold = 1, healthy_threshold = 1;
  bool reuse_connection = true;
  std::vector<std::string> alpn;               // in place of the transport socket's; empty: as that has it
  std::optional<StringPairs> socket_criteria;  // in place of the endpoint's, sorted
  // HTTP, and `host` of gRPC, too.
  std::string method = "GET", host, path;
  bool http2 = false;
  HeaderOperations headers;
  using Statuses = std::vector<std::pair<uint64_t, uint64_t>>;  // from, and below
  Statuses expected, retriable;
  std::optional<StringMatch> service_name;
};

// InvalidArgument: Envoy refuses the check. Null: it is of a kind that is not simulated, as the notes say.
absl::StatusOr<std::shared_ptr<const HealthCheckConfig>> CompileHealthCheck(
    const envoy::config::core::v3::HealthCheck& check, const Extensions& extensions);

// What is asked of the host at `address` of a cluster; `hostname`: of the endpoint's own, if it has one.
std::shared_ptr<const RequestSpec> HealthCheckRequest(const HealthCheckConfig& config, const std::string& cluster,
                                                      const std::string& hostname, const SocketAddress& address,
                                                      Time now);

}  // namespace wavetank::envoysim
