#include "fakes/envoy/config/http_connection_manager.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "envoy/config/accesslog/v3/accesslog.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "fakes/envoy/access_log/istio_stats.h"
#include "fakes/envoy/extensions/config_json.h"
#include "fakes/envoy/http/http2_options.h"
#include "fakes/envoy/match/proto_time.h"
#include "fmt/format.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

namespace hcm = envoy::extensions::filters::network::http_connection_manager::v3;

// Adds a place that ECDS fills.
absl::Status AddDiscovered(const hcm::HttpFilter& filter, bool last, const Extensions& extensions,
                           HttpConnectionManager* out) {
  const auto& source = filter.config_discovery();
  const bool disabled = filter.disabled() && extensions.release().Has(EnvoyChange::kFiltersAreDisabled);
  // Envoy: filter_chain_helper.h, processFilter
  if (last && disabled) {
    return absl::InvalidArgumentError(fmt::format(
        "Error: the last (terminal) filter ({}) in the chain cannot be disabled by default.", filter.name()));
  }
  absl::StatusOr<DiscoveredFilter> found =
      CompileDiscovered(filter.name(), "http." + out->stat_prefix + ".", source, last, extensions);
  if (!found.ok()) return found.status();
  if (!source.config_source().has_ads()) {  // a file's, or another server's, which nobody reads here
    for (const std::string& type : found->types) extensions.NoteWithoutEffect("HTTP filter by ECDS", type);
    return absl::OkStatus();
  }
  found->place = out->filters.size();
  out->filters.push_back({filter.name(), {}, nullptr, disabled});
  out->disables_filters |= disabled;
  out->filters_see_replies = true;  // for all that is known
  out->discovered.push_back(*std::move(found));
  return absl::OkStatus();
}

// istio/proxy: extensions/metadata_exchange/plugin.cc; since 1.20 source/extensions/filters/http/peer_metadata.
bool ExchangesPeers(const google::protobuf::Any& config) {
  return ConfigType(config) == "io.istio.http.peer_metadata.Config" ||
         config.value().find("envoy.wasm.metadata_exchange") != std::string::npos;
}

// Adds one filter to the chain, whose kind is "http" or "http upgrade". `terminal`: the name of the one that ends it,
// if it came already.
absl::Status CompileFilter(const hcm::HttpFilter& filter, bool last, std::string_view kind,
                           const Extensions& extensions, HttpConnectionManager* out, std::string* terminal) {
  if (filter.has_config_discovery() && terminal->empty()) return AddDiscovered(filter, last, extensions, out);
  const absl::Status known = filter.has_config_discovery()
                                 ? absl::OkStatus()  // it comes after the one that ends the chain
                                 : extensions.Check(filter.name(), filter.typed_config());
  if (!known.ok()) return filter.is_optional() ? absl::OkStatus() : known;
  if (filter.name().empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (HttpFilterValidationError.Name: value length must be at least "
        "1 characters)");
  }
  if (!terminal->empty()) {
    return absl::InvalidArgumentError(
        fmt::format("Error: terminal filter named {} of type {} must be the last filter in a {} filter chain.",
                    *terminal, "envoy.filters.http.router", kind));
  }
  const HttpFilterType* const type = extensions.filters()->Http(ConfigType(filter.typed_config()), filter.name());
  if (ConfigType(filter.typed_config()) == "stats.PluginConfig") {
    absl::StatusOr<std::shared_ptr<const IstioStats>> stats = IstioStats::Make(filter.typed_config(), extensions);
    if (!stats.ok()) return stats.status();
    out->stats.push_back(*std::move(stats));
    return absl::OkStatus();
  }
  if (type == nullptr) {
    if (ConfigType(filter.typed_config()) == "envoy.extensions.filters.http.grpc_stats.v3.FilterConfig") {
      const absl::StatusOr<nlohmann::json> said = ConfigJson(filter.typed_config());
      out->counts_messages |= said.ok() && BoolAt(*said, "emit_filter_state");
    }
    if (ExchangesPeers(filter.typed_config())) {
      out->exchanges_peers = true;
      return absl::OkStatus();
    }
    extensions.NoteWithoutEffect("HTTP filter", filter.typed_config());
    return absl::OkStatus();
  }
  if (type->terminal) *terminal = filter.name();
  const bool disabled = filter.disabled() && extensions.release().Has(EnvoyChange::kFiltersAreDisabled);
  // Envoy: filter_chain_helper.h, processFilter
  if (type->terminal && disabled) {
    return absl::InvalidArgumentError(fmt::format(
        "Error: the last (terminal) filter ({}) in the chain cannot be disabled by default.", filter.name()));
  }
  const std::string prefix = "http." + out->stat_prefix + ".";
  absl::StatusOr<std::shared_ptr<const HttpFilter>> made =
      type->make(filter.typed_config(), {extensions, filter.name(), prefix});
  if (!made.ok()) return made.status();
  if (*made != nullptr && (*made)->sees_replies()) out->filters_see_replies = true;
  if (*made != nullptr) {
    out->disables_filters |= disabled;
    out->filters.push_back({filter.name(), std::string(type->name), *std::move(made), disabled});
  }
  return absl::OkStatus();
}

absl::Status CompileFilters(const google::protobuf::RepeatedPtrField<hcm::HttpFilter>& filters, std::string_view kind,
                            const Extensions& extensions, HttpConnectionManager* out) {
  std::string terminal;
  for (int i = 0; i < filters.size(); ++i) {
    const bool last = i + 1 == filters.size();
    if (absl::Status s = CompileFilter(filters[i], last, kind, extensions, out, &terminal); !s.ok()) return s;
  }
  // One that ECDS gives is judged when it comes.
  if (terminal.empty() && !filters.empty() && !filters.rbegin()->has_config_discovery()) {
    const hcm::HttpFilter& last = *filters.rbegin();
    const HttpFilterType* const type = extensions.filters()->Http(ConfigType(last.typed_config()), last.name());
    return absl::InvalidArgumentError(
        fmt::format("Error: non-terminal filter named {} of type {} is the last filter in a {} filter chain.",
                    last.name(), type != nullptr ? type->name : last.name(), kind));
  }
  return absl::OkStatus();
}

// Envoy: http_connection_manager/config.cc (upgrade_filter_factories_)
absl::Status CompileFiltersOfUpgrades(const hcm::HttpConnectionManager& proto, const Extensions& extensions,
                                      HttpConnectionManager* out) {
  for (const auto& upgrade : proto.upgrade_configs()) {
    if (upgrade.filters().empty()) continue;
    HttpConnectionManager own;
    own.stat_prefix = out->stat_prefix;
    if (absl::Status s = CompileFilters(upgrade.filters(), "http upgrade", extensions, &own); !s.ok()) return s;
    out->filters_see_replies |= own.filters_see_replies;
    out->disables_filters |= own.disables_filters;
    for (const DiscoveredFilter& found : own.discovered) {
      for (const std::string& type : found.types) extensions.NoteWithoutEffect("HTTP filter of upgrades by ECDS", type);
    }
    std::erase_if(own.filters, [](const HttpFilterLink& link) { return link.filter == nullptr; });
    out->upgrade_filters.emplace_back(absl::AsciiStrToLower(upgrade.upgrade_type()),
                                      std::make_shared<std::vector<HttpFilterLink>>(std::move(own.filters)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HttpConnectionManager> CompileHttpConnectionManager(const hcm::HttpConnectionManager& proto,
                                                                   const Extensions& extensions) {
  HttpConnectionManager out;
  out.stat_prefix = proto.stat_prefix();
  if (out.stat_prefix.empty()) {
    return absl::InvalidArgumentError(
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
      if (out.rds_name.empty()) return absl::InvalidArgumentError("rds: route_config_name must not be empty");
      break;
    default:
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (field: \"route_specifier\", reason: is required)");
  }
  out.arrival = ArrivalRules::Of(proto);
  if (!proto.server_name().empty()) out.server_line = fmt::format("server: {}\n", proto.server_name());
  switch (proto.server_header_transformation()) {
    case hcm::HttpConnectionManager::APPEND_IF_ABSENT:
      out.server_header = HttpConnectionManager::ServerHeader::kAppendIfAbsent;
      break;
    case hcm::HttpConnectionManager::PASS_THROUGH:
      out.server_header = HttpConnectionManager::ServerHeader::kPassThrough;
      break;
    default:
      break;
  }
  if (proto.has_stream_idle_timeout()) out.stream_idle_timeout = ToDuration(proto.stream_idle_timeout());
  out.request_timeout = ToDuration(proto.request_timeout());
  if (proto.has_delayed_close_timeout()) out.delayed_close_timeout = ToDuration(proto.delayed_close_timeout());
  const auto& common = proto.common_http_protocol_options();
  out.idle_timeout = ToDuration(common.idle_timeout());
  out.max_connection_duration = ToDuration(common.max_connection_duration());
  if (proto.has_drain_timeout()) out.drain_timeout = ToDuration(proto.drain_timeout());
  out.max_stream_duration = ToDuration(common.max_stream_duration());
  out.max_requests_per_connection = common.max_requests_per_connection().value();
  const absl::StatusOr<uint32_t> streams = ConcurrentStreams(proto.http2_protocol_options(), extensions.release());
  if (!streams.ok()) return streams.status();
  out.max_concurrent_streams = *streams;
  out.accepts_http10 = proto.http_protocol_options().accept_http_10();
  out.paths.normalise = proto.normalize_path().value();
  out.paths.merge_slashes = proto.merge_slashes();
  switch (proto.path_with_escaped_slashes_action()) {
    case hcm::HttpConnectionManager::REJECT_REQUEST:
      out.paths.escaped = PathNormalisation::EscapedSlashes::kReject;
      break;
    case hcm::HttpConnectionManager::UNESCAPE_AND_REDIRECT:
      out.paths.escaped = PathNormalisation::EscapedSlashes::kRedirect;
      break;
    case hcm::HttpConnectionManager::UNESCAPE_AND_FORWARD:
      out.paths.escaped = PathNormalisation::EscapedSlashes::kForward;
      break;
    default:
      break;
  }
  if (proto.has_local_reply_config()) {
    absl::StatusOr<LocalReplyRules> rules = LocalReplyRules::Make(proto.local_reply_config(), extensions);
    if (!rules.ok()) return rules.status();
    out.local_replies = std::make_shared<LocalReplyRules>(*std::move(rules));
  }
  if (absl::Status s = CompileFilters(proto.http_filters(), "http", extensions, &out); !s.ok()) return s;
  if (absl::Status s = CompileFiltersOfUpgrades(proto, extensions, &out); !s.ok()) return s;
  if (absl::Status s = AddAccessLogs(proto.access_log(), extensions, &out.logs); !s.ok()) return s;
  return out;
}

}  // namespace wavetank::envoysim
