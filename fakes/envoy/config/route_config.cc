#include "fakes/envoy/config/route_config.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/config/route/v3/route_components.pb.h"
#include "envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config.pb.h"
#include "fakes/envoy/config/config_path.h"
#include "fakes/envoy/config/filter_registry.h"
#include "fakes/envoy/extensions/catalogue.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/match/proto_time.h"
#include "fakes/envoy/tcp/http.h"
#include "fmt/format.h"
#include "google/protobuf/duration.pb.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {
namespace {

namespace route_v3 = envoy::config::route::v3;

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = text.find(separator);
    std::string_view item = text.substr(0, end);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    out.push_back(item);
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

constexpr std::pair<std::string_view, RetryOn> kRetryOnNames[] = {
    {"5xx", kRetry5xx},
    {"gateway-error", kRetryGatewayError},
    {"reset", kRetryReset},
    {"reset-before-request", kRetryResetBeforeRequest},
    {"connect-failure", kRetryConnectFailure},
    {"retriable-4xx", kRetryRetriable4xx},
    {"refused-stream", kRetryRefusedStream},
    {"retriable-status-codes", kRetryRetriableStatusCodes},
    {"retriable-headers", kRetryRetriableHeaders},
    {"envoy-ratelimited", kRetryEnvoyRateLimited},
    {"cancelled", kRetryGrpcCancelled},
    {"deadline-exceeded", kRetryGrpcDeadlineExceeded},
    {"resource-exhausted", kRetryGrpcResourceExhausted},
    {"unavailable", kRetryGrpcUnavailable},
    {"internal", kRetryGrpcInternal},
};

// Envoy: retry_state_impl.cc, parseResetInterval
absl::Status CompileResetHeaders(const route_v3::RetryPolicy& proto, RetryPolicy* out) {
  if (!proto.has_rate_limited_retry_back_off()) return absl::OkStatus();
  const auto& limited = proto.rate_limited_retry_back_off();
  if (limited.reset_headers().empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (RateLimitedRetryBackOffValidationError.ResetHeaders: value must contain "
        "at least 1 item(s))");
  }
  for (const auto& header : limited.reset_headers()) {
    if (header.name().empty()) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (ResetHeaderValidationError.Name: value length must be at least 1 "
          "characters)");
    }
    if (header.name().find_first_of(std::string_view("\0\n\r", 3)) != std::string::npos) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (ResetHeaderValidationError.Name: value does not match regex pattern "
          "\"^[^\\x00\\n\\r]*$\")");
    }
    out->reset_headers.push_back(
        {absl::AsciiStrToLower(header.name()), header.format() == route_v3::RetryPolicy::UNIX_TIMESTAMP});
  }
  if (limited.has_max_interval()) {
    if (IsZero(limited.max_interval())) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (RateLimitedRetryBackOffValidationError.MaxInterval: value must be "
          "greater than 0s)");
    }
    out->reset_max_interval = ToDuration(limited.max_interval());
  }
  return absl::OkStatus();
}

absl::Status CompileRetryPriority(const route_v3::RetryPolicy::RetryPriority& proto, const Extensions& extensions,
                                  RetryPolicy* out) {
  using Config = envoy::extensions::retry::priority::previous_priorities::v3::PreviousPrioritiesConfig;
  if (absl::Status s = extensions.Check(proto.name(), proto.typed_config()); !s.ok()) return s;
  if (ConfigType(proto.typed_config()) != Config::descriptor()->full_name()) {
    extensions.NoteWithoutEffect("retry priority", proto.typed_config());
    return absl::OkStatus();
  }
  Config config;
  if (absl::Status s = UnpackConfig(proto.typed_config(), &config); !s.ok()) return s;
  // A real Envoy takes 0, too, and only fails at the first retry.
  out->priorities_update_frequency = static_cast<uint32_t>(std::max(config.update_frequency(), 0));
  return absl::OkStatus();
}

// Its other fields do nothing in a real Envoy either: api/envoy/config/route/v3/route_components.proto,
// not-implemented-hide.
absl::Status CompileHedging(const route_v3::HedgePolicy& policy, RouteEntry* out) {
  if (policy.has_initial_requests() && policy.initial_requests().value() < 1) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (HedgePolicyValidationError.InitialRequests: value must be greater than or "
        "equal to 1)");
  }
  out->hedges = policy.hedge_on_per_try_timeout();
  return absl::OkStatus();
}

absl::StatusOr<RetryPolicy> CompileRetry(const route_v3::RetryPolicy& proto, const Extensions& extensions) {
  RetryPolicy out;
  out.on = RetryOnOf(proto.retry_on());
  for (const auto& [matchers, to] : {std::pair{&proto.retriable_headers(), &out.headers},
                                     std::pair{&proto.retriable_request_headers(), &out.request_headers}}) {
    for (const auto& matcher : *matchers) {
      absl::StatusOr<HeaderMatch> match = HeaderMatch::Make(matcher);
      if (!match.ok()) return match.status();
      to->push_back(*std::move(match));
    }
  }
  if (proto.has_per_try_idle_timeout()) out.per_try_idle_timeout = ToDuration(proto.per_try_idle_timeout());
  if (absl::Status s = CompileResetHeaders(proto, &out); !s.ok()) return s;
  if (proto.has_retry_priority()) {
    if (absl::Status s = CompileRetryPriority(proto.retry_priority(), extensions, &out); !s.ok()) return s;
  }
  for (const auto& predicate : proto.retry_options_predicates()) {
    // No Envoy has any of its own.
    return absl::InvalidArgumentError(
        fmt::format("Didn't find a registered implementation for '{}' with type URL: '{}'", predicate.name(),
                    TypeName(predicate.typed_config())));
  }
  if (proto.has_num_retries()) out.retries = proto.num_retries().value();
  if (proto.has_per_try_timeout()) out.per_try_timeout = ToDuration(proto.per_try_timeout());
  out.status_codes.assign(proto.retriable_status_codes().begin(), proto.retriable_status_codes().end());
  if (proto.host_selection_retry_max_attempts() > 0) {
    out.host_selection_attempts = static_cast<uint32_t>(proto.host_selection_retry_max_attempts());
  }
  for (const auto& predicate : proto.retry_host_predicate()) {
    if (absl::Status s = extensions.Check(predicate.name(), predicate.typed_config()); !s.ok()) return s;
    if (predicate.name() == "envoy.retry_host_predicates.previous_hosts") {
      out.avoid_previous_hosts = true;
    } else {
      extensions.NoteWithoutEffect("retry host predicate", predicate.typed_config());
    }
  }
  if (proto.has_retry_back_off()) {
    const auto& back_off = proto.retry_back_off();
    if (IsZero(back_off.base_interval())) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (RetryBackOffValidationError.BaseInterval: value must be greater than "
          "0s)");
    }
    out.base_interval = std::max<Duration>(ToDuration(back_off.base_interval()), 1ms);
    out.max_interval = back_off.has_max_interval() ? ToDuration(back_off.max_interval()) : 10 * out.base_interval;
    if (out.max_interval < out.base_interval) {
      return absl::InvalidArgumentError(
          "retry_policy.max_interval must greater than or equal to the retry_policy.base_interval");
    }
  }
  return out;
}

template <typename Message>
absl::Status CompileHeaders(const Message& message, const Extensions& extensions, HeaderLevel* out) {
  if (absl::Status s = HeaderOperations::MakeForRequests(message, extensions, &out->request); !s.ok()) return s;
  return HeaderOperations::MakeForReplies(message, extensions, &out->reply);
}

// What a route says to a filter in that filter's own message. Envoy: config_impl.cc, createRouteSpecificFilterConfig
absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> CompileRouteFilter(const std::string& name,
                                                                            const google::protobuf::Any& config,
                                                                            bool optional,
                                                                            const Extensions& extensions) {
  const std::shared_ptr<const RouteFilterConfig> nothing;
  if (absl::Status known = extensions.Check(name, config); !known.ok()) {
    if (optional) return nothing;
    return known;
  }
  const std::string type = ConfigType(config);
  const HttpFilterType* const filter =
      extensions.filters() == nullptr ? nullptr : extensions.filters()->HttpOfRoute(type);
  if (filter != nullptr) return filter->make_for_route(config, extensions);
  if (HasNoWordOfRoutes(type) && !optional) {
    return absl::InvalidArgumentError(
        fmt::format("The filter {} doesn't support virtual host or route specific configurations", name));
  }
  return nothing;
}

// Names in order: the map has none. Envoy: config_impl.cc, PerFilterConfigs
template <typename Map>
absl::Status CompileRouteFilters(const Map& configs, const Extensions& extensions, RouteFilterConfigs* out) {
  for (const auto& [name, config] : configs) {
    RouteFilterEntry entry{name, nullptr, false};
    const google::protobuf::Any* own = &config;
    route_v3::FilterConfig wrapped;
    if (ConfigType(config) == route_v3::FilterConfig::descriptor()->full_name()) {
      if (absl::Status s = UnpackConfig(config, &wrapped); !s.ok()) return s;
      if (!wrapped.disabled() && !wrapped.has_config()) {
        return absl::InvalidArgumentError(
            fmt::format("Empty route/virtual host per filter configuration for {} filter", name));
      }
      entry.disabled = wrapped.disabled();
      own = wrapped.disabled() || wrapped.config().type_url().empty() ? nullptr : &wrapped.config();
    }
    if (own != nullptr) {
      auto made = CompileRouteFilter(name, *own, wrapped.is_optional(), extensions);
      if (!made.ok()) return made.status();
      entry.config = *std::move(made);
    }
    out->push_back(std::move(entry));
  }
  std::sort(out->begin(), out->end(), [](const auto& a, const auto& b) { return a.filter < b.filter; });
  return absl::OkStatus();
}

absl::Status CompileWeighted(const route_v3::WeightedCluster::ClusterWeight& proto, const Extensions& extensions,
                             RouteEntry* out) {
  WeightedCluster& cluster = out->clusters.emplace_back();
  cluster.name = proto.name();
  cluster.weight = proto.weight().value();
  out->total_weight += cluster.weight;
  RouteEdits edits;
  if (absl::Status s = CompileHeaders(proto, extensions, &edits.headers); !s.ok()) return s;
  edits.host.literal = proto.host_rewrite_literal();
  if (!edits.headers.empty() || !edits.host.empty()) cluster.edits = std::make_shared<RouteEdits>(std::move(edits));
  if (absl::Status s = CompileRouteFilters(proto.typed_per_filter_config(), extensions, &cluster.filters); !s.ok()) {
    return s;
  }
  out->clusters_configure_filters |= !cluster.filters.empty();
  return absl::OkStatus();
}

absl::Status CompileRouteAction(const route_v3::RouteAction& action, const Extensions& extensions, RouteEntry* out) {
  switch (action.cluster_specifier_case()) {
    case route_v3::RouteAction::kCluster:
      out->action = RouteEntry::Action::kCluster;
      out->cluster = action.cluster();
      break;
    case route_v3::RouteAction::kClusterHeader:
      out->action = RouteEntry::Action::kHeader;
      out->cluster = absl::AsciiStrToLower(action.cluster_header());
      break;
    case route_v3::RouteAction::kWeightedClusters:
      out->action = RouteEntry::Action::kWeighted;
      for (const auto& c : action.weighted_clusters().clusters()) {
        if (absl::Status s = CompileWeighted(c, extensions, out); !s.ok()) return s;
      }
      if (out->clusters.empty()) {
        return absl::InvalidArgumentError(
            "Proto constraint validation failed (WeightedClusterValidationError.Clusters: value must contain at least "
            "1 item(s))");
      }
      if (out->total_weight == 0) {
        return absl::InvalidArgumentError("Sum of weights in the weighted_cluster must be greater than 0.");
      }
      break;
    default:
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (field: \"cluster_specifier\", reason: is required)");
  }
  if (out->action == RouteEntry::Action::kCluster && out->cluster.empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (RouteActionValidationError.Cluster: value "
        "length must be at least 1 characters)");
  }
  if (action.cluster_not_found_response_code() == route_v3::RouteAction::NOT_FOUND) out->not_found_code = 404;
  if (action.cluster_not_found_response_code() == route_v3::RouteAction::INTERNAL_SERVER_ERROR)
    out->not_found_code = 500;
  if (!action.prefix_rewrite().empty() && action.has_regex_rewrite()) {
    return absl::InvalidArgumentError("Specify only one of prefix_rewrite, regex_rewrite or path_rewrite_policy");
  }
  if (action.has_timeout()) out->timeout = ToDuration(action.timeout());
  const auto& limits = action.max_stream_duration();
  if (limits.has_max_stream_duration()) out->max_stream_duration = ToDuration(limits.max_stream_duration());
  if (limits.has_grpc_timeout_header_max()) out->grpc_timeout_max = ToDuration(limits.grpc_timeout_header_max());
  out->grpc_timeout_offset = ToDuration(limits.grpc_timeout_header_offset());
  // A route that limits streams has no other timeout. Envoy: router.cc, FilterUtility::finalTimeout (usingNewTimeouts)
  if (action.has_max_stream_duration()) out->timeout = Duration::zero();
  if (action.has_max_grpc_timeout() && !action.has_max_stream_duration()) {
    out->max_grpc_timeout = ToDuration(action.max_grpc_timeout());
    out->grpc_timeout_offset = ToDuration(action.grpc_timeout_offset());
  }
  if (action.has_idle_timeout()) out->idle_timeout = ToDuration(action.idle_timeout());
  if (action.has_retry_policy()) {
    absl::StatusOr<RetryPolicy> retry = CompileRetry(action.retry_policy(), extensions);
    if (!retry.ok()) return retry.status();
    out->retry = *std::move(retry);
  }
  for (const auto& hash : action.hash_policy()) {
    HashPolicy h;
    h.terminal = hash.terminal();
    switch (hash.policy_specifier_case()) {
      case route_v3::RouteAction::HashPolicy::kHeader:
        h = {HashPolicy::Kind::kHeader, absl::AsciiStrToLower(hash.header().header_name()), h.terminal, {}, {}, {}};
        break;
      case route_v3::RouteAction::HashPolicy::kCookie:
        h = {HashPolicy::Kind::kCookie, hash.cookie().name(), h.terminal, {}, hash.cookie().path(), {}};
        // Envoy: source/common/http/utility.cc, makeSetCookieValue.
        for (const auto& attribute : hash.cookie().attributes()) {
          absl::StrAppend(&h.attributes, "; ", attribute.name(), attribute.value().empty() ? "" : "=",
                          attribute.value());
        }
        if (hash.cookie().has_ttl()) h.ttl = ToDuration(hash.cookie().ttl());
        break;
      case route_v3::RouteAction::HashPolicy::kConnectionProperties:
        h.kind = HashPolicy::Kind::kSourceIp;
        break;
      case route_v3::RouteAction::HashPolicy::kQueryParameter:
        h = {HashPolicy::Kind::kQuery, hash.query_parameter().name(), h.terminal, {}, {}, {}};
        break;
      default:
        continue;
    }
    out->hashes.push_back(std::move(h));
  }
  for (const auto& upgrade : action.upgrade_configs()) {
    out->upgrades.emplace_back(absl::AsciiStrToLower(upgrade.upgrade_type()),
                               !upgrade.has_enabled() || upgrade.enabled().value());
  }
  for (const auto& mirror : action.request_mirror_policies()) {
    MirrorPolicy m{mirror.cluster()};
    if (mirror.has_runtime_fraction()) m.per_million = PartsPerMillion(mirror.runtime_fraction().default_value());
    m.keeps_host = mirror.disable_shadow_host_suffix_append();
    out->mirrors.push_back(std::move(m));
  }
  return absl::OkStatus();
}

uint16_t RedirectCode(route_v3::RedirectAction::RedirectResponseCode code) {
  switch (code) {
    case route_v3::RedirectAction::FOUND:
      return 302;
    case route_v3::RedirectAction::SEE_OTHER:
      return 303;
    case route_v3::RedirectAction::TEMPORARY_REDIRECT:
      return 307;
    case route_v3::RedirectAction::PERMANENT_REDIRECT:
      return 308;
    default:
      return 301;
  }
}

absl::Status CompileEdits(const route_v3::Route& route, const Extensions& extensions,
                          std::shared_ptr<const RouteEdits>* out) {
  RouteEdits edits;
  if (absl::Status s = CompileHeaders(route, extensions, &edits.headers); !s.ok()) return s;
  absl::StatusOr<PathRewrite> path = PathRewrite::Make(route.route());
  if (!path.ok()) return path.status();
  absl::StatusOr<HostRewrite> host = HostRewrite::Make(route.route());
  if (!host.ok()) return host.status();
  edits.path = *std::move(path);
  edits.host = *std::move(host);
  if (edits.headers.empty() && edits.host.empty() && edits.path.empty()) return absl::OkStatus();
  *out = std::make_shared<RouteEdits>(std::move(edits));
  return absl::OkStatus();
}

// CORS as a field of routes and virtual hosts, before it was a filter's configuration.
template <typename Message>
absl::Status CompileLegacyCors(const Message& message, const Extensions& extensions, RouteFilterConfigs* out) {
  if (!message.has_cors() || extensions.filters() == nullptr) return absl::OkStatus();
  const HttpFilterType* const type = extensions.filters()->Http({}, "envoy.filters.http.cors");
  if (type == nullptr) return absl::OkStatus();
  google::protobuf::Any any;
  any.PackFrom(message.cors());
  absl::StatusOr<std::shared_ptr<const RouteFilterConfig>> made = type->make_for_route(any, extensions);
  if (made.ok()) out->push_back({std::string(kCorsField), *std::move(made), false});
  return made.status();
}

template <typename Message>
absl::Status CompileLimits(const Message& message, RateLimitActions* out) {
  for (const auto& limit : message.rate_limits()) {
    if (absl::Status s = out->Add(limit); !s.ok()) return s;
  }
  return absl::OkStatus();
}

// What scripts may ask of a route.
std::shared_ptr<const nlohmann::json> LuaMetadata(const route_v3::Route& route) {
  const auto& all = route.metadata().filter_metadata();
  const auto found = all.find("envoy.filters.http.lua");
  std::string text;
  if (found == all.end() || !google::protobuf::util::MessageToJsonString(found->second, &text).ok()) return nullptr;
  return std::make_shared<const nlohmann::json>(ParseJson(text));
}

absl::Status CompileRoute(const route_v3::Route& route, const Extensions& extensions, RouteEntry* out) {
  out->name = route.name();
  out->config = ConfigPath(route.metadata());
  out->lua_metadata = LuaMetadata(route);
  out->includes_host_limits = route.route().include_vh_rate_limits().value();
  if (absl::Status s = CompileLimits(route.route(), &out->limits); !s.ok()) return s;
  if (!route.has_match()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (RouteValidationError.Match: value is required)");
  }
  if (absl::Status s = CompileRouteMatch(route.match(), out); !s.ok()) return s;
  switch (route.action_case()) {
    case route_v3::Route::kRoute:
      if (absl::Status s = CompileRouteAction(route.route(), extensions, out); !s.ok()) return s;
      if (absl::Status s = CompileLegacyCors(route.route(), extensions, &out->filters); !s.ok()) return s;
      break;
    case route_v3::Route::kDirectResponse:
      out->action = RouteEntry::Action::kDirect;
      out->direct_code = static_cast<uint16_t>(route.direct_response().status());
      out->direct_body = route.direct_response().body().inline_string();
      if (out->direct_code < 200 || out->direct_code >= 600) {
        return absl::InvalidArgumentError(
            "Proto constraint validation failed "
            "(DirectResponseActionValidationError.Status: value must be inside range "
            "[200, 600))");
      }
      break;
    case route_v3::Route::kRedirect:
      out->action = RouteEntry::Action::kRedirect;
      out->redirect_code = RedirectCode(route.redirect().response_code());
      if (absl::StatusOr<Redirect> redirect = Redirect::Make(route.redirect()); !redirect.ok()) {
        return redirect.status();
      } else {
        out->redirect = std::make_shared<Redirect>(*std::move(redirect));
      }
      break;
    case route_v3::Route::kNonForwardingAction:
      out->action = RouteEntry::Action::kNonForwarding;
      break;
    default:
      return absl::InvalidArgumentError("Proto constraint validation failed (field: \"action\", reason: is required)");
  }
  if (absl::Status s = CompileEdits(route, extensions, &out->edits); !s.ok()) return s;
  return CompileRouteFilters(route.typed_per_filter_config(), extensions, &out->filters);
}

absl::Status AddDomain(const std::string& raw, uint32_t host, RouteTable* table) {
  const std::string domain = absl::AsciiStrToLower(raw);
  const auto duplicate = [&] {
    return absl::InvalidArgumentError(fmt::format(
        "Only unique values for domains are permitted. Duplicate entry of domain {} in route {}", domain, table->name));
  };
  if (domain == "*") {
    if (table->any.has_value()) {
      return absl::InvalidArgumentError(
          fmt::format("Only a single wildcard domain is permitted in route {}", table->name));
    }
    table->any = host;
    return absl::OkStatus();
  }
  const auto add = [&](std::vector<std::pair<std::string, uint32_t>>* list, std::string key) {
    for (const auto& [known, index] : *list) {
      if (known == key) return false;
    }
    list->emplace_back(std::move(key), host);
    return true;
  };
  if (!domain.empty() && domain.front() == '*') {
    return add(&table->suffixes, domain.substr(1)) ? absl::OkStatus() : absl::Status(duplicate());
  }
  if (!domain.empty() && domain.back() == '*') {
    return add(&table->prefixes, domain.substr(0, domain.size() - 1)) ? absl::OkStatus() : absl::Status(duplicate());
  }
  return table->exact.emplace(domain, host).second ? absl::OkStatus() : absl::Status(duplicate());
}

}  // namespace

// A bare number among them is a retriable status code, as Istio allows. Envoy ignores unknown words.
uint32_t RetryOnOf(std::string_view list) {
  uint32_t out = 0;
  for (const std::string_view item : Split(list, ',')) {
    for (const auto& [name, bit] : kRetryOnNames) {
      if (item == name) out |= bit;
    }
  }
  return out;
}

absl::Status CompileRouteMatch(const route_v3::RouteMatch& match, RouteEntry* out) {
  using Kind = StringMatch::Kind;
  out->case_sensitive = !match.has_case_sensitive() || match.case_sensitive().value();
  const bool fold = !out->case_sensitive;
  switch (match.path_specifier_case()) {
    case route_v3::RouteMatch::kPrefix:
      out->path_kind = RouteEntry::PathKind::kPrefix;
      out->path = StringMatch::Make(Kind::kPrefix, match.prefix(), fold);
      break;
    case route_v3::RouteMatch::kPath:
      out->path_kind = RouteEntry::PathKind::kExact;
      out->path = StringMatch::Make(Kind::kExact, match.path(), fold);
      break;
    case route_v3::RouteMatch::kPathSeparatedPrefix:
      out->path_kind = RouteEntry::PathKind::kSeparatedPrefix;
      if (match.path_separated_prefix().size() < 2 || match.path_separated_prefix().ends_with('/') ||
          match.path_separated_prefix().find_first_of("?#") != std::string::npos) {
        return absl::InvalidArgumentError(
            "Proto constraint validation failed (RouteMatchValidationError.PathSeparatedPrefix: value does not match "
            "regex pattern \"^[^?#]+[^?#/]$\")");
      }
      out->path = StringMatch::Make(Kind::kPrefix, match.path_separated_prefix(), fold);
      break;
    case route_v3::RouteMatch::kSafeRegex: {
      out->path_kind = RouteEntry::PathKind::kRegex;
      absl::StatusOr<StringMatch> regex = StringMatch::MakeRegex(match.safe_regex().regex());
      if (!regex.ok()) return regex.status();
      out->path = *std::move(regex);
      break;
    }
    case route_v3::RouteMatch::kConnectMatcher:
      out->path_kind = RouteEntry::PathKind::kConnect;
      break;
    default:
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (field: \"path_specifier\", reason: is required)");
  }
  for (const auto& header : match.headers()) {
    absl::StatusOr<HeaderMatch> m = HeaderMatch::Make(header);
    if (!m.ok()) return m.status();
    out->headers.push_back(*std::move(m));
  }
  if (match.has_grpc()) {  // Envoy: source/common/grpc/common.cc, isGrpcRequestHeaders
    envoy::config::route::v3::HeaderMatcher grpc;
    grpc.set_name("content-type");
    grpc.mutable_string_match()->mutable_safe_regex()->set_regex("application/grpc(\\+.*)?");
    absl::StatusOr<HeaderMatch> m = HeaderMatch::Make(grpc);
    if (!m.ok()) return m.status();
    out->headers.push_back(*std::move(m));
  }
  for (const auto& query : match.query_parameters()) {
    absl::StatusOr<QueryMatch> m = QueryMatch::Make(query);
    if (!m.ok()) return m.status();
    out->queries.push_back(*std::move(m));
  }
  for (const auto& metadata : match.dynamic_metadata()) {
    absl::StatusOr<MetadataMatch> m = MetadataMatch::Make(metadata);
    if (!m.ok()) return m.status();
    out->metadata.push_back(*std::move(m));
  }
  if (match.has_runtime_fraction())
    out->runtime_per_million = PartsPerMillion(match.runtime_fraction().default_value());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const RouteTable>> CompileRoutes(const route_v3::RouteConfiguration& config,
                                                                const Hash128& hash, const Extensions& extensions,
                                                                bool validate) {
  auto table = std::make_shared<RouteTable>();
  table->hash = hash;
  table->name = config.name();
  table->ignore_port = config.ignore_port_in_host_matching();
  table->most_specific_wins = config.most_specific_header_mutations_wins();
  if (absl::Status s = CompileHeaders(config, extensions, &table->headers); !s.ok()) return s;
  table->edits_headers = !table->headers.empty();
  if (config.has_validate_clusters()) validate = config.validate_clusters().value();
  const auto must_exist = [&](const std::string& cluster, std::string_view what) {
    if (validate) table->validated.push_back({cluster, fmt::format("route: unknown {} '{}'", what, cluster)});
  };
  RouteFilterConfigs of_all;  // behind those of each host
  if (absl::Status s = CompileRouteFilters(config.typed_per_filter_config(), extensions, &of_all); !s.ok()) return s;
  for (const auto& proto : config.virtual_hosts()) {
    const uint32_t index = static_cast<uint32_t>(table->hosts.size());
    VirtualHost& host = table->hosts.emplace_back();
    host.name = proto.name();
    if (host.name.empty()) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (RouteConfigurationValidationError."
          "VirtualHosts[i]: embedded message failed validation | caused by "
          "VirtualHostValidationError.Name: value length must be at least 1 characters)");
    }
    if (proto.domains().empty()) {
      return absl::InvalidArgumentError(
          "Proto constraint validation failed (RouteConfigurationValidationError."
          "VirtualHosts[i]: embedded message failed validation | caused by "
          "VirtualHostValidationError.Domains: value must contain at least 1 item(s))");
    }
    for (const std::string& domain : proto.domains()) {
      if (absl::Status s = AddDomain(domain, index, table.get()); !s.ok()) return s;
    }
    if (absl::Status s = CompileRouteFilters(proto.typed_per_filter_config(), extensions, &host.filters); !s.ok()) {
      return s;
    }
    if (absl::Status s = CompileLegacyCors(proto, extensions, &host.filters); !s.ok()) return s;
    host.filters.insert(host.filters.end(), of_all.begin(), of_all.end());
    if (absl::Status s = CompileLimits(proto, &host.limits); !s.ok()) return s;
    if (absl::Status s = CompileHeaders(proto, extensions, &host.headers); !s.ok()) return s;
    host.require_tls = proto.require_tls() != route_v3::VirtualHost::NONE;
    host.require_tls_of_others = proto.require_tls() == route_v3::VirtualHost::EXTERNAL_ONLY;
    host.count_attempts = proto.include_request_attempt_count();
    host.count_attempts_in_reply = proto.include_attempt_count_in_response();
    table->edits_headers |= !host.headers.empty();
    for (const auto& route : proto.routes()) {
      RouteEntry entry;
      if (absl::Status s = CompileRoute(route, extensions, &entry); !s.ok()) return s;
      const auto& hedging = route.route().has_hedge_policy() ? route.route().hedge_policy() : proto.hedge_policy();
      if (absl::Status s = CompileHedging(hedging, &entry); !s.ok()) return s;
      if (!entry.retry.has_value() && proto.has_retry_policy()) {
        absl::StatusOr<RetryPolicy> retry = CompileRetry(proto.retry_policy(), extensions);
        if (!retry.ok()) return retry.status();
        entry.retry = *std::move(retry);
      }
      if (entry.action == RouteEntry::Action::kCluster) must_exist(entry.cluster, "cluster");
      for (const WeightedCluster& c : entry.clusters) must_exist(c.name, "weighted cluster");
      for (const MirrorPolicy& m : entry.mirrors) must_exist(m.cluster, "shadow cluster");
      table->edits_headers |= entry.edits != nullptr;
      for (const WeightedCluster& c : entry.clusters) table->edits_headers |= c.edits != nullptr;
      host.routes.push_back(std::move(entry));
    }
  }
  const auto disables = [](const RouteFilterConfigs& level) {
    return std::any_of(level.begin(), level.end(), [](const RouteFilterEntry& e) { return e.disabled; });
  };
  for (const VirtualHost& host : table->hosts) {
    table->disables_filters |= disables(host.filters);
    for (const RouteEntry& route : host.routes) {
      table->disables_filters |= disables(route.filters);
      for (const WeightedCluster& c : route.clusters) table->disables_filters |= disables(c.filters);
    }
  }
  const auto longest_first = [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); };
  std::stable_sort(table->suffixes.begin(), table->suffixes.end(), longest_first);
  std::stable_sort(table->prefixes.begin(), table->prefixes.end(), longest_first);
  return table;
}

const VirtualHost* RouteTable::FindHost(std::string_view authority) const {
  if (exact.empty() && suffixes.empty() && prefixes.empty()) return any.has_value() ? &hosts[*any] : nullptr;
  std::string host = absl::AsciiStrToLower(std::string(authority));
  if (ignore_port) {
    const size_t colon = host.rfind(':');
    const size_t bracket = host.rfind(']');
    if (colon != std::string::npos && (bracket == std::string::npos || colon > bracket)) host.resize(colon);
  }
  if (const auto it = exact.find(host); it != exact.end()) return &hosts[it->second];
  for (const auto& [suffix, index] : suffixes) {
    if (host.size() > suffix.size() && host.ends_with(suffix)) return &hosts[index];  // '*' stands for something
  }
  for (const auto& [prefix, index] : prefixes) {
    if (host.size() > prefix.size() && host.starts_with(prefix)) return &hosts[index];
  }
  return any.has_value() ? &hosts[*any] : nullptr;
}

bool RouteEntry::Matches(const RequestSpec& spec, uint64_t random, const DynamicMetadata* notes) const {
  const std::string_view whole(spec.path);
  const size_t question = std::min(whole.find_first_of("?#"), whole.size());
  const std::string_view without_query = whole.substr(0, question);
  switch (path_kind) {
    case PathKind::kConnect:
      if (spec.method != "CONNECT") return false;
      break;
    case PathKind::kSeparatedPrefix: {
      const size_t n = path.text().size();
      if (!path.Matches(without_query) || (without_query.size() > n && without_query[n] != '/')) return false;
      break;
    }
    case PathKind::kPrefix:  // the prefix may reach into the query
      if (!path.Matches(whole)) return false;
      break;
    default:
      if (!path.Matches(without_query)) return false;
  }
  if (runtime_per_million < 1'000'000 && random % 1'000'000 >= runtime_per_million) return false;
  if (!std::all_of(headers.begin(), headers.end(), [&](const HeaderMatch& m) { return m.Matches(spec); })) {
    return false;
  }
  if (!queries.empty()) {
    const std::string_view query = question < whole.size() && whole[question] == '?'
                                       ? whole.substr(question + 1, whole.find('#', question) - question - 1)
                                       : std::string_view();
    if (!std::all_of(queries.begin(), queries.end(), [&](const QueryMatch& m) { return m.Matches(query); }))
      return false;
  }
  return std::all_of(metadata.begin(), metadata.end(), [&](const MetadataMatch& m) { return m.Matches(notes); });
}

MatchedPath RouteEntry::Matched() const {
  if (path_kind != PathKind::kPrefix && path_kind != PathKind::kSeparatedPrefix) return {};
  return {path.text()};
}

const RouteEntry* RouteTable::FindRoute(const VirtualHost& host, const RequestSpec& spec, uint64_t random,
                                        const DynamicMetadata* notes) const {
  for (const RouteEntry& route : host.routes) {
    if (route.Matches(spec, random, notes)) return &route;
  }
  return nullptr;
}

}  // namespace wavetank::envoysim
