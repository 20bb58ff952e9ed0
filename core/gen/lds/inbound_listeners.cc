#include "core/gen/lds/inbound_listeners.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/gen/lds/downstream_tls.h"
#include "core/gen/rds/default_routes.h"
#include "core/gen/rds/patch_routes.h"
#include "core/gen/view/destination_cluster.h"
#include "core/gen/view/done_for.h"
#include "core/gen/view/listener_filters.h"
#include "core/gen/view/metadata_exchange.h"
#include "core/gen/view/proxy_view.h"
#include "core/gen/view/stat_prefix.h"
#include "core/gen/wire/wire.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/push/sidecar_scope.h"
#include "envoy/config/listener/v3/listener.pb.h"

namespace wavetank::pilot {
namespace {

using ListenerPb = ::envoy::config::listener::v3::Listener;

constexpr std::string_view kVirtualInbound = "virtualInbound";

// What one inbound port, or the rest of them, is generated from (istiod: inboundChainConfig).
struct InboundChain {
  std::string cluster, bind, hostname;  // hostname: of the first service of the port
  ServiceAttributes attributes;         // of that service
  std::string port_name;
  int service_port = 0;
  uint32_t target_port = 0;
  Protocol protocol = Protocol::kUnsupported;
  std::string metadata;  // of the Sidecar that asks for it
  bool passthrough = false;
  bool any_family = false;  // of the passthrough: one for IPv4 and IPv6
  bool bind_to_port = false;
  bool anywhere = false;  // it stands at wildcards, not where somebody said

  std::string Name(bool http) const {
    if (passthrough) return http ? "virtualInbound-catchall-http" : std::string(kVirtualInbound);
    return ListenerName(bind, target_port);
  }
};

class InboundListeners {
 public:
  explicit InboundListeners(ListenerScope& scope)
      : scope_(scope),
        proxy_(scope.proxy),
        mesh_(scope.push.mesh()),
        authn_(scope.push.authn().ComposeForWorkload(proxy_.metadata.ns, proxy_.labels)),
        http_socket_(InboundMutualTlsSocket(proxy_, mesh_, scope.push.profile(),
                                            scope.push.env().features.validates_trust_domains, true)),
        tcp_socket_(InboundMutualTlsSocket(proxy_, mesh_, scope.push.profile(),
                                           scope.push.env().features.validates_trust_domains, false)) {
    if (scope.istio_authn) authentication_ = IstioAuthnFilter();
    if (scope.istio_filters) metadata_exchange_ = MetadataExchangeFilter(scope.push);
    retries_ = DoneFor(proxy_, scope.push.profile(), Change::kInboundRetries);
  }

  std::vector<Listener> Build() {
    std::vector<Listener> out;
    std::vector<FilterChain> virtual_chains = PassthroughChains();
    std::vector<Listener> custom;
    for (const auto& [port, config] : Configs()) {
      std::vector<FilterChain> chains = ChainsOf(config);
      if (config.bind_to_port) {
        custom.push_back(Finish(config.Name(false), config.bind, port, true, std::move(chains)));
        if (config.anywhere) custom.back().more_addresses = scope_.ExtraWildcard();
      } else {
        for (FilterChain& chain : chains) virtual_chains.push_back(std::move(chain));
      }
    }
    if (GetInterceptionMode(proxy_) != InterceptionMode::kNone) {
      out.push_back(Finish(std::string(kVirtualInbound), std::string(scope_.wildcard),
                           static_cast<uint32_t>(mesh_.proxy_inbound_listen_port), false, std::move(virtual_chains)));
      out.back().more_addresses = scope_.ExtraWildcard();
    }
    for (Listener& listener : custom) out.push_back(std::move(listener));
    return out;
  }

 private:
  static constexpr ListenerClass kClass = ListenerClass::kSidecarInbound;

  // By target port. A port that two services share belongs to the older one, its protocol too.
  std::map<uint32_t, InboundChain> Configs() const {
    std::map<uint32_t, InboundChain> out;
    if (proxy_.sidecar_scope != nullptr && proxy_.sidecar_scope->HasIngressListener()) {
      for (const auto& listener : proxy_.sidecar_scope->sidecar->spec.ingress) AddIngress(listener, out);
      return out;
    }
    // Without redirection the application itself listens on these ports.
    if (GetInterceptionMode(proxy_) == InterceptionMode::kNone) return out;
    for (const ServiceInstance& instance : proxy_.service_instances) AddInstance(instance, out);
    return out;
  }

  void AddInstance(const ServiceInstance& instance, std::map<uint32_t, InboundChain>& out) const {
    const Service& service = *instance.service;
    InboundChain chain;
    chain.target_port = instance.endpoint.endpoint_port;
    chain.cluster = BuildInboundSubsetKey(static_cast<int>(chain.target_port));
    chain.bind = scope_.wildcard;
    chain.hostname = service.hostname;
    chain.attributes = service.attributes;
    chain.port_name = instance.service_port.name;
    chain.service_port = instance.service_port.port;
    chain.protocol = instance.service_port.protocol;
    out.emplace(chain.target_port, std::move(chain));
  }

  // TLS settings of a Sidecar's ingress are not read: ENABLE_TLS_ON_SIDECAR_INGRESS is off by default.
  void AddIngress(const config::SidecarIngressListener& listener, std::map<uint32_t, InboundChain>& out) const {
    InboundChain chain;
    chain.target_port = listener.port.number;
    chain.cluster = BuildInboundSubsetKey(static_cast<int>(chain.target_port));
    chain.bind_to_port = listener.capture_mode == config::CaptureMode::kDefault
                             ? GetInterceptionMode(proxy_) == InterceptionMode::kNone
                             : listener.capture_mode == config::CaptureMode::kNone;
    if (!proxy_.CanBindToPort(chain.bind_to_port, chain.target_port)) return;
    if (Has(Change::kIngressChainsNameSidecar)) {
      config::ConfigMeta meta;
      meta.kind = config::Kind::kSidecar;
      meta.name = proxy_.sidecar_scope->name;
      meta.ns = proxy_.sidecar_scope->ns;
      chain.metadata = ConfigInfoMetadata(meta, scope_.push);
    }
    chain.bind = listener.bind;
    if (chain.bind.empty()) chain.bind = GlobalUnicastIp(proxy_);
    chain.anywhere = chain.bind.empty();
    if (chain.anywhere) chain.bind = scope_.wildcard;
    chain.hostname = absl::StrCat(proxy_.sidecar_scope->name, ".", proxy_.sidecar_scope->ns);
    chain.attributes.registry = Provider::kExternal;
    chain.port_name = listener.port.name;
    chain.service_port = static_cast<int>(listener.port.number);
    chain.protocol = ParseProtocol(listener.port.protocol);
    if (chain.bind_to_port &&
        StaticListeners(proxy_).ConflictWith(chain.bind, static_cast<int>(chain.target_port), chain.protocol)) {
      return;
    }
    out.emplace(chain.target_port, std::move(chain));
  }

  // For ports that no service names; also where a PeerAuthentication has an opinion on such a port.
  std::vector<FilterChain> PassthroughChains() {
    std::vector<FilterChain> out;
    out.push_back(Blackhole());
    const bool any_family = Has(Change::kOneInboundPassthrough);
    for (const bool v4 : {true, false}) {
      if (any_family ? !v4 : v4 ? !SupportsIpv4(proxy_) : !SupportsIpv6(proxy_)) continue;
      InboundChain chain;
      chain.any_family = any_family;
      chain.cluster = any_family ? std::string(kInboundPassthroughCluster)
                      : v4       ? "InboundPassthroughClusterIpv4"
                                 : "InboundPassthroughClusterIpv6";
      chain.attributes.registry = Provider::kExternal;
      chain.port_name = kVirtualInbound;
      chain.passthrough = true;
      Append(ChainsOf(chain), out);
      for (const auto& [port, mode] : authn_.per_port) {
        if (IsHandledElsewhere(port)) continue;
        chain.target_port = port;
        Append(ChainsOf(chain), out);
      }
    }
    return out;
  }

  static void Append(std::vector<FilterChain> chains, std::vector<FilterChain>& out) {
    for (FilterChain& chain : chains) out.push_back(std::move(chain));
  }

  bool IsHandledElsewhere(uint32_t port) const {
    if (proxy_.sidecar_scope != nullptr && proxy_.sidecar_scope->HasIngressListener()) {
      for (const auto& listener : proxy_.sidecar_scope->sidecar->spec.ingress) {
        if (listener.port.number == port) return true;
      }
      return false;
    }
    for (const ServiceInstance& instance : proxy_.service_instances) {
      if (instance.endpoint.endpoint_port == port) return true;
    }
    return false;
  }

  // Connections to the inbound port itself would come back to it.
  FilterChain Blackhole() const {
    FilterChain chain;
    chain.name = "virtualInbound-blackhole";
    chain.match.emplace().destination_port = static_cast<uint32_t>(mesh_.proxy_inbound_listen_port);
    chain.filters = metadata_exchange_ + scope_.network_filters.Metrics(kClass) +
                    NetworkFilters::BareTcpProxy(kBlackHoleCluster, kBlackHoleCluster);
    return chain;
  }

  std::vector<FilterChain> ChainsOf(const InboundChain& config) {
    std::vector<FilterChain> out;
    const Features& features = scope_.push.env().features;
    // What no port is known of is inspected even so. istiod: inboundVirtualListener's catch-all chains
    const ListenerProtocol protocol =
        config.passthrough ? ListenerProtocol::kAuto : ToListenerProtocol(config.protocol, features.sniffs_inbound);
    for (const InboundMatch& match : InboundMatches(authn_.ForPort(config.target_port), protocol, features.http10)) {
      const bool http = match.protocol == ListenerProtocol::kHttp;
      FilterChain chain;
      chain.name = config.Name(http);
      chain.match = MatchOf(config, match);
      chain.filters = authentication_ + metadata_exchange_ + (http ? HttpFilter(config) : TcpFilters(config));
      if (match.terminates_tls) chain.transport_socket = http ? http_socket_ : tcp_socket_;
      chain.metadata = config.metadata;
      out.push_back(std::move(chain));
    }
    return out;
  }

  static FilterChainMatch MatchOf(const InboundChain& config, const InboundMatch& match) {
    FilterChainMatch out;
    out.application_protocols = match.alpn;
    out.transport_protocol = match.transport_protocol;
    // Any address of this family: Envoy has no other way to say "IPv4".
    if (config.passthrough && !config.any_family)
      out.prefix_ranges = {CidrRange{config.cluster.ends_with("4") ? "0.0.0.0" : "::", 0}};
    if (config.target_port > 0) out.destination_port = config.target_port;
    return out;
  }

  std::string HttpFilter(const InboundChain& config) {
    HttpOptions http;
    http.listener_class = kClass;
    http.protocol = config.protocol;
    http.stat_prefix = config.passthrough ? config.cluster : absl::StrCat("inbound_", config.Name(true));
    http.route_config = InboundRouteConfiguration(config.cluster, config.hostname, config.service_port,
                                                  !IsGrpc(config.protocol) && retries_);
    if (PatchesRoutes(scope_.patches.get())) {
      http.route_config =
          PatchRoutes(*scope_.patches, config::EnvoyFilter::Context::kSidecarInbound, proxy_, http.route_config);
    }
    const int port = static_cast<int>(config.target_port);
    std::string out;
    for (const std::string& module : scope_.network_filters.wasm().Network(kClass, port)) out += module;
    return out + scope_.http.Filter(http, port, "");
  }

  std::string TcpFilters(const InboundChain& config) const {
    const std::string& pattern = mesh_.inbound_cluster_stat_name;
    const std::string stat_prefix =
        pattern.empty() ? config.cluster
                        : BuildStatPrefix(pattern, config.hostname, "", {config.port_name, config.service_port},
                                          config.attributes, scope_.push.profile(), std::nullopt);
    const NetworkFilters& filters = scope_.network_filters;
    // WasmPlugins by the service's port, where those of HTTP go by the target's.
    std::string out = PoliciesAndModules(scope_, kClass, config.service_port, true);
    out += filters.Metrics(kClass);
    for (const std::string& filter :
         filters.ForProtocol(config.protocol, filters.TcpProxy(kClass, stat_prefix, config.cluster), stat_prefix)) {
      out += filter;
    }
    return out;
  }

  Listener Finish(std::string name, std::string address, uint32_t port, bool bind_to_port,
                  std::vector<FilterChain> chains) const {
    Listener out;
    out.name = std::move(name);
    out.address = std::move(address);
    out.port = port;
    out.outbound = false;
    out.exact_balance = MetadataFlag(proxy_, "INBOUND_LISTENER_EXACT_BALANCE");
    out.accepts_one_by_one = Has(Change::kAcceptsOneByOne);
    const bool tproxy = GetInterceptionMode(proxy_) == InterceptionMode::kTproxy;
    if (!bind_to_port && tproxy) out.transparent = true;
    out.access_log = scope_.telemetry.Logs(kClass).listener;
    out.filter_chains = std::move(chains);
    out.listener_filters = wire::Encode([&](wire::Writer& w) {
      const auto add = [&](const std::string& filter) { w.Bytes(ListenerPb::kListenerFiltersFieldNumber, filter); };
      if (!bind_to_port) add(OriginalDestination());
      if (!bind_to_port && tproxy) add(OriginalSource());
      AddInspectors(out.filter_chains, add);
    });
    out.listener_filters_timeout = mesh_.protocol_detection_timeout;
    if (const auto& own = scope_.push.env().features.inbound_detection) out.listener_filters_timeout = own;
    out.continue_on_listener_filters_timeout = true;
    return out;
  }

  // Each inspector only where some chain of the port needs it: a protocol whose server speaks first would wait for
  // ever. istiod: populateListenerFilters.
  template <typename Add>
  void AddInspectors(const std::vector<FilterChain>& chains, Add add) const {
    struct Needs {
      bool tls = false, http = false;
    };
    std::map<int, Needs> needs;  // port 0: chains for any port
    for (const FilterChain& chain : chains) {
      Needs& port = needs[static_cast<int>(chain.match->destination_port.value_or(0))];
      port.tls |= chain.match->transport_protocol == kTlsTransport;
      for (const std::string_view alpn : chain.match->application_protocols) {
        port.http |= alpn == "http/1.1" || alpn == "h2c";
      }
    }
    std::vector<int> with_tls, without_tls, without_http;
    bool any_tls = false, any_http = false;
    for (const auto& [port, need] : needs) {
      any_tls |= need.tls;
      any_http |= need.http;
      if (port != 0) (need.tls ? with_tls : without_tls).push_back(port);
      if (!need.http) without_http.push_back(port);
    }
    const bool tls_by_default = needs.contains(0) && needs[0].tls;
    // The TLS inspector comes first: what it finds to be TLS the HTTP inspector leaves alone.
    if (any_tls) add(InspectorForPorts(scope_.tls_inspector, tls_by_default ? without_tls : with_tls, !tls_by_default));
    if (any_http && scope_.push.env().features.sniffs_inbound)
      add(InspectorForPorts(Inspector::kHttp, without_http, false));
  }

  bool Has(Change change) const { return scope_.push.profile().Has(change); }

  ListenerScope& scope_;
  const Proxy& proxy_;
  const config::MeshConfig& mesh_;
  MergedPeerAuthentication authn_;
  std::string http_socket_, tcp_socket_;
  std::string authentication_, metadata_exchange_;
  bool retries_ = false;  // by default, of what an application has not seen
};

}  // namespace

std::vector<Listener> BuildInboundListeners(ListenerScope& scope) { return InboundListeners(scope).Build(); }

}  // namespace wavetank::pilot
