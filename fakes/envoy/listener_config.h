// An envoy.config.listener.v3.Listener, compiled: listener filters, filter chains by Envoy's matching tree, and what
// the chains do.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "fakes/envoy/access_log.h"
#include "fakes/envoy/address.h"
#include "fakes/envoy/ext_authz_config.h"
#include "fakes/envoy/hash128.h"
#include "fakes/envoy/http.h"
#include "fakes/envoy/istio_authn.h"
#include "fakes/envoy/jwt_authn.h"
#include "fakes/envoy/rbac_config.h"
#include "fakes/envoy/route_config.h"
#include "fakes/envoy/string_map.h"
#include "fakes/envoy/tls_config.h"

namespace envoy::config::listener::v3 {
class Listener;
}

namespace wavetank::envoysim {

// The istio.alpn HTTP filter: which ALPN to offer upstream, by the request's protocol (indexed by HttpProtocol).
struct AlpnFilter {
  std::array<std::vector<std::string>, 3> offers;
  std::array<uint64_t, 3> ids{};  // equal lists have equal ids
};

// A filter that decides whether a request goes on, or notes what such a one wants to know.
using AuthorizationFilter =
    std::variant<RbacFilter, ExtAuthzFilter, std::shared_ptr<const JwtAuthnFilter>, IstioAuthnFilter>;

using NetworkAuthorizationFilter = std::variant<RbacFilter, ExtAuthzFilter>;

struct HttpConnectionManager {
  std::string stat_prefix;
  std::shared_ptr<const RouteTable> routes;  // inline; nullptr: by RDS
  std::string rds_name;
  Duration rds_initial_fetch_timeout = 15s;
  std::optional<AlpnFilter> alpn;
  std::optional<FaultConfig> fault;
  bool has_fault_filter = false;
  bool has_router = false;
  std::string router_name;
  std::vector<AuthorizationFilter> authorization;  // in the order in which they are asked
  bool use_remote_address = false;
  uint32_t xff_num_trusted_hops = 0;
  Duration stream_idle_timeout = 5min;
  std::shared_ptr<const AccessLogs> logs;  // nullptr: none, as below
};

struct TcpProxy {
  std::string stat_prefix;
  std::string cluster;
  std::vector<WeightedCluster> clusters;
  uint32_t total_weight = 0;
  uint32_t max_connect_attempts = 1;
  bool hash_source_ip = false;
  std::shared_ptr<const AccessLogs> logs;
};

struct FilterChain {
  Hash128 hash;  // of everything but the match: a connection stays with an equal chain of a changed listener
  std::string name;
  TransportSocket socket;
  bool sni_cluster = false;
  bool istio_authn = false;                               // writes down who the peer is, for RBAC
  std::vector<NetworkAuthorizationFilter> authorization;  // asked about a connection's first bytes, in order
  std::optional<HttpConnectionManager> http;
  std::optional<TcpProxy> tcp;
};

// What listener filters found out about a new connection.
struct ConnectionProperties {
  SocketAddress destination;
  SocketAddress source;
  std::string_view server_name;         // lower case
  std::string_view transport_protocol;  // "tls" or "raw_buffer"
  const std::vector<std::string>* application_protocols = nullptr;
};

// Filter chain matching. No step goes back to an earlier one: a more specific match that leads nowhere is a miss.
// Envoy: source/common/listener_manager/filter_chain_manager_impl.cc, findFilterChain
class FilterChainMatcher {
 public:
  struct Match {
    uint16_t destination_port = 0;  // 0: any
    std::vector<IpPrefix> destinations;
    std::vector<std::string> server_names;  // "*.foo.com" as ".foo.com"; "*" and none: any
    std::string transport_protocol;
    std::vector<std::string> application_protocols;
    std::vector<IpPrefix> direct_sources;
    uint8_t source_type = 0;  // ANY, SAME_IP_OR_LOOPBACK, EXTERNAL
    std::vector<IpPrefix> sources;
    std::vector<uint16_t> source_ports;
  };
  // False if an earlier chain has the same rules.
  bool Add(const Match& match, uint32_t chain);
  // Index of the chain, or nothing.
  std::optional<uint32_t> Find(const ConnectionProperties& connection) const;
  bool empty() const { return ports_.empty(); }

 private:
  template <typename T>
  struct PrefixMap {
    // Sorted by length, longest first; the empty prefix stands for any address.
    std::vector<std::pair<std::optional<IpPrefix>, T>> entries;
    T& At(const std::optional<IpPrefix>& prefix);
    const T* Find(const IpAddress& ip) const;
  };
  using SourcePorts = std::map<uint16_t, uint32_t>;
  using Sources = PrefixMap<SourcePorts>;
  using SourceTypes = std::array<Sources, 3>;
  using DirectSources = PrefixMap<SourceTypes>;
  using Applications = StringMap<DirectSources>;
  using Transports = StringMap<Applications>;
  using ServerNames = StringMap<Transports>;
  using Destinations = PrefixMap<ServerNames>;

  const SourceTypes* FindInServerNames(const ServerNames& names, const ConnectionProperties& c) const;

  absl::flat_hash_map<uint16_t, Destinations> ports_;
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
  PortPredicate tls_inspector_disabled, http_inspector_disabled;
  bool continue_on_timeout = false;
  Duration listener_filters_timeout = 15s;  // 0: none
  FilterChainMatcher matcher;
  std::vector<FilterChain> chains;
  std::optional<uint32_t> default_chain;  // index into chains
  std::vector<std::string> route_names;   // RDS, sorted
  Duration rds_initial_fetch_timeout{};   // the longest of them; 0: for good
  std::vector<std::string> secrets;
  std::vector<ClusterUse> validated;       // of inline routes: clusters that must be there
  std::shared_ptr<const AccessLogs> logs;  // of its connections
};

absl::StatusOr<std::shared_ptr<const ListenerConfig>> CompileListener(
    const envoy::config::listener::v3::Listener& listener, const Hash128& hash, ExtensionSet extensions);

}  // namespace wavetank::envoysim
