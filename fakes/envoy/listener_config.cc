#include "fakes/envoy/listener_config.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/ascii.h"
#include "envoy/config/accesslog/v3/accesslog.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/listener/v3/listener_components.pb.h"
#include "envoy/extensions/filters/http/ext_authz/v3/ext_authz.pb.h"
#include "envoy/extensions/filters/http/fault/v3/fault.pb.h"
#include "envoy/extensions/filters/http/jwt_authn/v3/config.pb.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/network/ext_authz/v3/ext_authz.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "fakes/envoy/extensions.h"
#include "fakes/envoy/fault_config.h"
#include "fakes/envoy/proto_time.h"
#include "fakes/envoy/rbac_config.h"
#include "fmt/format.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "istio/alpn.pb.h"
#include "istio/authn.pb.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

namespace listener_v3 = envoy::config::listener::v3;
namespace hcm = envoy::extensions::filters::network::http_connection_manager::v3;

// As config_store.h has it: refuses the whole response.
constexpr absl::StatusCode kUndecodableListener = absl::StatusCode::kOutOfRange;

absl::Status Invalid(std::string message) { return absl::InvalidArgumentError(message); }

void AddUnique(const std::string& name, std::vector<std::string>* list) {
  if (!name.empty() && std::find(list->begin(), list->end(), name) == list->end()) list->push_back(name);
}

absl::Status AddPrefixes(const google::protobuf::RepeatedPtrField<envoy::config::core::v3::CidrRange>& ranges,
                         std::vector<IpPrefix>* out) {
  for (const auto& range : ranges) {
    absl::StatusOr<IpPrefix> prefix = IpPrefix::Make(range.address_prefix(), range.prefix_len().value());
    if (!prefix.ok()) return Invalid(fmt::format("malformed IP address: {}", range.address_prefix()));
    out->push_back(*prefix);
  }
  return absl::OkStatus();
}

absl::StatusOr<FilterChainMatcher::Match> CompileMatch(const listener_v3::FilterChainMatch& proto) {
  FilterChainMatcher::Match out;
  out.destination_port = static_cast<uint16_t>(proto.destination_port().value());
  if (absl::Status s = AddPrefixes(proto.prefix_ranges(), &out.destinations); !s.ok()) return s;
  for (const std::string& raw : proto.server_names()) {
    const std::string name = absl::AsciiStrToLower(raw);
    if (name.starts_with("*.")) {
      out.server_names.push_back(name.substr(1));
    } else if (name.find('*') != std::string::npos) {
      if (name != "*") return Invalid("partial wildcards are not supported in \"server_names\"");
      out.server_names.push_back("");
    } else {
      out.server_names.push_back(name);
    }
  }
  out.transport_protocol = proto.transport_protocol();
  out.application_protocols.assign(proto.application_protocols().begin(), proto.application_protocols().end());
  if (absl::Status s = AddPrefixes(proto.direct_source_prefix_ranges(), &out.direct_sources); !s.ok()) return s;
  out.source_type = static_cast<uint8_t>(proto.source_type());
  if (absl::Status s = AddPrefixes(proto.source_prefix_ranges(), &out.sources); !s.ok()) return s;
  for (uint32_t port : proto.source_ports()) out.source_ports.push_back(static_cast<uint16_t>(port));
  return out;
}

PortPredicate CompilePredicate(const listener_v3::ListenerFilterChainMatchPredicate& proto) {
  using Proto = listener_v3::ListenerFilterChainMatchPredicate;
  PortPredicate out;
  switch (proto.rule_case()) {
    case Proto::kOrMatch:
    case Proto::kAndMatch: {
      const bool any = proto.rule_case() == Proto::kOrMatch;
      out.kind = any ? PortPredicate::Kind::kAnyOf : PortPredicate::Kind::kAllOf;
      for (const auto& rule : (any ? proto.or_match() : proto.and_match()).rules()) {
        out.rules.push_back(CompilePredicate(rule));
      }
      break;
    }
    case Proto::kNotMatch:
      out.kind = PortPredicate::Kind::kNot;
      out.rules.push_back(CompilePredicate(proto.not_match()));
      break;
    case Proto::kAnyMatch:
      out.kind = PortPredicate::Kind::kAlways;
      break;
    case Proto::kDestinationPortRange:
      out.kind = PortPredicate::Kind::kRange;
      out.start = static_cast<uint32_t>(proto.destination_port_range().start());
      out.end = static_cast<uint32_t>(proto.destination_port_range().end());
      break;
    default:
      break;
  }
  return out;
}

template <typename Proto>
absl::Status CompileAccessLogs(const Proto& proto, ExtensionSet extensions, std::shared_ptr<const AccessLogs>* out) {
  std::shared_ptr<AccessLogs> logs;
  for (const auto& log : proto.access_log()) {
    if (absl::Status s = AddAccessLog(log, extensions, &logs); !s.ok()) return s;
  }
  *out = std::move(logs);
  return absl::OkStatus();
}

absl::Status CompileHttpFilter(const hcm::HttpFilter& filter, ExtensionSet extensions, HttpConnectionManager* out) {
  if (filter.has_config_discovery()) return absl::OkStatus();  // ECDS: not modelled, passes
  const google::protobuf::Any& config = filter.typed_config();
  const std::string_view type = TypeName(config);
  if (absl::Status known = CheckExtension(filter.name(), config, extensions); !known.ok()) {
    return filter.is_optional() ? absl::OkStatus() : known;
  }
  if (filter.name().empty()) {
    return Invalid(
        "Proto constraint validation failed (HttpFilterValidationError.Name: value length must be at least "
        "1 characters)");
  }
  if (out->has_router) {
    return Invalid(
        fmt::format("Error: terminal filter named {} of type {} must be the last filter in a http filter chain.",
                    out->router_name, "envoy.filters.http.router"));
  }
  if (type.ends_with("router.v3.Router") || (type.empty() && filter.name() == "envoy.filters.http.router")) {
    out->has_router = true;
    out->router_name = filter.name();
  } else if (type.ends_with("alpn.v2alpha1.FilterConfig")) {
    istio::envoy::config::filter::http::alpn::v2alpha1::FilterConfig alpn;
    if (!config.UnpackTo(&alpn)) return Invalid("Unable to unpack istio.alpn");
    AlpnFilter compiled;
    for (const auto& o : alpn.alpn_override()) {
      const int protocol = static_cast<int>(o.upstream_protocol());
      if (protocol < 0 || protocol > 2) continue;
      compiled.offers[protocol].assign(o.alpn_override().begin(), o.alpn_override().end());
      std::string all;
      for (const std::string& offer : compiled.offers[protocol]) all.append(offer).push_back('\0');
      compiled.ids[protocol] = HashBytes(all).low;
    }
    out->alpn = std::move(compiled);
  } else if (type.ends_with("fault.v3.HTTPFault")) {
    envoy::extensions::filters::http::fault::v3::HTTPFault fault;
    if (!config.UnpackTo(&fault)) return Invalid("Unable to unpack HTTPFault");
    absl::StatusOr<FaultConfig> compiled = CompileFault(fault);
    if (!compiled.ok()) return compiled.status();
    out->has_fault_filter = true;
    out->fault = *std::move(compiled);
  } else if (type.ends_with("rbac.v3.RBAC")) {
    envoy::extensions::filters::http::rbac::v3::RBAC rbac;
    if (!config.UnpackTo(&rbac)) return Invalid("Unable to unpack RBAC");
    absl::StatusOr<RbacFilter> compiled = RbacFilter::Make(rbac, "http." + out->stat_prefix + ".");
    if (!compiled.ok()) return compiled.status();
    out->authorization.push_back(*std::move(compiled));
  } else if (type.ends_with("ext_authz.v3.ExtAuthz")) {
    envoy::extensions::filters::http::ext_authz::v3::ExtAuthz authorizer;
    if (!config.UnpackTo(&authorizer)) return Invalid("Unable to unpack ExtAuthz");
    absl::StatusOr<ExtAuthzFilter> compiled = ExtAuthzFilter::Make(authorizer, "http." + out->stat_prefix + ".");
    if (!compiled.ok()) return compiled.status();
    out->authorization.push_back(*std::move(compiled));
  } else if (type.ends_with("jwt_authn.v3.JwtAuthentication")) {
    envoy::extensions::filters::http::jwt_authn::v3::JwtAuthentication jwt;
    if (!config.UnpackTo(&jwt)) return Invalid("Unable to unpack JwtAuthentication");
    absl::StatusOr<std::shared_ptr<const JwtAuthnFilter>> compiled =
        JwtAuthnFilter::Make(jwt, "http." + out->stat_prefix + ".", extensions);
    if (!compiled.ok()) return compiled.status();
    out->authorization.push_back(*std::move(compiled));
  } else if (type.ends_with("authn.v2alpha1.FilterConfig")) {
    istio::envoy::config::filter::http::authn::v2alpha1::FilterConfig authn;
    if (!config.UnpackTo(&authn)) return Invalid("Unable to unpack istio_authn");
    out->authorization.push_back(IstioAuthnFilter::Make(authn));
  }
  return absl::OkStatus();
}

absl::StatusOr<HttpConnectionManager> CompileHcm(const hcm::HttpConnectionManager& proto, ExtensionSet extensions) {
  HttpConnectionManager out;
  out.stat_prefix = proto.stat_prefix();
  if (out.stat_prefix.empty()) {
    return Invalid(
        "Proto constraint validation failed (HttpConnectionManagerValidationError.StatPrefix: value length "
        "must be at least 1 characters)");
  }
  switch (proto.route_specifier_case()) {
    case hcm::HttpConnectionManager::kRouteConfig: {
      absl::StatusOr<std::shared_ptr<const RouteTable>> routes =
          CompileRoutes(proto.route_config(), HashBytes(proto.route_config().SerializeAsString()), extensions,
                        /*validate=*/true);
      if (!routes.ok()) return routes.status();
      out.routes = *std::move(routes);
      break;
    }
    case hcm::HttpConnectionManager::kRds:
      out.rds_name = proto.rds().route_config_name();
      if (proto.rds().config_source().has_initial_fetch_timeout()) {
        out.rds_initial_fetch_timeout = ToDuration(proto.rds().config_source().initial_fetch_timeout());
      }
      if (out.rds_name.empty()) return Invalid("rds: route_config_name must not be empty");
      break;
    default:
      return Invalid("Proto constraint validation failed (field: \"route_specifier\", reason: is required)");
  }
  out.use_remote_address = proto.use_remote_address().value();
  out.xff_num_trusted_hops = proto.xff_num_trusted_hops();
  if (proto.has_stream_idle_timeout()) out.stream_idle_timeout = ToDuration(proto.stream_idle_timeout());
  for (const auto& filter : proto.http_filters()) {
    if (absl::Status s = CompileHttpFilter(filter, extensions, &out); !s.ok()) return s;
  }
  if (absl::Status s = CompileAccessLogs(proto, extensions, &out.logs); !s.ok()) return s;
  if (!out.has_router && !proto.http_filters().empty()) {
    return Invalid(
        fmt::format("Error: non-terminal filter named {} of type {} is the last filter in a http filter chain.",
                    proto.http_filters().rbegin()->name(), proto.http_filters().rbegin()->name()));
  }
  return out;
}

absl::StatusOr<TcpProxy> CompileTcpProxy(const envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy& proto,
                                         ExtensionSet extensions) {
  using Proto = envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
  TcpProxy out;
  out.stat_prefix = proto.stat_prefix();
  if (out.stat_prefix.empty()) {
    return Invalid(
        "Proto constraint validation failed (TcpProxyValidationError.StatPrefix: value length must be at "
        "least 1 characters)");
  }
  if (absl::Status s = CompileAccessLogs(proto, extensions, &out.logs); !s.ok()) return s;
  if (proto.has_max_connect_attempts())
    out.max_connect_attempts = std::max<uint32_t>(proto.max_connect_attempts().value(), 1);
  for (const auto& policy : proto.hash_policy()) out.hash_source_ip |= policy.has_source_ip();
  switch (proto.cluster_specifier_case()) {
    case Proto::kCluster:
      out.cluster = proto.cluster();
      break;
    case Proto::kWeightedClusters:
      for (const auto& c : proto.weighted_clusters().clusters()) {
        out.clusters.push_back({c.name(), c.weight()});
        out.total_weight += c.weight();
      }
      break;
    default:
      return Invalid("Proto constraint validation failed (field: \"cluster_specifier\", reason: is required)");
  }
  return out;
}

absl::StatusOr<FilterChain> CompileChain(const listener_v3::FilterChain& proto, ExtensionSet extensions) {
  FilterChain out;
  out.hash = HashBytes(proto.SerializeAsString());
  out.name = proto.name();
  if (proto.has_transport_socket()) {
    absl::StatusOr<TransportSocket> socket =
        CompileTransportSocket(proto.transport_socket(), /*downstream=*/true, extensions);
    if (!socket.ok()) return socket.status();
    out.socket = *std::move(socket);
  }
  for (const auto& filter : proto.filters()) {
    if (filter.has_config_discovery()) continue;
    const google::protobuf::Any& config = filter.typed_config();
    const std::string_view type = TypeName(config);
    if (absl::Status s = CheckExtension(filter.name(), config, extensions); !s.ok()) return s;
    if (out.http.has_value() || out.tcp.has_value()) {
      return Invalid(
          fmt::format("Error: terminal filter named {} of type {} must be the last filter in a network filter chain.",
                      proto.filters(0).name(), proto.filters(0).name()));
    }
    if (type.ends_with("HttpConnectionManager")) {
      hcm::HttpConnectionManager http;
      if (!config.UnpackTo(&http)) return Invalid("Unable to unpack HttpConnectionManager");
      absl::StatusOr<HttpConnectionManager> compiled = CompileHcm(http, extensions);
      if (!compiled.ok()) return compiled.status();
      out.http = *std::move(compiled);
    } else if (type.ends_with("tcp_proxy.v3.TcpProxy")) {
      envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy tcp;
      if (!config.UnpackTo(&tcp)) return Invalid("Unable to unpack TcpProxy");
      absl::StatusOr<TcpProxy> compiled = CompileTcpProxy(tcp, extensions);
      if (!compiled.ok()) return compiled.status();
      out.tcp = *std::move(compiled);
    } else if (type.ends_with("sni_cluster.v3.SniCluster") || filter.name() == "envoy.filters.network.sni_cluster") {
      out.sni_cluster = true;
    } else if (type.ends_with("rbac.v3.RBAC")) {
      envoy::extensions::filters::network::rbac::v3::RBAC rbac;
      if (!config.UnpackTo(&rbac)) return Invalid("Unable to unpack RBAC");
      absl::StatusOr<RbacFilter> compiled = RbacFilter::Make(rbac, rbac.stat_prefix());
      if (!compiled.ok()) return compiled.status();
      out.authorization.push_back(*std::move(compiled));
    } else if (type.ends_with("ext_authz.v3.ExtAuthz")) {
      envoy::extensions::filters::network::ext_authz::v3::ExtAuthz authorizer;
      if (!config.UnpackTo(&authorizer)) return Invalid("Unable to unpack ExtAuthz");
      absl::StatusOr<ExtAuthzFilter> compiled = ExtAuthzFilter::Make(authorizer);
      if (!compiled.ok()) return compiled.status();
      out.authorization.push_back(*std::move(compiled));
    } else if (filter.name() == "istio_authn") {
      out.istio_authn = true;
    }
    // The others (metadata exchange, stats) only look on.
  }
  const bool ends = out.http.has_value() || out.tcp.has_value();
  if (!ends && proto.filters_size() > 0) {
    const auto& last = *proto.filters().rbegin();
    for (const auto& [type, name] : {std::pair{"sni_cluster.v3.SniCluster", "envoy.filters.network.sni_cluster"},
                                     std::pair{"rbac.v3.RBAC", "envoy.filters.network.rbac"}}) {
      if (!TypeName(last.typed_config()).ends_with(type)) continue;
      return Invalid(
          fmt::format("Error: non-terminal filter named {} of type {} is the last filter in a network filter chain.",
                      last.name(), name));
    }
  }
  return out;
}

absl::Status AddListenerFilter(const listener_v3::ListenerFilter& filter, ExtensionSet extensions,
                               ListenerConfig* out) {
  if (filter.has_config_discovery()) return absl::OkStatus();
  if (absl::Status s = CheckExtension(filter.name(), filter.typed_config(), extensions); !s.ok()) return s;
  const std::string_view type = TypeName(filter.typed_config());
  const auto is = [&](std::string_view message, std::string_view name) {
    return type.ends_with(message) || (type.empty() && filter.name() == name);
  };
  if (is("OriginalDst", "envoy.filters.listener.original_dst")) out->original_dst = true;
  if (is("TlsInspector", "envoy.filters.listener.tls_inspector")) {
    out->tls_inspector = true;
    if (filter.has_filter_disabled()) out->tls_inspector_disabled = CompilePredicate(filter.filter_disabled());
  }
  if (is("HttpInspector", "envoy.filters.listener.http_inspector")) {
    out->http_inspector = true;
    if (filter.has_filter_disabled()) out->http_inspector_disabled = CompilePredicate(filter.filter_disabled());
  }
  return absl::OkStatus();
}

void NoteNeeds(const FilterChain& chain, ListenerConfig* out) {
  if (chain.http.has_value() && !chain.http->rds_name.empty()) {
    AddUnique(chain.http->rds_name, &out->route_names);
    const Duration timeout = chain.http->rds_initial_fetch_timeout;
    // 0 waits for good and so is the longest.
    if (out->route_names.size() == 1) out->rds_initial_fetch_timeout = timeout;
    if (timeout == Duration::zero() || out->rds_initial_fetch_timeout == Duration::zero()) {
      out->rds_initial_fetch_timeout = Duration::zero();
    } else {
      out->rds_initial_fetch_timeout = std::max(out->rds_initial_fetch_timeout, timeout);
    }
  }
  if (chain.socket.tls != nullptr) {
    AddUnique(chain.socket.tls->certificate_secret, &out->secrets);
    AddUnique(chain.socket.tls->validation_secret, &out->secrets);
  }
}

std::string ToJson(const google::protobuf::Message& message) {
  std::string out;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (!google::protobuf::util::MessageToJsonString(message, &out, options).ok()) out.clear();
  return out;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ListenerConfig>> CompileListener(const listener_v3::Listener& listener,
                                                                      const Hash128& hash, ExtensionSet extensions) {
  auto out = std::make_shared<ListenerConfig>();
  out->hash = hash;
  out->name = listener.name();
  if (!listener.has_address() && listener.listener_specifier_case() == 0) {
    return Invalid(fmt::format("error adding listener named '{}': address is necessary", out->name));
  }
  const auto& socket = listener.address().socket_address();
  if (socket.port_value() > 65535) {
    return absl::Status(kUndecodableListener,
                        "Proto constraint validation failed (SocketAddressValidationError.PortValue: value must be "
                        "less than or equal to 65535)");
  }
  for (const auto& chain : listener.filter_chains()) {
    const auto& match = chain.filter_chain_match();
    if (match.has_destination_port() &&
        (match.destination_port().value() < 1 || match.destination_port().value() > 65535)) {
      return absl::Status(kUndecodableListener,
                          "Proto constraint validation failed (FilterChainMatchValidationError.DestinationPort: value "
                          "must be inside range [1, 65535])");
    }
  }
  absl::StatusOr<IpAddress> ip = IpAddress::Parse(socket.address());
  if (!ip.ok()) return Invalid(fmt::format("malformed IP address: {}", socket.address()));
  out->address = {*ip, static_cast<uint16_t>(socket.port_value())};
  for (const auto& more : listener.additional_addresses()) {
    absl::StatusOr<IpAddress> a = IpAddress::Parse(more.address().socket_address().address());
    if (!a.ok()) return a.status();
    out->additional.push_back({*a, static_cast<uint16_t>(more.address().socket_address().port_value())});
  }
  const auto failed = [&](std::string_view why) {
    return Invalid(fmt::format("error adding listener '{}': {}", out->address.ToString(), why));
  };
  out->bind_to_port = (!listener.has_bind_to_port() || listener.bind_to_port().value()) &&
                      (!listener.deprecated_v1().has_bind_to_port() || listener.deprecated_v1().bind_to_port().value());
  out->use_original_dst = listener.use_original_dst().value();
  out->inbound = listener.traffic_direction() == envoy::config::core::v3::INBOUND;
  if (listener.has_listener_filters_timeout()) {
    out->listener_filters_timeout = ToDuration(listener.listener_filters_timeout());
  }
  out->continue_on_timeout = listener.continue_on_listener_filters_timeout();
  for (const auto& filter : listener.listener_filters()) {
    if (absl::Status s = AddListenerFilter(filter, extensions, out.get()); !s.ok()) return s;
  }
  if (absl::Status s = CompileAccessLogs(listener, extensions, &out->logs); !s.ok()) return s;
  if (listener.filter_chains().empty() && !listener.has_default_filter_chain()) {
    return failed("no filter chains specified");
  }
  for (int i = 0; i < listener.filter_chains_size(); ++i) {
    const listener_v3::FilterChain& proto = listener.filter_chains(i);
    for (int j = 0; j < i; ++j) {
      if (google::protobuf::util::MessageDifferencer::Equals(listener.filter_chains(j).filter_chain_match(),
                                                             proto.filter_chain_match())) {
        return failed(
            fmt::format("filter chain '{}' has the same matching rules defined as '{}'. duplicate matcher is: {}",
                        proto.name(), listener.filter_chains(j).name(), ToJson(proto.filter_chain_match())));
      }
    }
    absl::StatusOr<FilterChainMatcher::Match> match = CompileMatch(proto.filter_chain_match());
    if (!match.ok()) {
      const std::string why(match.status().message());
      return why.starts_with("malformed") ? match.status() : failed(why);
    }
    absl::StatusOr<FilterChain> chain = CompileChain(proto, extensions);
    if (!chain.ok()) return chain.status();
    if (!out->matcher.Add(*match, static_cast<uint32_t>(out->chains.size()))) {
      return failed("multiple filter chains with overlapping matching rules are defined");
    }
    NoteNeeds(*chain, out.get());
    if (chain->http.has_value() && chain->http->routes != nullptr) {
      const auto& uses = chain->http->routes->validated;
      out->validated.insert(out->validated.end(), uses.begin(), uses.end());
    }
    out->chains.push_back(*std::move(chain));
  }
  if (listener.has_default_filter_chain()) {
    absl::StatusOr<FilterChain> chain = CompileChain(listener.default_filter_chain(), extensions);
    if (!chain.ok()) return chain.status();
    NoteNeeds(*chain, out.get());
    out->default_chain = static_cast<uint32_t>(out->chains.size());
    out->chains.push_back(*std::move(chain));
  }
  std::sort(out->route_names.begin(), out->route_names.end());
  return out;
}

}  // namespace wavetank::envoysim
