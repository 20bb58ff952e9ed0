#include "core/gen/lds/listener_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/gen/view/proxy_view.h"
#include "core/gen/wire/wire.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "envoy/config/core/v3/base.pb.h"
#include "google/protobuf/struct.pb.h"

namespace wavetank::pilot {
namespace {

std::optional<FilterChainMatch> MatchOf(FilterChainOptions& options) {
  FilterChainMatch match = options.match ? std::move(*options.match) : FilterChainMatch();
  auto& names = options.sni_hosts;
  if (!names.empty() && std::find(names.begin(), names.end(), "*") == names.end()) {
    std::stable_sort(names.begin(), names.end());
    match.server_names = names;
  }
  std::stable_sort(options.destination_cidrs.begin(), options.destination_cidrs.end());
  for (const std::string& text : options.destination_cidrs) {
    std::optional<CidrRange> range = ParseCidrRange(text);
    if (range && range->address_prefix != kUnspecifiedIp) match.prefix_ranges.push_back(std::move(*range));
  }
  if (!options.match && match.empty()) return std::nullopt;
  return match;
}

// `first_http`: the first chain of HTTP, which alone gets WasmPlugins of connections: istiod takes them out of the list
// (PopAppendNetwork).
std::string FiltersOf(ListenerScope& scope, const FilterChainOptions& options, const ListenerOptions& listener,
                      const std::string& listener_name, bool first_http) {
  std::string out;
  const auto append = [&](const FilterStack& filters) {
    for (const std::string& filter : filters) out += filter;
  };
  if (options.http) {
    append(listener.authentication);
    if (first_http)
      append(scope.network_filters.wasm().Network(listener.listener_class, static_cast<int>(listener.port)));
    return out +
           scope.http.Filter(*options.http, static_cast<int>(listener.port), absl::StrCat("outbound_", listener_name));
  }
  if (listener.listener_class == ListenerClass::kGateway && scope.push.profile().Has(Change::kGatewayPoliciesFirst)) {
    for (size_t i = 0; i < options.ahead; ++i) out += options.network_filters[i];
    out += PoliciesAndModules(scope, listener.listener_class, static_cast<int>(listener.port), !options.unguarded);
    for (size_t i = options.ahead; i < options.network_filters.size(); ++i) out += options.network_filters[i];
    return out;
  }
  if (options.resolves_sni) {
    // The client's own policies stand here, which are for those who call it. istiod: buildCompleteNetworkFilters.
    out += PoliciesAndModules(scope, listener.listener_class, static_cast<int>(listener.port), true);
    append(options.network_filters);
    return out;
  }
  for (size_t i = 0; i + 1 < options.network_filters.size(); ++i) out += options.network_filters[i];
  append(listener.authentication);
  if (listener.listener_class == ListenerClass::kGateway && !options.unguarded)
    out += scope.authz.CustomTcp() + scope.authz.Tcp();
  if (!options.network_filters.empty()) out += options.network_filters.back();
  return out;
}

}  // namespace

ListenerScope::ListenerScope(const Proxy& node, const PushContext& context)
    : proxy(node),
      push(context),
      telemetry(node, context),
      patches(context.envoy_filters().For(node)),
      network_filters(node, context, telemetry),
      authz(node, context),
      http(node, context, authz, telemetry),
      istio_filters(!context.profile().Has(Change::kUpstreamEnvoy)),
      // Before 1.17 the HTTP filter did it alone. istiod: listener_inbound.go, buildInboundNetworkFilters.
      istio_authn(istio_filters && IsVersionAtLeast(node, 1, 17) && !context.profile().Has(Change::kNoIstioAuthn)),
      tls_inspector(context.profile().Has(Change::kSmallTlsInspector) ? Inspector::kTlsSmall : Inspector::kTls),
      wildcard(WildcardAddress(node)),
      extra_wildcard(ExtraWildcardAddress(node)),
      dual_stack(context.profile().Has(Change::kDualStack)) {}

std::vector<std::string> ListenerScope::ExtraWildcard() const {
  if (!dual_stack || extra_wildcard.empty()) return {};
  return {std::string(extra_wildcard)};
}

std::string PoliciesAndModules(ListenerScope& scope, ListenerClass listener_class, int port, bool with_policies) {
  using Phase = WasmFilters::Phase;
  std::string out;
  const auto modules = [&](Phase phase) {
    for (const std::string& module : scope.network_filters.wasm().Network(listener_class, port, phase)) out += module;
  };
  if (with_policies) out += scope.authz.CustomTcp();
  modules(Phase::kAuthn);
  modules(Phase::kAuthz);
  if (with_policies) out += scope.authz.Tcp();
  modules(Phase::kStats);
  modules(Phase::kUnspecified);
  return out;
}

Listener BuildListener(ListenerScope& scope, ListenerOptions options) {
  Listener out;
  out.name = ListenerName(options.bind, options.port);
  out.address = options.bind;
  out.port = static_cast<uint32_t>(options.port);
  out.more_addresses = std::move(options.extra_binds);
  if (!options.bind_to_port) out.bind_to_port = false;
  out.http_inspector = options.need_http_inspector;
  const Profile& profile = scope.push.profile();
  const bool gateway = options.listener_class == ListenerClass::kGateway;
  // Envoy would add a TLS inspector by itself for a match on ALPN; saying so keeps it ours.
  out.tls_inspector = options.need_http_inspector && !gateway && !profile.Has(Change::kTlsInspectedByNameAlone);
  out.small_tls_buffer = scope.tls_inspector == Inspector::kTlsSmall;
  out.accepts_one_by_one = options.bind_to_port && profile.Has(Change::kAcceptsOneByOne);
  bool first_http = true;
  for (FilterChainOptions& chain : options.chains) {
    // Every TLS context that we terminate offers ALPN.
    if (!chain.sni_hosts.empty() || !chain.transport_socket.empty() || chain.resolves_sni) out.tls_inspector = true;
    FilterChain built;
    built.filters = FiltersOf(scope, chain, options, out.name, first_http);
    first_http &= !chain.http;
    built.match = MatchOf(chain);
    built.transport_socket = std::move(chain.transport_socket);
    built.metadata = std::move(chain.metadata);
    built.connects_in_time = profile.Has(Change::kHandshakeTimeout);
    out.filter_chains.push_back(std::move(built));
  }
  out.exact_balance = MetadataFlag(scope.proxy, "OUTBOUND_LISTENER_EXACT_BALANCE");
  if (!scope.proxy.IsRouter()) {
    out.listener_filters_timeout = scope.push.mesh().protocol_detection_timeout;
    out.continue_on_listener_filters_timeout = out.listener_filters_timeout.has_value();
  }
  const bool logs = options.listener_class == ListenerClass::kGateway ||
                    !scope.push.profile().Has(Change::kOutboundListenersLogNothing);
  if (logs) out.access_log = scope.telemetry.Logs(options.listener_class).listener;
  return out;
}

}  // namespace wavetank::pilot
