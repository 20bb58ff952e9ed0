#include "fakes/envoy/config/listener_config.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/listener/v3/listener_components.pb.h"
#include "fakes/envoy/access_log/istio_stats.h"
#include "fakes/envoy/config/alpn_offers.h"
#include "fakes/envoy/config/filter_registry.h"
#include "fakes/envoy/extensions/config_json.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/match/proto_time.h"
#include "fmt/format.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/util/json_util.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

namespace listener_v3 = envoy::config::listener::v3;

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
      return Invalid("partial wildcards are not supported in \"server_names\"");
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

// What ECDS gives filters of other kinds is not modelled: they pass everything.
void NoteDiscovered(std::string_view kind, const envoy::config::core::v3::ExtensionConfigSource& source,
                    const Extensions& extensions) {
  for (const std::string& url : source.type_urls()) {
    extensions.NoteWithoutEffect(fmt::format("{} by ECDS", kind), url.substr(url.rfind('/') + 1));
  }
}

absl::StatusOr<FilterChain> CompileChain(const listener_v3::FilterChain& proto, const Extensions& extensions) {
  FilterChain out;
  out.hash = HashBytes(proto.SerializeAsString());
  out.name = proto.name();
  if (proto.has_transport_socket()) {
    absl::StatusOr<TransportSocket> socket =
        CompileTransportSocket(proto.transport_socket(), /*downstream=*/true, extensions);
    if (!socket.ok()) return socket.status();
    out.socket = *std::move(socket);
  }
  bool passes_on = false;  // the last filter does not end the chain, and is known not to
  for (const auto& filter : proto.filters()) {
    if (filter.has_config_discovery()) {
      NoteDiscovered("network filter", filter.config_discovery(), extensions);
      continue;
    }
    if (absl::Status s = extensions.Check(filter.name(), filter.typed_config()); !s.ok()) return s;
    if (out.http.has_value() || out.tcp.has_value()) {
      return Invalid(
          fmt::format("Error: terminal filter named {} of type {} must be the last filter in a network filter chain.",
                      proto.filters(0).name(), proto.filters(0).name()));
    }
    const NetworkFilterType* const type =
        extensions.filters()->Network(ConfigType(filter.typed_config()), filter.name());
    passes_on = type != nullptr && !type->terminal;
    if (ConfigType(filter.typed_config()) == "stats.PluginConfig") {
      absl::StatusOr<std::shared_ptr<const IstioStats>> stats = IstioStats::Make(filter.typed_config(), extensions);
      if (!stats.ok()) return stats.status();
      out.stats.push_back(*std::move(stats));
      continue;
    }
    if (ConfigType(filter.typed_config()) == kPeerExchangeMessage) out.exchanges_peers = true;
    if (type == nullptr) {
      extensions.NoteWithoutEffect("network filter", filter.typed_config());
      continue;
    }
    if (absl::Status s = type->add(filter.typed_config(), {extensions, filter.name(), {}}, &out); !s.ok()) return s;
  }
  if (passes_on) {
    const auto& last = *proto.filters().rbegin();
    const NetworkFilterType* const type = extensions.filters()->Network(ConfigType(last.typed_config()), last.name());
    return Invalid(
        fmt::format("Error: non-terminal filter named {} of type {} is the last filter in a network filter chain.",
                    last.name(), type == nullptr ? last.name() : type->name));
  }
  out.reads = std::any_of(out.filters.begin(), out.filters.end(), [](const auto& f) { return f->reads(); });
  return out;
}

absl::Status AddListenerFilter(const listener_v3::ListenerFilter& filter, const Extensions& extensions,
                               ListenerConfig* out) {
  if (filter.has_config_discovery()) {
    NoteDiscovered("listener filter", filter.config_discovery(), extensions);
    return absl::OkStatus();
  }
  if (absl::Status s = extensions.Check(filter.name(), filter.typed_config()); !s.ok()) return s;
  const std::string type = ConfigType(filter.typed_config());
  const auto is = [&](std::string_view message, std::string_view name) {
    return type.ends_with(message) || (type.empty() && filter.name() == name);
  };
  if (is("OriginalDst", "envoy.filters.listener.original_dst")) {
    out->original_dst = true;
  } else if (is("TlsInspector", "envoy.filters.listener.tls_inspector")) {
    out->tls_inspector = true;
    const absl::StatusOr<nlohmann::json> said = ConfigJson(filter.typed_config());
    for (const char* const hash : {"enable_ja3_fingerprinting", "enable_ja4_fingerprinting"}) {
      if (said.ok() && said->contains(hash))
        extensions.NoteWithoutEffect("listener filter", fmt::format("TlsInspector.{}", hash));
    }
    if (filter.has_filter_disabled()) out->tls_inspector_disabled = CompilePredicate(filter.filter_disabled());
  } else if (is("HttpInspector", "envoy.filters.listener.http_inspector")) {
    out->http_inspector = true;
    if (filter.has_filter_disabled()) out->http_inspector_disabled = CompilePredicate(filter.filter_disabled());
  } else if (is("listener.proxy_protocol.v3.ProxyProtocol", "envoy.filters.listener.proxy_protocol")) {
    const absl::StatusOr<nlohmann::json> said = ConfigJson(filter.typed_config());
    if (!said.ok()) return said.status();
    out->proxy_protocol = true;
    out->allows_no_proxy_protocol = BoolAt(*said, "allow_requests_without_proxy_protocol");
  } else {
    extensions.NoteWithoutEffect("listener filter", filter.typed_config());
  }
  return absl::OkStatus();
}

// The longest, where 0, which waits for good, is longer than any.
void TakeLonger(Duration timeout, bool first, Duration* out) {
  if (first) *out = timeout;
  *out = timeout == Duration::zero() || *out == Duration::zero() ? Duration::zero() : std::max(*out, timeout);
}

void NoteNeeds(const FilterChain& chain, ListenerConfig* out) {
  if (chain.http.has_value()) {
    for (const DiscoveredFilter& filter : chain.http->discovered) {
      const bool waiting =
          std::any_of(out->extensions.begin(), out->extensions.end(), [](const auto& e) { return e.waits; });
      if (filter.waits) TakeLonger(filter.initial_fetch_timeout, !waiting, &out->ecds_initial_fetch_timeout);
      // What is alike in all that matters to the listener counts once: gateways have a chain for each service.
      const bool known = std::any_of(out->extensions.begin(), out->extensions.end(), [&](const DiscoveredFilter& e) {
        return e.name == filter.name && e.types == filter.types && e.last == filter.last && e.waits == filter.waits;
      });
      if (!known) out->extensions.push_back(filter);
    }
  }
  if (chain.http.has_value() && !chain.http->rds_name.empty()) {
    AddUnique(chain.http->rds_name, &out->route_names);
    TakeLonger(chain.http->rds_initial_fetch_timeout, out->route_names.size() == 1, &out->rds_initial_fetch_timeout);
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
                                                                      const Hash128& hash, const Extensions& binary) {
  auto out = std::make_shared<ListenerConfig>();
  const Extensions extensions = binary.WithNotes(&out->without_effect);
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
  if (absl::Status s = AddAccessLogs(listener.access_log(), extensions, &out->logs); !s.ok()) return s;
  if (listener.filter_chains().empty() && !listener.has_default_filter_chain()) {
    return failed("no filter chains specified");
  }
  // By their bytes, which for messages without maps are equal where these are; gateways have a chain for each service.
  absl::flat_hash_map<std::string, std::string_view> matches;
  for (const listener_v3::FilterChain& proto : listener.filter_chains()) {
    const auto [same, is_new] = matches.emplace(proto.filter_chain_match().SerializeAsString(), proto.name());
    if (!is_new) {
      return failed(
          fmt::format("filter chain '{}' has the same matching rules defined as '{}'. duplicate matcher is: {}",
                      proto.name(), same->second, ToJson(proto.filter_chain_match())));
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
