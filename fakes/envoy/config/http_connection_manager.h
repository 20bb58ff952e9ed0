// An HTTP connection manager, compiled: where its routes come from, and its filters in the order of their chain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/access_log/access_log.h"
#include "fakes/envoy/config/discovered_filter.h"
#include "fakes/envoy/config/filter_registry.h"
#include "fakes/envoy/config/route_config.h"
#include "fakes/envoy/http/arrival.h"
#include "fakes/envoy/http/local_replies.h"
#include "fakes/envoy/http/path_normalisation.h"

namespace envoy::extensions::filters::network::http_connection_manager::v3 {
class HttpConnectionManager;
}

namespace wavetank::envoysim {

class IstioStats;

struct HttpConnectionManager {
  std::string stat_prefix;
  std::shared_ptr<const RouteTable> routes;  // inline; nullptr: by RDS
  std::string rds_name;
  Duration rds_initial_fetch_timeout = 15s;
  std::vector<HttpFilterLink> filters;  // those that do something, the router last
  // Of types of upgrades that have some of their own, in lower case, in the place of all these.
  std::vector<std::pair<std::string, std::shared_ptr<const std::vector<HttpFilterLink>>>> upgrade_filters;
  std::vector<DiscoveredFilter> discovered;  // by place; their links in `filters` have no filter
  bool filters_see_replies = false;          // some of them
  bool disables_filters = false;             // the same: until a route enables them
  ArrivalRules arrival;
  // HttpConnectionManager.ServerHeaderTransformation, and the line that it writes.
  enum class ServerHeader : uint8_t { kOverwrite, kAppendIfAbsent, kPassThrough };
  ServerHeader server_header = ServerHeader::kOverwrite;
  std::string server_line = "server: envoy\n";
  Duration stream_idle_timeout = 5min;
  Duration request_timeout{};                          // until a request is here with all its body; 0: none
  Duration delayed_close_timeout = 1s;                 // what is left to a client to close what it was told to
  Duration idle_timeout{}, max_connection_duration{};  // 0: none
  Duration drain_timeout = 5s;                         // between "use it no more" and its end
  Duration max_stream_duration{};                      // of what no route says otherwise; 0: none
  uint32_t max_requests_per_connection = 0;            // 0: any number
  bool accepts_http10 = false;                         // others are told to upgrade
  uint32_t max_concurrent_streams = 0;                 // HTTP/2; what clients are told
  PathNormalisation paths;
  std::shared_ptr<const LocalReplyRules> local_replies;  // nullptr: answers of its own stay as they are
  std::shared_ptr<const AccessLogs> logs;                // nullptr: none
  std::vector<std::shared_ptr<const IstioStats>> stats;  // its filters istio.stats
  bool exchanges_peers = false;                          // it tells who it is, and asks (PeerInfo)
  bool counts_messages = false;                          // of gRPC, for those (grpc_stats)
};

// InvalidArgument with Envoy's words if it would be refused.
absl::StatusOr<HttpConnectionManager> CompileHttpConnectionManager(
    const envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager& message,
    const Extensions& extensions);

}  // namespace wavetank::envoysim
