#include "core/gen/rds/http_routes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/text/go_regexp.h"
#include "core/envoyapi/any.h"
#include "core/gen/authz/authz_matchers.h"
#include "core/gen/rds/default_routes.h"
#include "core/gen/view/destination_cluster.h"
#include "core/gen/view/done_for.h"
#include "core/gen/wire/duration.h"
#include "core/gen/wire/wire.h"
#include "core/model/proxyless.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/push/virtual_service_index.h"
#include "envoy/config/route/v3/route_components.pb.h"
#include "envoy/extensions/filters/http/cors/v3/cors.pb.h"
#include "envoy/extensions/filters/http/fault/v3/fault.pb.h"

// Envoy has replacements for RouteAction.cors and max_grpc_timeout; istiod 1.18 sends the old ones.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::pilot {
namespace {

namespace route_v3 = ::envoy::config::route::v3;
namespace core_v3 = ::envoy::config::core::v3;
using FaultPb = ::envoy::extensions::filters::http::fault::v3::HTTPFault;
using CorsFilterPb = ::envoy::extensions::filters::http::cors::v3::CorsPolicy;
using RoutePb = route_v3::Route;
using RouteMatchPb = route_v3::RouteMatch;
using ActionPb = route_v3::RouteAction;
using FractionPb = ::envoy::type::v3::FractionalPercent;
using StringMatcherPb = ::envoy::type::matcher::v3::StringMatcher;
using config::StringMatch;
using Rule = config::TypedConfig<config::VirtualService>;

void SetMillionths(double percent, FractionPb& out) {
  out.set_numerator(static_cast<uint32_t>(percent * 10000));
  out.set_denominator(FractionPb::MILLION);
}
void SetPercent(int32_t percent, FractionPb& out) {
  out.set_numerator(static_cast<uint32_t>(percent));
  out.set_denominator(FractionPb::HUNDRED);
}

void WriteRegex(int field, std::string_view regex, wire::Writer& w) {
  w.Message(field, [&] { w.NonEmpty(::envoy::type::matcher::v3::RegexMatcher::kRegexFieldNumber, regex); });
}

// The fields of a StringMatcher.
void WritePattern(const StringMatch& match, wire::Writer& w) {
  switch (match.kind) {
    case StringMatch::Kind::kNone:
      break;
    case StringMatch::Kind::kExact:
      w.Bytes(StringMatcherPb::kExactFieldNumber, match.value);
      break;
    case StringMatch::Kind::kPrefix:
      w.Bytes(StringMatcherPb::kPrefixFieldNumber, match.value);
      break;
    case StringMatch::Kind::kRegex:
      WriteRegex(StringMatcherPb::kSafeRegexFieldNumber, match.value, w);
      break;
  }
}

// A StringMatcher; none for a match that says nothing.
void WriteMatcher(int field, const StringMatch& match, wire::Writer& w) {
  if (match.kind == StringMatch::Kind::kNone) return;
  w.Message(field, [&] { WritePattern(match, w); });
}

// The regex "*" is no regex: istiod takes it for "any value". `none_is_any`: and so it takes a match that says nothing
// (istiod: canBeConvertedToPresentMatch).
bool IsAnyValue(const StringMatch& match, bool none_is_any) {
  if (none_is_any && match.kind == StringMatch::Kind::kNone) return true;
  return match.kind == StringMatch::Kind::kRegex && match.value == "*";
}

// The fields of a HeaderMatcher or QueryParameterMatcher.
template <typename Matcher>
void WriteValueMatch(std::string_view name, const StringMatch& match, bool none_is_any, wire::Writer& w) {
  w.NonEmpty(Matcher::kNameFieldNumber, name);
  if (IsAnyValue(match, none_is_any)) {
    w.Bool(Matcher::kPresentMatchFieldNumber, true);
  } else {
    WriteMatcher(Matcher::kStringMatchFieldNumber, match, w);
  }
}

// `headers_as_today`: what is there needs no value, and what must not match need not be there.
void WriteHeaderMatch(std::string_view name, const StringMatch& match, bool invert, bool headers_as_today,
                      wire::Writer& w) {
  using HeaderPb = route_v3::HeaderMatcher;
  w.Message(RouteMatchPb::kHeadersFieldNumber, [&] {
    WriteValueMatch<HeaderPb>(name, match, headers_as_today, w);
    if (invert) w.Bool(HeaderPb::kInvertMatchFieldNumber, true);
    if (invert && headers_as_today && !IsAnyValue(match, true))
      w.Bool(HeaderPb::kTreatMissingHeaderAsEmptyFieldNumber, true);
  });
}

// A "header" of this name is no header but a claim of the request's verified token: what stands behind, split at dots,
// is the way to it; with `brackets` it may be "[a][b]", too, which is a header's name otherwise. istiod:
// pkg/jwt/routing.go, ToRoutingClaim; before, the name had to begin so and be "." alone at least.
constexpr std::string_view kClaimPrefix = "@request.auth.claims";

struct ClaimPath {
  std::string_view text, separator;
};
std::optional<ClaimPath> ClaimOf(std::string_view name, bool brackets) {
  if (!absl::StartsWithIgnoreCase({name.data(), name.size()}, {kClaimPrefix.data(), kClaimPrefix.size()})) return {};
  std::string_view rest = name.substr(kClaimPrefix.size());
  if (rest.starts_with('.') && (rest.size() > 1 || !brackets)) return ClaimPath{rest.substr(1), "."};
  if (!brackets || rest.size() <= 2 || !rest.starts_with('[') || !rest.ends_with(']')) return {};
  return ClaimPath{rest.substr(1, rest.size() - 2), "]["};
}

// Those that must match and those that must not, by name. False: claims are among them, which are left out.
bool WriteHeaderMatches(const std::map<std::string, StringMatch>& with,
                        const std::map<std::string, StringMatch>& without, bool headers_as_today, bool brackets,
                        wire::Writer& w) {
  bool no_claims = true;
  auto is = with.begin();
  auto is_not = without.begin();
  while (is != with.end() || is_not != without.end()) {
    const bool invert = is == with.end() || (is_not != without.end() && is_not->first < is->first);
    auto& next = invert ? is_not : is;
    if (ClaimOf(next->first, brackets)) {
      no_claims = false;
    } else {
      WriteHeaderMatch(next->first, next->second, invert, headers_as_today, w);
    }
    ++next;
  }
  return no_claims;
}

// A claim is matched in what the filter istio_authn leaves behind, where each is a list, or in what Envoy's own does
// (`jwt_payload`); "*" is no presence here, but a regex. istiod writes them in the order of a Go map. istiod:
// translateMetadataMatch.
void WriteClaimMatches(const std::map<std::string, StringMatch>& claims, bool invert, bool jwt_payload, bool brackets,
                       wire::Writer& w) {
  for (const auto& [name, match] : claims) {
    const std::optional<ClaimPath> claim = ClaimOf(name, brackets);
    if (!claim) continue;
    std::vector<std::string_view> path{jwt_payload ? authz::kJwtPayload : authz::kClaimsKey};
    for (const absl::string_view key :
         absl::StrSplit(absl::string_view(claim->text.data(), claim->text.size()),
                        absl::string_view(claim->separator.data(), claim->separator.size()))) {
      path.emplace_back(key.data(), key.size());
    }
    authz::WriteMetadataMatcher(
        w, RouteMatchPb::kDynamicMetadataFieldNumber, jwt_payload ? authz::kJwtFilter : authz::kAuthnFilter, path,
        jwt_payload ? authz::MetadataValue::kTextOrListWith : authz::MetadataValue::kListWith, invert,
        [&, &value = match](int field) { w.Message(field, [&] { WritePattern(value, w); }); });
  }
}

// The paths that a route is for, as its name in traces shows them.
struct RoutePaths {
  std::string_view text;
  bool is_prefix = false;
  bool all = false;
};

// The marks that conversion of the Gateway API leaves in paths (istiod: pilot/pkg/config/kube/gateway/conversion.go).
constexpr std::string_view kPrefixMark = "%PREFIX()%", kFullMark = "%FULLREPLACE()%";

// `separated`: a prefix ends where a path segment does, as Ingresses and Gateway API's routes have it
// (istiod: route.go, TranslateRouteMatch). `any`: the regex of all paths.
RoutePaths WritePath(const std::optional<StringMatch>& uri, bool separated, std::string_view any, wire::Writer& w) {
  switch (uri ? uri->kind : StringMatch::Kind::kNone) {
    case StringMatch::Kind::kExact:
      w.Bytes(RouteMatchPb::kPathFieldNumber, uri->value);
      return {uri->value};
    case StringMatch::Kind::kRegex:
      WriteRegex(RouteMatchPb::kSafeRegexFieldNumber, uri->value, w);
      return {uri->value, false, uri->value == any};
    case StringMatch::Kind::kPrefix:
      if (separated && uri->value != "/") {
        std::string_view path = uri->value;
        if (path.ends_with('/')) path.remove_suffix(1);
        w.Bytes(RouteMatchPb::kPathSeparatedPrefixFieldNumber, path);
        return {"/", true, path == "/"};  // GetRouteOperation does not know this kind
      }
      w.Bytes(RouteMatchPb::kPrefixFieldNumber, uri->value);
      return {uri->value, true, uri->value == "/"};
    case StringMatch::Kind::kNone:
      break;
  }
  w.Bytes(RouteMatchPb::kPrefixFieldNumber, "/");
  return {"/", true, true};
}

// istiod: pilot/pkg/model/virtualservice.go, UseIngressSemantics, UseGatewaySemantics.
bool PathsAreSeparated(const config::ConfigMeta& meta) {
  const auto it = meta.annotations.find("internal.istio.io/route-semantics");
  return it != meta.annotations.end() && (it->second == "ingress" || it->second == "gateway");
}

// How istiods of several releases write what a match says.
struct MatchRules {
  bool headers_as_today = false, jwt_payload = false, brackets = false;
  std::string_view any_path = "*";  // as a regex, in isCatchAllRoute
};

// What Route.match says, of a rule's match or of none.
struct RouteMatch {
  RoutePaths paths;
  bool catch_all = false;
};

// istiod: TranslateRouteMatch.
RouteMatch WriteMatch(const config::HttpMatchRequest* match, bool separated, const MatchRules& rules, wire::Writer& w) {
  RouteMatch out;
  w.Message(RoutePb::kMatchFieldNumber, [&] {
    if (match == nullptr) {
      out.paths = WritePath(std::nullopt, separated, rules.any_path, w);
      return;
    }
    out.paths = WritePath(match->uri, separated, rules.any_path, w);
    w.BoolValue(RouteMatchPb::kCaseSensitiveFieldNumber, !match->ignore_uri_case);
    const bool today = rules.headers_as_today;
    const bool no_claims = WriteHeaderMatches(match->headers, match->without_headers, today, rules.brackets, w);
    if (match->method) WriteHeaderMatch(":method", *match->method, false, today, w);
    if (match->authority) WriteHeaderMatch(":authority", *match->authority, false, today, w);
    if (match->scheme) WriteHeaderMatch(":scheme", *match->scheme, false, today, w);
    for (const auto& [name, value] : match->query_params) {
      w.Message(RouteMatchPb::kQueryParametersFieldNumber, [&, &name = name, &value = value] {
        WriteValueMatch<route_v3::QueryParameterMatcher>(name, value, false, w);
      });
    }
    if (no_claims) return;
    WriteClaimMatches(match->headers, false, rules.jwt_payload, rules.brackets, w);
    WriteClaimMatches(match->without_headers, true, rules.jwt_payload, rules.brackets, w);
  });
  out.catch_all = out.paths.all &&
                  (match == nullptr || (match->headers.empty() && match->without_headers.empty() && !match->method &&
                                        !match->authority && !match->scheme && match->query_params.empty()));
  return out;
}

bool IsAuthority(std::string_view header) {
  return absl::EqualsIgnoreCase(absl::string_view(header.data(), header.size()), ":authority") ||
         absl::EqualsIgnoreCase(absl::string_view(header.data(), header.size()), "host");
}
// Envoy lets nobody change these.
bool IsInternal(std::string_view header) { return header.starts_with(":") || IsAuthority(header); }

// The fields of a Route or a ClusterWeight. Returns the authority to rewrite to; empty: none.
template <typename Message>
std::string_view WriteHeaders(const config::Headers& headers, wire::Writer& w) {
  using OptionPb = core_v3::HeaderValueOption;
  std::string_view authority;
  const auto add = [&](const std::map<std::string, std::string>& values, bool append, int field) {
    std::string_view found;
    for (const auto& [key, value] : values) {
      if (IsAuthority(key)) found = value;
      if (IsInternal(key)) continue;
      w.Message(field, [&, &key = key, &value = value] {
        w.Message(OptionPb::kHeaderFieldNumber, [&] {
          w.NonEmpty(core_v3::HeaderValue::kKeyFieldNumber, key);
          w.NonEmpty(core_v3::HeaderValue::kValueFieldNumber, value);
        });
        // The other action is the field's default.
        if (!append) w.Varint(OptionPb::kAppendActionFieldNumber, OptionPb::OVERWRITE_IF_EXISTS_OR_ADD);
      });
    }
    return found;
  };
  const auto remove = [&](const std::vector<std::string>& names, int field) {
    for (const std::string& name : names) {
      if (!IsInternal(name)) w.Bytes(field, name);
    }
  };
  if (headers.request) {
    authority = add(headers.request->set, false, Message::kRequestHeadersToAddFieldNumber);
    const std::string_view added = add(headers.request->add, true, Message::kRequestHeadersToAddFieldNumber);
    if (authority.empty()) authority = added;
    remove(headers.request->remove, Message::kRequestHeadersToRemoveFieldNumber);
  }
  if (headers.response) {
    add(headers.response->set, false, Message::kResponseHeadersToAddFieldNumber);
    add(headers.response->add, true, Message::kResponseHeadersToAddFieldNumber);
    remove(headers.response->remove, Message::kResponseHeadersToRemoveFieldNumber);
  }
  return authority;
}

// False: a code that Envoy cannot answer with.
bool TranslateRedirect(const config::HttpRedirect& redirect, const RouteListener& listener, bool gateway_api,
                       route_v3::RedirectAction& out) {
  out.set_host_redirect(redirect.authority);
  if (gateway_api && redirect.uri.starts_with(kPrefixMark)) {
    out.set_prefix_rewrite(redirect.uri.substr(kPrefixMark.size()));
  } else {
    out.set_path_redirect(redirect.uri);
  }
  if (!redirect.scheme.empty()) out.set_scheme_redirect(redirect.scheme);
  if (redirect.port || redirect.derive_port) {
    uint32_t to = redirect.port.value_or(0);
    // The port that the request came to is the one that these routes are for.
    if (redirect.derive_port == config::HttpRedirect::DerivePort::kFromRequestPort) {
      to = static_cast<uint32_t>(listener.port());
    }
    const std::string_view scheme =
        redirect.scheme.empty() ? (listener.is_tls() ? "https" : "http") : std::string_view(redirect.scheme);
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

// The fields of a RouteAction's CorsPolicy, or of the CORS filter's own.
template <typename CorsPb>
void WriteCors(const config::CorsPolicy& cors, wire::Writer& w) {
  if (!cors.allow_origins.empty()) {
    for (const StringMatch& origin : cors.allow_origins) {
      WriteMatcher(CorsPb::kAllowOriginStringMatchFieldNumber, origin, w);
    }
  } else {
    for (const std::string& origin : cors.allow_origin) {
      WriteMatcher(CorsPb::kAllowOriginStringMatchFieldNumber, {StringMatch::Kind::kExact, origin}, w);
    }
  }
  core_v3::RuntimeFractionalPercent always;
  SetPercent(100, *always.mutable_default_value());
  w.Bytes(CorsPb::kFilterEnabledFieldNumber, Serialize(always));
  if (cors.allow_credentials) w.BoolValue(CorsPb::kAllowCredentialsFieldNumber, *cors.allow_credentials);
  w.NonEmpty(CorsPb::kAllowHeadersFieldNumber, absl::StrJoin(cors.allow_headers, ","));
  w.NonEmpty(CorsPb::kAllowMethodsFieldNumber, absl::StrJoin(cors.allow_methods, ","));
  w.NonEmpty(CorsPb::kExposeHeadersFieldNumber, absl::StrJoin(cors.expose_headers, ","));
  if (cors.max_age) w.Bytes(CorsPb::kMaxAgeFieldNumber, absl::StrCat(cors.max_age->count() / 1'000'000'000));
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

// What 1.18.2 cannot translate leaves nothing behind, and then the route has an empty fault.
void TranslateFault(const config::HttpFaultInjection& fault, FaultPb& out) {
  if (fault.delay && fault.delay->fixed_delay) {
    if (fault.delay->percentage) {
      SetMillionths(*fault.delay->percentage, *out.mutable_delay()->mutable_percentage());
    } else {
      SetPercent(fault.delay->percent, *out.mutable_delay()->mutable_percentage());
    }
    SetDuration(*fault.delay->fixed_delay, out.mutable_delay()->mutable_fixed_delay());
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
}

// What all matches of one HTTP route share, encoded.
struct SharedParts {
  std::string fields;   // of Route: action, headers, faults
  std::string cluster;  // the only one; empty if there are several, or none
};

class Translator {
 public:
  Translator(const HttpRouteScope& scope, const Rule& rule)
      : scope_(scope),
        rule_(rule),
        gateway_api_(OfGatewayApi(rule)),
        match_rules_{Has(Change::kHeadersAsToday), DoneFor(scope.proxy, scope.push.profile(), Change::kJwtPayload),
                     Has(Change::kClaimsInBrackets), Has(Change::kRegexCatchesAll) ? ".*" : "*"} {}

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
    if (match.port != 0 && match.port != static_cast<uint32_t>(scope_.listener.port())) return false;
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
    if (metadata_.empty()) metadata_ = ConfigInfoMetadata(rule_.meta, scope_.push);
    auto out = std::make_shared<EncodedRoute>();
    constexpr size_t kUsualMatch = 160;  // with what else is the match's own
    out->bytes.reserve(shared->fields.size() + metadata_.size() + kUsualMatch);
    wire::Writer w(&out->bytes);
    if (match != nullptr && !match->name.empty()) {
      w.Joined(RoutePb::kNameFieldNumber, {in.name, ".", match->name});
    } else {
      w.NonEmpty(RoutePb::kNameFieldNumber, in.name);
    }
    const RouteMatch written = WriteMatch(match, PathsAreSeparated(rule_.meta), match_rules_, w);
    w.Bytes(RoutePb::kMetadataFieldNumber, metadata_);
    if (match != nullptr) w.NonEmpty(RoutePb::kStatPrefixFieldNumber, match->stat_prefix);
    w.Append(shared->fields);
    w.Message(RoutePb::kDecoratorFieldNumber, [&] { WriteOperation(w, shared->cluster, written.paths); });
    out->catch_all = written.catch_all;
    out_.push_back(std::move(out));
    return written.catch_all;
  }

  SharedParts Share(const config::HttpRoute& in) const {
    SharedParts out;
    constexpr size_t kUsual = 160;
    out.fields.reserve(kUsual + scope_.retry_policy.size());
    wire::Writer w(&out.fields);
    std::string_view authority;
    if (in.headers) authority = WriteHeaders<RoutePb>(*in.headers, w);
    if (in.redirect) {
      route_v3::RedirectAction redirect;
      if (TranslateRedirect(*in.redirect, scope_.listener, gateway_api_, redirect)) {
        w.Bytes(RoutePb::kRedirectFieldNumber, Serialize(redirect));
      }
    } else if (in.direct_response) {
      route_v3::DirectResponseAction response;
      TranslateDirectResponse(*in.direct_response, response);
      w.Bytes(RoutePb::kDirectResponseFieldNumber, Serialize(response));
    } else {
      WriteDestinations(in, authority, w, out.cluster);
    }
    if (in.cors_policy && Has(Change::kCorsByFilter)) {
      w.Message(RoutePb::kTypedPerFilterConfigFieldNumber, [&] {
        w.Bytes(wire::kMapKey, "envoy.filters.http.cors");
        w.Any(wire::kMapValue, "type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy",
              wire::Encode([&](wire::Writer& cors) {
                WriteCors<CorsFilterPb>(*in.cors_policy, cors);
                // What Envoy did until 1.30 by itself. istiod: forwardNotMatchingPreflights.
                const bool ignored =
                    in.cors_policy->unmatched_preflights == config::CorsPolicy::UnmatchedPreflights::kIgnore;
                if (Has(Change::kPreflightsForwarded))
                  cors.BoolValue(CorsFilterPb::kForwardNotMatchingPreflightsFieldNumber, !ignored);
              }));
      });
    }
    if (in.fault) {
      FaultPb fault;
      TranslateFault(*in.fault, fault);
      w.Message(RoutePb::kTypedPerFilterConfigFieldNumber, [&] {
        w.Bytes(wire::kMapKey, "envoy.filters.http.fault");
        w.Any(wire::kMapValue, TypeUrlOf(fault), Serialize(fault));
      });
    }
    return out;
  }

  // The RouteAction; headers of a lone destination go to the route. `cluster`: of a lone destination.
  void WriteDestinations(const config::HttpRoute& in, std::string_view authority, wire::Writer& w,
                         std::string& cluster) const {
    if (in.rewrite && !in.rewrite->authority.empty()) authority = in.rewrite->authority;
    const config::HttpRouteDestination* const only = OnlyDestination(in);
    if (only != nullptr) {
      cluster = ClusterOf(only->destination);
      // As with several clusters, the route's own rewrite wins.
      const std::string_view own = only->headers ? WriteHeaders<RoutePb>(*only->headers, w) : std::string_view();
      if (authority.empty()) authority = own;
    }
    bool hashed = false;  // the lone destination's host, which retries keep to
    w.Message(RoutePb::kRouteFieldNumber, [&] {
      for (const config::HttpRouteDestination& to : in.route) {
        if (HasNoShare(in, to)) continue;
        const auto hash = HashForDestination(scope_.proxy, to.destination, Has(Change::kHashCookieAttributes));
        if (hash) w.NonEmpty(ActionPb::kHashPolicyFieldNumber, hash->bytes);
        hashed |= hash.has_value() && in.route.size() == 1;
      }
      if (only != nullptr) {
        w.Bytes(ActionPb::kClusterFieldNumber, cluster);
      } else {
        w.Message(ActionPb::kWeightedClustersFieldNumber, [&] {
          for (const config::HttpRouteDestination& to : in.route) {
            if (!HasNoShare(in, to)) WriteWeighted(to, w);
          }
        });
      }
      if (in.cors_policy && !Has(Change::kCorsByFilter)) {
        w.Message(ActionPb::kCorsFieldNumber, [&] { WriteCors<route_v3::CorsPolicy>(*in.cors_policy, w); });
      }
      // Where there is no backend, the answer is 500.
      if (gateway_api_) w.Varint(ActionPb::kClusterNotFoundResponseCodeFieldNumber, ActionPb::INTERNAL_SERVER_ERROR);
      if (in.mirror) WriteMirror(in, w);
      if (Has(Change::kSeveralMirrors)) {
        for (const config::HttpMirrorPolicy& mirror : in.mirrors) WriteMirror(mirror, w);
      }
      if (hashed && Has(Change::kHashedRetriesStay)) {
        const auto& policy = in.retries ? in.retries : scope_.push.mesh().default_http_retry_policy;
        w.NonEmpty(ActionPb::kRetryPolicyFieldNumber, RetryPolicy(policy, scope_.push, true));
      } else if (in.retries) {
        w.NonEmpty(ActionPb::kRetryPolicyFieldNumber, RetryPolicy(in.retries, scope_.push));
      } else {
        w.NonEmpty(ActionPb::kRetryPolicyFieldNumber, scope_.retry_policy);
      }
      // No timeout unless the rule has one, or istiod says one for all; for gRPC the client's own deadline counts below
      // it.
      const int64_t timeout = in.timeout.value_or(scope_.push.env().features.request_timeout).count();
      w.Duration(ActionPb::kTimeoutFieldNumber, timeout);
      if (IsProxylessGrpc(scope_.proxy)) {
        // gRPC does not read the field that Envoy is told by.
        w.Message(ActionPb::kMaxStreamDurationFieldNumber,
                  [&] { w.Duration(ActionPb::MaxStreamDuration::kMaxStreamDurationFieldNumber, timeout); });
      } else {
        w.Duration(ActionPb::kMaxGrpcTimeoutFieldNumber, timeout);
      }
      if (in.rewrite) {
        WriteRewrite(*in.rewrite, in, w);
        if (ProxyHeadersOf(scope_.proxy, scope_.push).forwarded_host)
          w.Bool(ActionPb::kAppendXForwardedHostFieldNumber, true);
      }
      w.NonEmpty(ActionPb::kHostRewriteLiteralFieldNumber, authority);
    });
  }

  void WriteRewrite(const config::HttpRewrite& rewrite, const config::HttpRoute& in, wire::Writer& w) const {
    const auto regex = [&](std::string_view pattern, std::string_view substitution) {
      using RegexPb = ::envoy::type::matcher::v3::RegexMatchAndSubstitute;
      w.Message(ActionPb::kRegexRewriteFieldNumber, [&] {
        WriteRegex(RegexPb::kPatternFieldNumber, pattern, w);
        w.NonEmpty(RegexPb::kSubstitutionFieldNumber, substitution);
      });
    };
    if (rewrite.uri_regex && Has(Change::kUriRegexRewrite)) {
      regex(rewrite.uri_regex->match, rewrite.uri_regex->rewrite);
    } else if (gateway_api_ && rewrite.uri.starts_with(kFullMark)) {
      regex("/.*", std::string_view(rewrite.uri).substr(kFullMark.size()));
    } else if (gateway_api_ && rewrite.uri == "/" && Has(Change::kGatewayApiPrefixRemoved)) {
      // The prefix goes, the slash behind it stays; other paths have none.
      const auto* const path = in.match.empty() || !in.match.front().uri ? nullptr : &*in.match.front().uri;
      const bool prefix = path != nullptr && path->kind == StringMatch::Kind::kPrefix && path->value != "/";
      regex(absl::StrCat("^", prefix ? QuoteMeta(path->value) : std::string(), "(/?)(.*)"), "/\\2");
    } else {
      w.NonEmpty(ActionPb::kPrefixRewriteFieldNumber, rewrite.uri);
    }
  }

  std::string ClusterOf(const config::Destination& destination) const {
    // Looked up for its only port, or for what an alias stands for.
    const bool asked = destination.port == 0 || Has(Change::kExternalNameAliases);
    const Service* service = asked ? scope_.service(destination.host) : nullptr;
    return DestinationCluster(destination, service, [&] { return scope_.listener.port(); });
  }

  void WriteMirror(const config::HttpRoute& in, wire::Writer& w) const {
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
    WriteMirror(*in.mirror, share, w);
  }

  // istiod: route.go, MirrorPercentByPolicy.
  void WriteMirror(const config::HttpMirrorPolicy& in, wire::Writer& w) const {
    FractionPb share;
    if (!in.destination || (in.percentage && *in.percentage <= 0)) return;
    if (in.percentage) {
      SetMillionths(*in.percentage, share);
    } else {
      SetPercent(100, share);
    }
    WriteMirror(*in.destination, share, w);
  }

  void WriteMirror(const config::Destination& to, const FractionPb& share, wire::Writer& w) const {
    ActionPb::RequestMirrorPolicy mirror;
    mirror.set_cluster(ClusterOf(to));
    *mirror.mutable_runtime_fraction()->mutable_default_value() = share;
    mirror.mutable_trace_sampled()->set_value(false);
    if (Has(Change::kMirrorsKeepHost)) mirror.set_disable_shadow_host_suffix_append(true);
    w.Bytes(ActionPb::kRequestMirrorPoliciesFieldNumber, Serialize(mirror));
  }

  // A lone destination without weight gets everything; among others it gets nothing.
  static bool HasNoShare(const config::HttpRoute& in, const config::HttpRouteDestination& to) {
    return to.weight == 0 && in.route.size() > 1;
  }

  // Null if several have a share, or none.
  const config::HttpRouteDestination* OnlyDestination(const config::HttpRoute& in) const {
    if (in.route.size() > 1 && Has(Change::kWeightsAsWritten)) return nullptr;
    const config::HttpRouteDestination* only = nullptr;
    for (const config::HttpRouteDestination& to : in.route) {
      if (HasNoShare(in, to)) continue;
      if (only != nullptr) return nullptr;
      only = &to;
    }
    return only;
  }

  void WriteWeighted(const config::HttpRouteDestination& to, wire::Writer& w) const {
    using WeightPb = route_v3::WeightedCluster::ClusterWeight;
    w.Message(route_v3::WeightedCluster::kClustersFieldNumber, [&] {
      w.NonEmpty(WeightPb::kNameFieldNumber, ClusterOf(to.destination));
      w.UInt32Value(WeightPb::kWeightFieldNumber, static_cast<uint32_t>(to.weight));
      if (to.headers) w.NonEmpty(WeightPb::kHostRewriteLiteralFieldNumber, WriteHeaders<WeightPb>(*to.headers, w));
    });
  }

  // What traces call the route. istiod: GetRouteOperation.
  void WriteOperation(wire::Writer& w, const std::string& cluster, const RoutePaths& paths) const {
    const std::optional<SubsetKey> key = ParseSubsetKey(cluster);
    const absl::AlphaNum port(key ? key->port : scope_.listener.port());
    w.Joined(route_v3::Decorator::kOperationFieldNumber,
             {key ? key->hostname : std::string_view(rule_.meta.name), ":", std::string_view(port.data(), port.size()),
              paths.text, paths.is_prefix ? "*" : ""});
  }

  const HttpRouteScope& scope_;
  const Rule& rule_;
  bool Has(Change change) const { return scope_.push.profile().Has(change); }

  const bool gateway_api_;
  const MatchRules match_rules_;
  std::string metadata_;  // once there is a route
  std::vector<EncodedRouteRef> out_;
};

}  // namespace

std::vector<EncodedRouteRef> BuildHttpRoutes(const HttpRouteScope& scope, const Rule& rule) {
  return Translator(scope, rule).Build();
}

}  // namespace wavetank::pilot
