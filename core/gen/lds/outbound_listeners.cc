#include "core/gen/lds/outbound_listeners.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/ip.h"
#include "core/gen/lds/outbound_filter_chains.h"
#include "core/gen/view/destination_cluster.h"
#include "core/gen/view/dynamic_names.h"
#include "core/gen/view/proxy_view.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {
namespace {

constexpr char kPassthroughFilterChain[] = "PassthroughFilterChain";

// What meets what on one address and port.
enum class Conflict : uint8_t {
  kNone,
  kHttpOverTcp,
  kTcpOverHttp,
  kTcpOverTcp,
  kTcpOverAuto,
  kAutoOverHttp,
  kAutoOverTcp,
};

struct Entry {
  Listener listener;
  Protocol service_protocol = Protocol::kUnsupported;  // of the first service
  Protocol protocol = Protocol::kUnsupported;          // as it is now: kUnsupported once it inspects
  bool locked = false;  // made for a Sidecar's own port: what a later catch-all finds is kept out
};

// What differs between calls for one egress listener.
struct Placement {
  std::string bind;
  std::vector<std::string> extra_binds;  // of a `bind` that is said
  bool bind_to_port = false;
  const std::vector<config::VirtualServiceRef>* rules = nullptr;
};

bool IsServerFirst(Protocol protocol) { return protocol == Protocol::kMongo || protocol == Protocol::kMysql; }

// Inspection would hang a protocol whose server speaks first, so these share no port with another protocol.
bool MayMerge(Protocol incoming, Protocol existing, Conflict conflict) {
  return conflict == Conflict::kNone || incoming == existing || (!IsServerFirst(incoming) && !IsServerFirst(existing));
}

bool Conflicts(const std::optional<FilterChainMatch>& a, const std::optional<FilterChainMatch>& b) {
  return a && b ? SameMatch(*a, *b) : a.has_value() == b.has_value();
}

// Those of `incoming` that have a match of their own.
void MergeTcp(std::vector<FilterChain> incoming, std::vector<FilterChain>& into) {
  for (FilterChain& chain : incoming) {
    const bool taken = std::any_of(into.begin(), into.end(),
                                   [&](const FilterChain& other) { return Conflicts(other.match, chain.match); });
    if (!taken) into.push_back(std::move(chain));
  }
}

// TCP chains, then HTTP chains that from now on need their ALPN.
std::vector<FilterChain> MergeHttpAndTcp(std::vector<FilterChain> http, std::vector<FilterChain> tcp, bool http10) {
  for (FilterChain& chain : http) {
    if (!chain.match) chain.match.emplace();
    AlpnList& alpn = chain.match->application_protocols;
    for (const std::string_view protocol : PlaintextHttpAlpns(http10)) {
      if (std::find(alpn.begin(), alpn.end(), protocol) == alpn.end()) alpn.push_back(protocol);
    }
    tcp.push_back(std::move(chain));
  }
  return tcp;
}

std::string CatchAllFilters(const ListenerScope& scope) {
  const std::string cluster = OutboundCatchAllCluster(scope.proxy);
  return scope.network_filters.Metrics(ListenerClass::kSidecarOutbound) +
         scope.network_filters.TcpProxy(ListenerClass::kSidecarOutbound, cluster, cluster);
}

// Without an inspector no time for one. Newer releases say so in so many words.
void NoInspectionTime(const ListenerScope& scope, Listener& listener) {
  const bool said = scope.push.profile().Has(Change::kNoInspectionTimeSaid);
  listener.continue_on_listener_filters_timeout = said;
  listener.listener_filters_timeout.reset();
  if (said) listener.listener_filters_timeout = Duration::zero();
}

class ServiceListeners {
 public:
  explicit ServiceListeners(ListenerScope& scope)
      : scope_(scope), proxy_(scope.proxy), features_(scope.push.env().features), static_listeners_(scope.proxy) {}

  std::vector<Listener> Build() {
    for (const EgressListener& egress : proxy_.sidecar_scope->egress_listeners) AddEgressListener(egress);
    std::vector<Listener> out;
    for (const bool tcp : {true, false}) {
      for (auto& [key, entry] : entries_) {
        if (IsTcp(entry.service_protocol) == tcp) out.push_back(Complete(std::move(entry.listener)));
      }
    }
    return out;
  }

 private:
  void AddEgressListener(const EgressListener& egress) {
    const config::SidecarEgressListener* sidecar = egress.listener;
    Placement at;
    at.rules = &egress.virtual_services.list();
    at.bind_to_port = GetInterceptionMode(proxy_) == InterceptionMode::kNone ||
                      (sidecar != nullptr &&
                       (sidecar->capture_mode == config::CaptureMode::kNone || sidecar->bind.starts_with(kUnixPrefix)));
    if (sidecar != nullptr && !sidecar->bind.empty()) {
      at.bind = sidecar->bind;
    } else if (at.bind_to_port) {
      at.bind = LocalhostAddress(proxy_);
      if (const std::string_view more = ExtraLocalhostAddress(proxy_); !more.empty()) at.extra_binds.emplace_back(more);
    }
    if (sidecar != nullptr && sidecar->port) {
      AddSidecarPort(egress, *sidecar->port, at);
    } else {
      AddCatchAll(egress, at);
    }
  }

  void AddSidecarPort(const EgressListener& egress, const config::PortSpec& spec, const Placement& at) {
    const Port port{spec.name, static_cast<int>(spec.number), ParseProtocol(spec.protocol)};
    if (!MayListen(at, port)) return;
    for (const ServiceRef& service : egress.services) Add(at, *service, port);
  }

  void AddCatchAll(const EgressListener& egress, Placement at) {
    for (auto& [key, entry] : entries_) entry.locked = true;
    for (const ServiceRef& service : egress.services) {
      CarryExtraBinds(*service, at);
      for (const Port& port : service->ports) {
        if (!MayListen(at, port)) continue;
        if (at.bind.empty() && service->resolution == Resolution::kPassthrough &&
            (IsTcp(port.protocol) || IsUnsupported(port.protocol)) && features_.headless_listeners &&
            AddressForProxy(*service, proxy_, scope_.push.profile()) == kUnspecifiedIp) {
          AddHeadless(at, *service, port);
        } else {
          Add(at, *service, port);
        }
      }
    }
  }

  // Before 1.21 the additional addresses of the last Service that has some stay with what is listened for at an address
  // that is said: a Sidecar's bind, a headless Service's pod. istiod 1.18.2: listener.go,
  // buildSidecarOutboundListeners, listenerOpts.extraBind.
  void CarryExtraBinds(const Service& service, Placement& at) const {
    if (scope_.push.profile().Has(Change::kOutboundOfBothFamilies) || scope_.extra_wildcard.empty() ||
        at.bind == LocalhostAddress(proxy_)) {
      return;
    }
    std::vector<std::string> own = ExtraAddressesForProxy(service, proxy_, scope_.push.profile());
    if (!own.empty()) at.extra_binds = std::move(own);
  }

  // A listener per instance, so that TCP without a virtual address does not take the whole port.
  void AddHeadless(Placement at, const Service& service, const Port& port) {
    const std::vector<ServiceInstance> instances = scope_.push.ServiceInstancesByPort(service, port.port, {});
    const ServiceAttributes& attributes = service.attributes;
    // Without instances a Kubernetes service, or one with a selector, may yet get some; a wildcard listener would then
    // come and go. A bare ServiceEntry will not.
    if (instances.empty() && attributes.registry != Provider::kKubernetes && attributes.label_selectors.empty()) {
      Add(at, service, port);
      return;
    }
    for (const ServiceInstance& instance : instances) {
      const std::string& address = instance.endpoint.address;
      if (!IsIpAddress(address) || (!proxy_.ip_addresses.empty() && address == proxy_.ip_addresses[0])) continue;
      at.bind = address;
      if (scope_.push.profile().Has(Change::kEndpointsOfSeveralAddresses)) {
        at.extra_binds = instance.endpoint.p().more_addresses;
      }
      Add(at, service, port);
    }
  }

  bool MayListen(const Placement& at, const Port& port) const {
    return proxy_.CanBindToPort(at.bind_to_port, static_cast<uint32_t>(port.port)) &&
           !static_listeners_.ConflictWith(at.bind, port.port, port.protocol);
  }

  // Mostly asked for one port of one address again and again: that of HTTP.
  Entry* Find(std::string_view bind, int port) {
    if (last_ != nullptr && last_port_ == port && last_bind_ == bind) return last_;
    const auto it = entries_.find(absl::StrCat(absl::string_view(bind.data(), bind.size()), ":", port));
    if (it == entries_.end()) return nullptr;
    last_ = &it->second;
    last_port_ = port;
    last_bind_ = bind;
    return last_;
  }

  FilterChainOptions HttpChain(const std::string& bind, const Service& service, const Port& port, bool sniffed) const {
    FilterChainOptions chain;
    HttpOptions& http = chain.http.emplace();
    http.protocol = port.protocol;
    // Of a port that several services share the first one decides, as in istiod (buildSidecarOutboundHTTPListenerOpts).
    if (IsDynamic(service)) http.dns_cache = DnsCacheName(service.hostname);
    if (port.port == 0) {
      http.rds = bind;  // a unix socket
    } else if (sniffed && bind != scope_.wildcard) {
      http.rds = absl::StrCat(service.hostname, ":", port.port);
    } else {
      http.rds = absl::StrCat(port.port);
    }
    return chain;
  }

  void MatchPlaintextHttp(FilterChainOptions& chain) const {
    FilterChainMatch& match = chain.match.emplace();
    match.application_protocols = PlaintextHttpAlpns(features_.http10);
    match.transport_protocol = kRawBufferTransport;
  }

  // Merges the listener of one service port into what stands at its address. istiod:
  // buildSidecarOutboundListenerForPortOrUDS.
  void Add(const Placement& at, const Service& service, const Port& port) {
    if (service.resolution == Resolution::kAlias) return;
    const ListenerProtocol kind = port.protocol == Protocol::kHttpProxy
                                      ? ListenerProtocol::kHttp
                                      : ToListenerProtocol(port.protocol, features_.sniffs_outbound);
    if (kind == ListenerProtocol::kUnknown) return;
    // Virtual hosts of RDS tell HTTP services apart; a listener that serves HTTP already is enough.
    if (kind == ListenerProtocol::kHttp && port.protocol != Protocol::kHttpProxy) {
      const Entry* serving = Find(at.bind.empty() ? scope_.wildcard : std::string_view(at.bind), port.port);
      if (serving != nullptr && !IsTcp(serving->protocol)) return;
    }
    ListenerOptions options;
    options.bind = at.bind;
    if (!at.bind.empty()) options.extra_binds = at.extra_binds;
    options.port = static_cast<uint32_t>(port.port);
    options.bind_to_port = at.bind_to_port;

    std::string cidr;
    if (kind == ListenerProtocol::kHttp) {
      if (options.bind.empty()) {
        options.bind = scope_.wildcard;
        if (!scope_.extra_wildcard.empty()) options.extra_binds = {std::string(scope_.extra_wildcard)};
      }
    } else if (options.bind.empty()) {
      const std::string& address = AddressForProxy(service, proxy_, scope_.push.profile());
      options.extra_binds = ExtraAddressesForProxy(service, proxy_, scope_.push.profile());
      if (address.find('/') != std::string::npos) {
        cidr = address;
        options.bind = scope_.wildcard;
        if (scope_.push.profile().Has(Change::kOutboundOfBothFamilies) && !scope_.extra_wildcard.empty()) {
          options.extra_binds = {std::string(scope_.extra_wildcard)};
        }
      } else {
        if (service.attributes.registry == Provider::kExternal && address == kUnspecifiedIp &&
            !scope_.extra_wildcard.empty() && scope_.push.profile().Has(Change::kExternalsOfBothFamilies)) {
          options.extra_binds.emplace_back(scope_.extra_wildcard);
        }
        const bool v6_external = service.attributes.registry == Provider::kExternal && address == kUnspecifiedIp &&
                                 scope_.wildcard != kUnspecifiedIp;
        options.bind = v6_external ? std::string(scope_.wildcard) : address;
      }
    }
    Entry* existing = Find(options.bind, port.port);
    if (existing != nullptr && existing->locked) return;
    // Without inspection an address is of HTTP or of TCP, whichever came first.
    const bool sniffs = features_.sniffs_outbound;
    if (existing != nullptr && !sniffs && (kind == ListenerProtocol::kHttp || !IsTcp(existing->service_protocol)))
      return;

    Protocol protocol = port.protocol;
    Conflict conflict = Conflict::kNone;
    if (kind == ListenerProtocol::kHttp) {
      if (sniffs && port.protocol != Protocol::kHttpProxy && existing != nullptr) conflict = Conflict::kHttpOverTcp;
      FilterChainOptions chain = HttpChain(options.bind, service, port, false);
      if (sniffs && port.protocol != Protocol::kHttpProxy && options.bind == scope_.wildcard) {
        // On the wildcard address other TCP may come by, to addresses that no service has: let it pass.
        MatchPlaintextHttp(chain);
        options.need_http_inspector = true;
        protocol = Protocol::kUnsupported;
      }
      options.chains.push_back(std::move(chain));
    } else {
      if (sniffs && existing != nullptr) conflict = ConflictOf(kind, existing->protocol);
      if (kind == ListenerProtocol::kAuto && existing != nullptr && conflict == Conflict::kNone)
        return;  // auto on auto
      options.chains = OutboundTcpTlsFilterChains(scope_, service, cidr, options.bind, port, *at.rules);
      if (kind == ListenerProtocol::kAuto) {
        options.chains.push_back(HttpChain(options.bind, service, port, true));
        MatchPlaintextHttp(options.chains.back());
        options.need_http_inspector = true;
      }
    }
    if (options.chains.empty()) return;
    if (!scope_.dual_stack && !scope_.push.profile().Has(Change::kOutboundOfBothFamilies)) options.extra_binds.clear();
    if (existing != nullptr && !MayMerge(port.protocol, existing->protocol, conflict)) return;
    std::string key = absl::StrCat(options.bind, ":", port.port);
    Listener listener = BuildListener(scope_, std::move(options));
    if (existing == nullptr) {
      entries_.emplace(std::move(key), Entry{std::move(listener), port.protocol, protocol, false});
      return;
    }
    Merge(conflict, port, std::move(listener), *existing);
  }

  static Conflict ConflictOf(ListenerProtocol kind, Protocol existing) {
    if (kind == ListenerProtocol::kTcp) {
      if (IsHttp(existing)) return Conflict::kTcpOverHttp;
      return IsTcp(existing) ? Conflict::kTcpOverTcp : Conflict::kTcpOverAuto;
    }
    if (IsHttp(existing)) return Conflict::kAutoOverHttp;
    return IsTcp(existing) ? Conflict::kAutoOverTcp : Conflict::kNone;
  }

  void Merge(Conflict conflict, const Port& port, Listener incoming, Entry& existing) const {
    Listener& listener = existing.listener;
    if (conflict == Conflict::kAutoOverHttp) {
      existing.listener = std::move(incoming);
      existing.service_protocol = port.protocol;
      existing.protocol = Protocol::kUnsupported;
      return;
    }
    listener.tls_inspector |= incoming.tls_inspector;
    listener.http_inspector |= incoming.http_inspector;
    switch (conflict) {
      case Conflict::kHttpOverTcp:
        listener.filter_chains =
            MergeHttpAndTcp(std::move(incoming.filter_chains), std::move(listener.filter_chains), features_.http10);
        existing.protocol = Protocol::kUnsupported;
        break;
      case Conflict::kTcpOverHttp:
        listener.filter_chains =
            MergeHttpAndTcp(std::move(listener.filter_chains), std::move(incoming.filter_chains), features_.http10);
        existing.protocol = Protocol::kUnsupported;
        break;
      case Conflict::kAutoOverTcp:
        MergeTcp(std::move(incoming.filter_chains), listener.filter_chains);
        existing.protocol = Protocol::kUnsupported;
        break;
      default:
        MergeTcp(std::move(incoming.filter_chains), listener.filter_chains);
        break;
    }
  }

  // What no chain takes goes on to where it was bound, and inspectors that nobody needs do not delay it.
  Listener Complete(Listener listener) {
    auto& chains = listener.filter_chains;
    const auto all =
        std::find_if(chains.begin(), chains.end(), [](const FilterChain& chain) { return chain.MatchesAll(); });
    if (all == chains.end()) {
      FilterChain passthrough;
      passthrough.name = kPassthroughFilterChain;
      passthrough.match.emplace();
      passthrough.filters = CatchAllFilter();
      listener.default_filter_chain = std::move(passthrough);
    } else if (chains.size() > 1) {
      // A match-all chain beside others would lose connections that match another one in part (istio#26079).
      listener.default_filter_chain = std::move(*all);
      chains.erase(all);
    }
    if (!listener.http_inspector) NoInspectionTime(scope_, listener);
    return listener;
  }

  const std::string& CatchAllFilter() {
    if (catch_all_.empty()) {
      catch_all_ = CatchAllFilters(scope_);
    }
    return catch_all_;
  }

  ListenerScope& scope_;
  const Proxy& proxy_;
  const Features& features_;
  const StaticListeners static_listeners_;
  std::map<std::string, Entry> entries_;  // by "bind:port"
  Entry* last_ = nullptr;                 // that was found
  int last_port_ = 0;
  std::string last_bind_;
  std::string catch_all_;
};

std::optional<Listener> HttpProxyListener(ListenerScope& scope) {
  int port = scope.push.mesh().proxy_http_port;
  if (const int own = MetadataInteger(scope.proxy, "HTTP_PROXY_PORT"); own != 0) port = own;
  if (port == 0) return std::nullopt;
  ListenerOptions options;
  options.bind = LocalhostAddress(scope.proxy);
  const std::string_view more = ExtraLocalhostAddress(scope.proxy);
  if (!more.empty() && (scope.dual_stack || scope.push.profile().Has(Change::kOutboundOfBothFamilies))) {
    options.extra_binds.emplace_back(more);
  }
  options.port = port;
  options.bind_to_port = true;
  HttpOptions& http = options.chains.emplace_back().http.emplace();
  http.rds = kRdsHttpProxy;
  http.protocol = Protocol::kHttpProxy;
  http.absolute_urls = true;
  Listener listener = BuildListener(scope, std::move(options));
  NoInspectionTime(scope, listener);
  return listener;
}

// Where iptables sends what leaves the pod; it hands connections over to the listener of their original destination.
std::optional<Listener> VirtualOutbound(ListenerScope& scope) {
  const InterceptionMode mode = GetInterceptionMode(scope.proxy);
  if (mode == InterceptionMode::kNone) return std::nullopt;
  Listener listener;
  listener.name = "virtualOutbound";
  listener.address = scope.wildcard;
  listener.port = static_cast<uint32_t>(scope.push.mesh().proxy_listen_port);
  listener.more_addresses = scope.ExtraWildcard();
  if (mode == InterceptionMode::kTproxy) listener.transparent = true;
  listener.use_original_dst = true;
  listener.accepts_one_by_one = scope.push.profile().Has(Change::kAcceptsOneByOne);
  listener.access_log = scope.telemetry.Logs(ListenerClass::kSidecarOutbound).listener;
  // Straight to our own port would pass through to it again, for ever.
  FilterChain blackhole;
  blackhole.name = "virtualOutbound-blackhole";
  blackhole.match.emplace().destination_port = listener.port;
  blackhole.filters = scope.network_filters.Metrics(ListenerClass::kSidecarOutbound) +
                      NetworkFilters::BareTcpProxy(kBlackHoleCluster, kBlackHoleCluster);
  listener.filter_chains.push_back(std::move(blackhole));
  FilterChain rest;
  rest.name = "virtualOutbound-catchall-tcp";
  rest.filters = CatchAllFilters(scope);
  listener.filter_chains.push_back(std::move(rest));
  return listener;
}

}  // namespace

OutboundListeners BuildOutboundListeners(ListenerScope& scope) {
  OutboundListeners out;
  if (scope.proxy.sidecar_scope != nullptr) out.of_services = ServiceListeners(scope).Build();
  out.http_proxy = HttpProxyListener(scope);
  out.virtual_outbound = VirtualOutbound(scope);
  return out;
}

}  // namespace wavetank::pilot
