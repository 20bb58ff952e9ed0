#include "core/gen/http_routes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/gen/any.h"
#include "core/gen/default_routes.h"
#include "core/gen/listener_builder.h"
#include "core/gen/network_filters.h"
#include "core/gen/wire.h"
#include "core/model/proxyless.h"
#include "envoy/config/route/v3/route_components.pb.h"
#include "envoy/extensions/filters/http/fault/v3/fault.pb.h"

// Envoy has replacements for RouteAction.cors and max_grpc_timeout; istiod 1.18 sends the old ones.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::pilot {
namespace {

namespace route_v3 = ::envoy::config::route::v3;
namespace core_v3 = ::envoy::config::core::v3;
using FaultPb = ::envoy::extensions::filters::http::fault::v3::HTTPFault;
using RoutePb = route_v3::Route;
using ActionPb = route_v3::RouteAction;
using FractionPb = ::envoy::type::v3::FractionalPercent;
using StringMatcherPb = ::envoy::type::matcher::v3::StringMatcher;
using config::StringMatch;
using Rule = config::TypedConfig<config::VirtualService>;

void SetDuration(Duration duration, google::protobuf::Duration& out) {
  out.set_seconds(duration.count() / 1'000'000'000);
  out.set_nanos(static_cast<int32_t>(duration.count() % 1'000'000'000));
}

void SetMillionths(double percent, FractionPb& out) {
  out.set_numerator(static_cast<uint32_t>(percent * 10000));
  out.set_denominator(FractionPb::MILLION);
}
void SetPercent(int32_t percent, FractionPb& out) {
  out.set_numerator(static_cast<uint32_t>(percent));
  out.set_denominator(FractionPb::HUNDRED);
}

// False for a match that says nothing.
bool SetMatcher(const StringMatch& match, StringMatcherPb& out) {
  switch (match.kind) {
    case StringMatch::Kind::kNone:
      return false;
    case StringMatch::Kind::kExact:
      out.set_exact(match.value);
      break;
    case StringMatch::Kind::kPrefix:
      out.set_prefix(match.value);
      break;
    case StringMatch::Kind::kRegex:
      out.mutable_safe_regex()->set_regex(match.value);
      break;
  }
  return true;
}

// The regex "*" is no regex: istiod takes it for "any value".
bool MatchesAny(const StringMatch& match) { return match.kind == StringMatch::Kind::kRegex && match.value == "*"; }

template <typename Matcher>
void SetValueMatch(const std::string& name, const StringMatch& match, Matcher& out) {
  out.set_name(name);
  if (MatchesAny(match)) {
    out.set_present_match(true);
  } else if (StringMatcherPb value; SetMatcher(match, value)) {
    *out.mutable_string_match() = value;
  }
}

// istiod: TranslateRouteMatch. Claims of JWTs ("@request.auth.claims...") are not modelled, as RequestAuthentication
// is not.
route_v3::RouteMatch TranslateMatch(const config::HttpMatchRequest* match) {
  route_v3::RouteMatch out;
  out.set_prefix("/");
  if (match == nullptr) return out;
  std::vector<route_v3::HeaderMatcher> headers;
  for (const auto& [name, value] : match->headers) SetValueMatch(name, value, headers.emplace_back());
  for (const auto& [name, value] : match->without_headers) {
    SetValueMatch(name, value, headers.emplace_back());
    headers.back().set_invert_match(true);
  }
  std::stable_sort(headers.begin(), headers.end(), [](const auto& a, const auto& b) { return a.name() < b.name(); });
  for (route_v3::HeaderMatcher& header : headers) *out.add_headers() = std::move(header);

  if (match->uri) {
    switch (match->uri->kind) {
      case StringMatch::Kind::kNone:
        break;
      case StringMatch::Kind::kExact:
        out.set_path(match->uri->value);
        break;
      case StringMatch::Kind::kPrefix:
        out.set_prefix(match->uri->value);
        break;
      case StringMatch::Kind::kRegex:
        out.mutable_safe_regex()->set_regex(match->uri->value);
        break;
    }
  }
  out.mutable_case_sensitive()->set_value(!match->ignore_uri_case);
  if (match->method) SetValueMatch(":method", *match->method, *out.add_headers());
  if (match->authority) SetValueMatch(":authority", *match->authority, *out.add_headers());
  if (match->scheme) SetValueMatch(":scheme", *match->scheme, *out.add_headers());
  for (const auto& [name, value] : match->query_params) SetValueMatch(name, value, *out.add_query_parameters());
  return out;
}

bool IsCatchAll(const route_v3::RouteMatch& match) {
  const bool any_path = match.has_safe_regex()
                            ? match.safe_regex().regex() == "*"
                            : match.path_specifier_case() == route_v3::RouteMatch::kPrefix && match.prefix() == "/";
  return any_path && match.headers_size() == 0 && match.query_parameters_size() == 0;
}

bool IsAuthority(std::string_view header) {
  return absl::EqualsIgnoreCase(absl::string_view(header.data(), header.size()), ":authority") ||
         absl::EqualsIgnoreCase(absl::string_view(header.data(), header.size()), "host");
}
// Envoy lets nobody change these.
bool IsInternal(std::string_view header) { return header.starts_with(":") || IsAuthority(header); }

// Route and ClusterWeight have the same four fields. Returns the authority to rewrite to; empty: none.
template <typename Message>
std::string TranslateHeaders(const config::Headers& headers, Message& out) {
  std::string set_authority, add_authority, ignored;
  const auto add = [](const std::map<std::string, std::string>& values, bool append, auto* list,
                      std::string& authority) {
    for (const auto& [key, value] : values) {
      if (IsAuthority(key)) authority = value;
      if (IsInternal(key)) continue;
      core_v3::HeaderValueOption* option = list->Add();
      option->mutable_header()->set_key(key);
      option->mutable_header()->set_value(value);
      option->set_append_action(append ? core_v3::HeaderValueOption::APPEND_IF_EXISTS_OR_ADD
                                       : core_v3::HeaderValueOption::OVERWRITE_IF_EXISTS_OR_ADD);
    }
  };
  if (headers.request) {
    add(headers.request->set, false, out.mutable_request_headers_to_add(), set_authority);
    add(headers.request->add, true, out.mutable_request_headers_to_add(), add_authority);
    for (const std::string& name : headers.request->remove) {
      if (!IsInternal(name)) out.add_request_headers_to_remove(name);
    }
  }
  if (headers.response) {
    add(headers.response->set, false, out.mutable_response_headers_to_add(), ignored);
    add(headers.response->add, true, out.mutable_response_headers_to_add(), ignored);
    for (const std::string& name : headers.response->remove) {
      if (!IsInternal(name)) out.add_response_headers_to_remove(name);
    }
  }
  return set_authority.empty() ? add_authority : set_authority;
}

// False: a code that Envoy cannot answer with.
bool TranslateRedirect(const config::HttpRedirect& redirect, int port, bool is_tls, route_v3::RedirectAction& out) {
  out.set_host_redirect(redirect.authority);
  out.set_path_redirect(redirect.uri);
  if (!redirect.scheme.empty()) out.set_scheme_redirect(redirect.scheme);
  if (redirect.port || redirect.derive_port) {
    uint32_t to = redirect.port.value_or(0);
    // The port that the request came to is the one that these routes are for.
    if (redirect.derive_port == config::HttpRedirect::DerivePort::kFromRequestPort) to = static_cast<uint32_t>(port);
    const std::string_view scheme =
        redirect.scheme.empty() ? (is_tls ? "https" : "http") : std::string_view(redirect.scheme);
    const bool implied = (to == 80 && scheme == "http") || (to == 443 && scheme == "https");
    out.set_port_redirect(implied ? 0 : to);
  }
  switch (redirect.redirect_code) {
    case 0:
    case 301:
      out.set_response_code(route_v3::RedirectAction::MOVED_PERMANENTLY);
      return true;
    case 302:
      out.set_response_code(route_v3::RedirectAction::FOUND);
      return true;
    case 303:
      out.set_response_code(route_v3::RedirectAction::SEE_OTHER);
      return true;
    case 307:
      out.set_response_code(route_v3::RedirectAction::TEMPORARY_REDIRECT);
      return true;
    case 308:
      out.set_response_code(route_v3::RedirectAction::PERMANENT_REDIRECT);
      return true;
    default:
      return false;
  }
}

void TranslateDirectResponse(const config::HttpDirectResponse& response, route_v3::DirectResponseAction& out) {
  out.set_status(response.status);
  if (!response.body) return;
  if (response.body_is_bytes) {
    out.mutable_body()->set_inline_bytes(*response.body);
  } else {
    out.mutable_body()->set_inline_string(*response.body);
  }
}

void TranslateCors(const config::CorsPolicy& cors, route_v3::CorsPolicy& out) {
  if (!cors.allow_origins.empty()) {
    for (const StringMatch& origin : cors.allow_origins) {
      if (StringMatcherPb matcher; SetMatcher(origin, matcher)) *out.add_allow_origin_string_match() = matcher;
    }
  } else {
    for (const std::string& origin : cors.allow_origin) out.add_allow_origin_string_match()->set_exact(origin);
  }
  SetPercent(100, *out.mutable_filter_enabled()->mutable_default_value());
  if (cors.allow_credentials) out.mutable_allow_credentials()->set_value(*cors.allow_credentials);
  out.set_allow_headers(absl::StrJoin(cors.allow_headers, ","));
  out.set_allow_methods(absl::StrJoin(cors.allow_methods, ","));
  out.set_expose_headers(absl::StrJoin(cors.expose_headers, ","));
  if (cors.max_age) out.set_max_age(absl::StrCat(cors.max_age->count() / 1'000'000'000));
}

// istiod: pkg/util/grpc, SupportedGRPCStatus: the codes in gRPC's order.
uint32_t GrpcStatus(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto* at = std::find(std::begin(kNames), std::end(kNames), name);
  return at == std::end(kNames) ? 0 : static_cast<uint32_t>(at - std::begin(kNames));
}

// False if nothing is left to inject.
bool TranslateFault(const config::HttpFaultInjection& fault, FaultPb& out) {
  if (fault.delay && fault.delay->fixed_delay) {
    if (fault.delay->percentage) {
      SetMillionths(*fault.delay->percentage, *out.mutable_delay()->mutable_percentage());
    } else {
      SetPercent(fault.delay->percent, *out.mutable_delay()->mutable_percentage());
    }
    SetDuration(*fault.delay->fixed_delay, *out.mutable_delay()->mutable_fixed_delay());
  }
  if (fault.abort && (fault.abort->http_status || fault.abort->grpc_status)) {
    if (fault.abort->percentage) {
      SetMillionths(*fault.abort->percentage, *out.mutable_abort()->mutable_percentage());
    }
    if (fault.abort->http_status) {
      out.mutable_abort()->set_http_status(static_cast<uint32_t>(*fault.abort->http_status));
    } else {
      out.mutable_abort()->set_grpc_status(GrpcStatus(*fault.abort->grpc_status));
    }
  }
  return out.has_delay() || out.has_abort();
}

// A message that few routes need: made when it is first written to.
template <typename Message>
class Rare {
 public:
  Message* operator->() { return &**this; }
  Message& operator*() { return message_ ? *message_ : message_.emplace(); }
  std::string Encoded() const { return message_ ? Serialize(*message_) : std::string(); }

 private:
  std::optional<Message> message_;
};

// What all matches of one HTTP route share, encoded.
struct SharedParts {
  std::string fields;   // of Route: action, headers, faults
  std::string cluster;  // the only one; empty if there are several, or none
};

class Translator {
 public:
  Translator(const HttpRouteScope& scope, const Rule& rule) : scope_(scope), rule_(rule) {}

  std::vector<EncodedRouteRef> Build() {
    for (const config::HttpRoute& route : rule_.spec.http) {
      std::optional<SharedParts> shared;
      if (route.match.empty()) {
        Add(route, nullptr, shared);
        break;
      }
      const bool catch_all = std::any_of(route.match.begin(), route.match.end(),
                                         [&](const auto& match) { return Holds(match) && Add(route, &match, shared); });
      if (catch_all) break;
    }
    return std::move(out_);
  }

 private:
  // Does the match hold for this proxy at this port? istiod: sourceMatchHTTP. Naming gateways makes labels moot.
  bool Holds(const config::HttpMatchRequest& match) const {
    if (match.port != 0 && match.port != static_cast<uint32_t>(scope_.listen_port)) return false;
    if (!match.gateways.empty()) {
      return std::find(match.gateways.begin(), match.gateways.end(), scope_.gateway) != match.gateways.end();
    }
    const Labels& labels = scope_.proxy.labels;
    for (const auto& [key, value] : match.source_labels) {
      const auto it = labels.find(key);
      if (it == labels.end() || it->second != value) return false;
    }
    return match.source_namespace.empty() || match.source_namespace == scope_.proxy.metadata.ns;
  }

  // True if the route catches all. `shared` is filled for the first match and used by the next ones.
  bool Add(const config::HttpRoute& in, const config::HttpMatchRequest* match, std::optional<SharedParts>& shared) {
    if (!shared) shared = Share(in);
    if (metadata_.empty()) metadata_ = ConfigInfoMetadata(rule_.meta);
    auto out = std::make_shared<EncodedRoute>();
    out->bytes.reserve(shared->fields.size() + metadata_.size() + 128);
    wire::Writer w(&out->bytes);
    if (match != nullptr && !match->name.empty()) {
      w.Bytes(RoutePb::kNameFieldNumber, absl::StrCat(in.name, ".", match->name));
    } else {
      w.NonEmpty(RoutePb::kNameFieldNumber, in.name);
    }
    std::string path;
    out->catch_all = WriteMatch(w, match, path);
    w.Bytes(RoutePb::kMetadataFieldNumber, metadata_);
    if (match != nullptr) w.NonEmpty(RoutePb::kStatPrefixFieldNumber, match->stat_prefix);
    w.Append(shared->fields);
    w.Message(RoutePb::kDecoratorFieldNumber, [&] { WriteOperation(w, shared->cluster, path); });
    out_.push_back(std::move(out));
    return out_.back()->catch_all;
  }

  // Paths alone are by far the most common matches. `path`: as traces show it.
  static bool WriteMatch(wire::Writer& w, const config::HttpMatchRequest* match, std::string& path) {
    using MatchPb = route_v3::RouteMatch;
    const bool by_prefix = match == nullptr || !match->uri || match->uri->kind == StringMatch::Kind::kPrefix;
    const bool path_only =
        match == nullptr || (by_prefix && match->headers.empty() && match->without_headers.empty() &&
                             match->query_params.empty() && !match->method && !match->authority && !match->scheme);
    if (!path_only) {
      const MatchPb out = TranslateMatch(match);
      w.Bytes(RoutePb::kMatchFieldNumber, Serialize(out));
      path = PathOf(out);
      return IsCatchAll(out);
    }
    const std::string_view prefix = match == nullptr || !match->uri ? "/" : std::string_view(match->uri->value);
    w.Message(RoutePb::kMatchFieldNumber, [&] {
      w.Bytes(MatchPb::kPrefixFieldNumber, prefix);
      if (match != nullptr) w.BoolValue(MatchPb::kCaseSensitiveFieldNumber, !match->ignore_uri_case);
    });
    path = prefix;
    path.push_back('*');
    return prefix == "/";
  }

  SharedParts Share(const config::HttpRoute& in) const {
    SharedParts out;
    Rare<RoutePb> route;  // headers, faults and rare actions
    std::string authority;
    if (in.headers) authority = TranslateHeaders(*in.headers, *route);
    std::string action;
    if (in.redirect) {
      if (!TranslateRedirect(*in.redirect, scope_.listen_port, scope_.is_tls, *route->mutable_redirect())) {
        route->clear_redirect();
      }
    } else if (in.direct_response) {
      TranslateDirectResponse(*in.direct_response, *route->mutable_direct_response());
    } else {
      action = TranslateDestinations(in, std::move(authority), route, out.cluster);
    }
    if (in.fault) {
      if (FaultPb fault; TranslateFault(*in.fault, fault)) {
        (*route->mutable_typed_per_filter_config())["envoy.filters.http.fault"] = PackAny(fault);
      }
    }
    out.fields = route.Encoded();
    if (!action.empty()) {
      out.fields.reserve(out.fields.size() + action.size() + 8);
      wire::Writer(&out.fields).Bytes(RoutePb::kRouteFieldNumber, action);
    }
    return out;
  }

  // An encoded RouteAction; headers of a lone destination go to the route. `cluster`: of a lone destination.
  std::string TranslateDestinations(const config::HttpRoute& in, std::string authority, Rare<RoutePb>& route,
                                    std::string& cluster) const {
    if (in.rewrite && !in.rewrite->authority.empty()) authority = in.rewrite->authority;
    Rare<ActionPb> rare;
    if (in.cors_policy) TranslateCors(*in.cors_policy, *rare->mutable_cors());
    if (in.mirror) AddMirror(in, *rare);
    std::string out;
    out.reserve(96 + scope_.retry_policy.size());
    wire::Writer w(&out);
    AddClusters(in, route, w, rare, authority, cluster);
    w.Append(rare.Encoded());
    if (in.retries) {
      w.NonEmpty(ActionPb::kRetryPolicyFieldNumber, RetryPolicy(in.retries));
    } else {
      w.NonEmpty(ActionPb::kRetryPolicyFieldNumber, scope_.retry_policy);
    }
    // No timeout unless the rule has one; for gRPC the client's own deadline counts below it.
    const int64_t timeout = in.timeout.value_or(Duration::zero()).count();
    w.Duration(ActionPb::kTimeoutFieldNumber, timeout);
    if (IsProxylessGrpc(scope_.proxy)) {
      // gRPC does not read the field that Envoy is told by.
      w.Message(ActionPb::kMaxStreamDurationFieldNumber,
                [&] { w.Duration(ActionPb::MaxStreamDuration::kMaxStreamDurationFieldNumber, timeout); });
    } else {
      w.Duration(ActionPb::kMaxGrpcTimeoutFieldNumber, timeout);
    }
    if (in.rewrite) w.NonEmpty(ActionPb::kPrefixRewriteFieldNumber, in.rewrite->uri);
    w.NonEmpty(ActionPb::kHostRewriteLiteralFieldNumber, authority);
    return out;
  }

  std::string ClusterOf(const config::Destination& destination) const {
    return DestinationCluster(destination, scope_.service(destination.host), scope_.listen_port);
  }

  void AddMirror(const config::HttpRoute& in, ActionPb& action) const {
    FractionPb share;
    if (in.mirror_percentage) {
      if (*in.mirror_percentage <= 0) return;
      SetMillionths(*in.mirror_percentage, share);
    } else if (in.mirror_percent) {
      if (*in.mirror_percent == 0) return;
      SetPercent(static_cast<int32_t>(*in.mirror_percent), share);
    } else {
      SetPercent(100, share);
    }
    auto* mirror = action.add_request_mirror_policies();
    mirror->set_cluster(ClusterOf(*in.mirror));
    *mirror->mutable_runtime_fraction()->mutable_default_value() = share;
    mirror->mutable_trace_sampled()->set_value(false);
  }

  void AddClusters(const config::HttpRoute& in, Rare<RoutePb>& route, wire::Writer& w, Rare<ActionPb>& rare,
                   std::string& authority, std::string& only_cluster) const {
    for (const config::HttpRouteDestination& to : in.route) {
      if (HasNoShare(in, to)) continue;
      const auto hash = HashForDestination(scope_.proxy, to.destination);
      if (hash) w.NonEmpty(ActionPb::kHashPolicyFieldNumber, hash->bytes);
    }
    const auto shares =
        std::count_if(in.route.begin(), in.route.end(), [&](const auto& to) { return !HasNoShare(in, to); });
    if (shares != 1) {
      auto& weighted = *rare->mutable_weighted_clusters();
      for (const config::HttpRouteDestination& to : in.route) {
        if (!HasNoShare(in, to)) AddWeighted(to, *weighted.add_clusters());
      }
      return;
    }
    const auto& to = *std::find_if(in.route.begin(), in.route.end(), [&](const auto& d) { return !HasNoShare(in, d); });
    only_cluster = ClusterOf(to.destination);
    w.Bytes(ActionPb::kClusterFieldNumber, only_cluster);
    if (!to.headers) return;
    // As with several clusters, the route's own rewrite wins.
    const std::string own = TranslateHeaders(*to.headers, *route);
    if (authority.empty()) authority = own;
  }

  // A lone destination without weight gets everything; among others it gets nothing.
  static bool HasNoShare(const config::HttpRoute& in, const config::HttpRouteDestination& to) {
    return to.weight == 0 && in.route.size() > 1;
  }

  void AddWeighted(const config::HttpRouteDestination& to, route_v3::WeightedCluster::ClusterWeight& out) const {
    out.set_name(ClusterOf(to.destination));
    out.mutable_weight()->set_value(static_cast<uint32_t>(to.weight));
    if (!to.headers) return;
    const std::string authority = TranslateHeaders(*to.headers, out);
    if (!authority.empty()) out.set_host_rewrite_literal(authority);
  }

  static std::string PathOf(const route_v3::RouteMatch& match) {
    switch (match.path_specifier_case()) {
      case route_v3::RouteMatch::kPrefix:
        return absl::StrCat(match.prefix(), "*");
      case route_v3::RouteMatch::kPath:
        return match.path();
      case route_v3::RouteMatch::kSafeRegex:
        return match.safe_regex().regex();
      default:
        return "/*";
    }
  }

  // What traces call the route. istiod: GetRouteOperation.
  void WriteOperation(wire::Writer& w, const std::string& cluster, const std::string& path) const {
    const std::optional<SubsetKey> key = ParseSubsetKey(cluster);
    const absl::AlphaNum port(key ? key->port : scope_.listen_port);
    w.Joined(route_v3::Decorator::kOperationFieldNumber, {key ? key->hostname : std::string_view(rule_.meta.name), ":",
                                                          std::string_view(port.data(), port.size()), path});
  }

  const HttpRouteScope& scope_;
  const Rule& rule_;
  std::string metadata_;  // once there is a route
  std::vector<EncodedRouteRef> out_;
};

}  // namespace

std::vector<EncodedRouteRef> BuildHttpRoutes(const HttpRouteScope& scope, const Rule& rule) {
  return Translator(scope, rule).Build();
}

}  // namespace wavetank::pilot
