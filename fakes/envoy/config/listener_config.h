// An envoy.config.listener.v3.Listener, compiled: listener filters, filter chains by Envoy's matching tree, and what
// the chains do.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/access_log/access_log.h"
#include "fakes/envoy/config/filter_chain_match.h"
#include "fakes/envoy/config/http_connection_manager.h"
#include "fakes/envoy/config/network_filter.h"
#include "fakes/envoy/config/tcp_proxy.h"
#include "fakes/envoy/extensions/dns_cache_config.h"
#include "fakes/envoy/match/hash128.h"
#include "fakes/envoy/tcp/address.h"
#include "fakes/envoy/tls/tls_config.h"

namespace envoy::config::listener::v3 {
class Listener;
}

namespace wavetank::envoysim {

// The server name that a client asks for is looked up, at that port (sni_dynamic_forward_proxy).
struct SniLookup {
  DnsCacheConfig cache;
  uint16_t port = 0;
};

struct FilterChain {
  Hash128 hash;  // of everything but the match: a connection stays with an equal chain of a changed listener
  std::string name;
  TransportSocket socket;
  std::vector<std::shared_ptr<const NetworkFilter>> filters;  // in their order, before the one that ends the chain
  bool reads = false;                                         // whether any of them decides about bytes
  std::optional<HttpConnectionManager> http;
  std::optional<TcpProxy> tcp;
  std::optional<SniLookup> sni_lookup;                   // before its tcp_proxy connects
  std::vector<std::shared_ptr<const IstioStats>> stats;  // its filters istio.stats, of connections
  bool exchanges_peers = false;                          // whom it speaks kPeerExchange with is told who it is
};

// envoy.config.listener.v3.ListenerFilterChainMatchPredicate, as far as ports go.
struct PortPredicate {
  enum class Kind : uint8_t { kNever, kRange, kAnyOf, kAllOf, kNot, kAlways };
  Kind kind = Kind::kNever;
  uint32_t start = 0, end = 0;  // [start, end)
  std::vector<PortPredicate> rules;
  bool Matches(uint16_t port) const;
};

struct ListenerConfig {
  Hash128 hash;
  std::string name;
  SocketAddress address;
  std::vector<SocketAddress> additional;
  bool bind_to_port = true;
  bool use_original_dst = false;
  bool inbound = false;       // traffic_direction
  bool original_dst = false;  // listener filter
  bool tls_inspector = false;
  bool http_inspector = false;
  bool proxy_protocol = false, allows_no_proxy_protocol = false;  // what connections begin with
  PortPredicate tls_inspector_disabled, http_inspector_disabled;
  bool continue_on_timeout = false;
  Duration listener_filters_timeout = 15s;  // 0: none
  FilterChainMatcher matcher;
  std::vector<FilterChain> chains;
  std::optional<uint32_t> default_chain;     // index into chains
  std::vector<std::string> route_names;      // RDS, sorted
  Duration rds_initial_fetch_timeout{};      // the longest of them; 0: for good
  std::vector<DiscoveredFilter> extensions;  // ECDS, in their order
  Duration ecds_initial_fetch_timeout{};     // as of routes, of those that wait
  std::vector<std::string> secrets;
  std::vector<ClusterUse> validated;       // of inline routes: clusters that must be there
  std::shared_ptr<const AccessLogs> logs;  // of its connections
  Extensions::Notes without_effect;        // of all its filters
};

// InvalidArgument: Envoy would refuse the listener; the message is what its NACK says.
absl::StatusOr<std::shared_ptr<const ListenerConfig>> CompileListener(
    const envoy::config::listener::v3::Listener& listener, const Hash128& hash, const Extensions& extensions);

}  // namespace wavetank::envoysim
