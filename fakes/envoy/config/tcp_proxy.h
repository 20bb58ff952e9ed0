// A tcp_proxy, compiled.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/envoy/access_log/access_log.h"
#include "fakes/envoy/config/route_config.h"

namespace envoy::extensions::filters::network::tcp_proxy::v3 {
class TcpProxy;
}

namespace wavetank::envoysim {

struct TcpProxy {
  std::string stat_prefix;
  std::string cluster;
  std::vector<WeightedCluster> clusters;
  uint32_t total_weight = 0;
  uint32_t max_connect_attempts = 1;
  bool hash_source_ip = false;
  Duration idle_timeout{};  // 0: none (nothing asked for: an hour, which no run waits for)
  Duration max_duration{};  // of a connection; 0: none
  std::shared_ptr<const AccessLogs> logs;
};

// InvalidArgument with Envoy's words if it would be refused.
absl::StatusOr<TcpProxy> CompileTcpProxy(const envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy& message,
                                         const Extensions& extensions);

}  // namespace wavetank::envoysim
