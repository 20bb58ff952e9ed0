#include "fakes/envoy/config/tcp_proxy.h"

#include "envoy/config/accesslog/v3/accesslog.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "fakes/envoy/match/proto_time.h"

namespace wavetank::envoysim {

absl::StatusOr<TcpProxy> CompileTcpProxy(const envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy& proto,
                                         const Extensions& extensions) {
  using Proto = envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
  TcpProxy out;
  out.stat_prefix = proto.stat_prefix();
  if (out.stat_prefix.empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (TcpProxyValidationError.StatPrefix: value length must be at "
        "least 1 characters)");
  }
  if (absl::Status s = AddAccessLogs(proto.access_log(), extensions, &out.logs); !s.ok()) return s;
  if (proto.has_max_connect_attempts())
    out.max_connect_attempts = std::max<uint32_t>(proto.max_connect_attempts().value(), 1);
  if (proto.has_idle_timeout()) out.idle_timeout = ToDuration(proto.idle_timeout());
  out.max_duration = ToDuration(proto.max_downstream_connection_duration());
  for (const auto& policy : proto.hash_policy()) out.hash_source_ip |= policy.has_source_ip();
  switch (proto.cluster_specifier_case()) {
    case Proto::kCluster:
      out.cluster = proto.cluster();
      break;
    case Proto::kWeightedClusters:
      for (const auto& c : proto.weighted_clusters().clusters()) {
        out.clusters.push_back({c.name(), c.weight(), nullptr});
        out.total_weight += c.weight();
      }
      break;
    default:
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (field: \"cluster_specifier\", reason: is required)");
  }
  return out;
}

}  // namespace wavetank::envoysim
