#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/profile/changes.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::validation {
namespace {

// One name covers the other: "*.foo.com" and "a.foo.com" (istiod: pkg/config/host, Name.Matches).
bool Overlap(const std::string& a, const std::string& b) {
  const bool wild_a = a.starts_with('*'), wild_b = b.starts_with('*');
  if (wild_a && wild_b) {
    const std::string& shorter = a.size() < b.size() ? a : b;
    const std::string& longer = a.size() < b.size() ? b : a;
    return longer.ends_with(shorter.substr(1));
  }
  if (wild_a) return b.ends_with(a.substr(1));
  return wild_b ? a.ends_with(b.substr(1)) : a == b;
}

void CheckHosts(const json& spec, bool mesh, Problems& out) {
  std::vector<std::string> hosts;
  bool valid = true;
  for (const json& entry : Items(Member(spec, "hosts"))) {
    hosts.push_back(TextOf(entry));
    std::string problem = WildcardDomain(hosts.back());
    if (!problem.empty() && !IsIp(hosts.back())) {
      out.Add(std::move(problem));
      valid = false;
    } else if (problem.empty() && mesh && hosts.back() == "*") {
      out.Add("wildcard host * is not allowed for virtual services bound to the mesh gateway");
      valid = false;
    }
  }
  for (size_t i = 0; valid && i < hosts.size(); ++i) {
    for (size_t j = i + 1; j < hosts.size(); ++j) {
      if (Overlap(hosts[i], hosts[j])) {
        out.Add(fmt::format("duplicate hosts in virtual service: {} & {}", hosts[i], hosts[j]));
      }
    }
  }
}

// `anywhere`: a destination may be of no registry, as those are that istiod makes of Kubernetes' own routes.
void CheckDestinations(const json& routes, bool http, bool anywhere, Problems& out) {
  int64_t total = 0;
  for (const json& route : Items(routes)) {
    const json& destination = Member(route, "destination");
    if (destination.is_null()) out.AddToList("destination is required");
    if (http) Headers(Member(route, "headers"), HeaderUse::kDestination, out);
    if (!anywhere) Destination(destination, out);
    const int64_t weight = MemberNumber(route, "weight");
    if (weight < 0) out.Add(fmt::format("weight {} < 0", weight));
    total += weight;
  }
  if (Items(routes).size() > 1 && total == 0) out.Add("total destination weight = 0");
}

// What excludes what (istiod: validateHTTPRouteConflict).
void CheckConflicts(const json& route, bool delegate, Problems& out) {
  const auto has = [&](const char* name) { return !Member(route, name).is_null(); };
  const bool routes = !Items(Member(route, "route")).empty();
  if (!delegate && has("delegate")) {
    const std::string name = MemberText(route, "name");
    if (has("redirect")) out.Add(fmt::format("root HTTP route {} must not specify redirect", name));
    if (routes) out.Add(fmt::format("root HTTP route {} must not specify route", name));
    return;
  }
  if (delegate && has("delegate")) out.Add("delegate HTTP route cannot contain delegate");
  if (has("redirect")) {
    if (routes) out.Add("HTTP route cannot contain both route and redirect");
    if (has("fault")) out.Add("HTTP route cannot contain both fault and redirect");
    if (has("rewrite")) out.Add("HTTP route rule cannot contain both rewrite and redirect");
    if (has("directResponse")) out.Add("HTTP route rule cannot contain both direct_response and redirect");
  } else if (has("directResponse")) {
    if (routes) out.Add("HTTP route cannot contain both route and direct_response");
    if (has("fault")) out.Add("HTTP route cannot contain both fault and direct_response");
    if (has("rewrite")) out.Add("HTTP route rule cannot contain both rewrite and direct_response");
  } else if (!routes) {
    out.Add("HTTP route, redirect or direct_response is required");
  }
  if (out.Has(pilot::Change::kSeveralMirrors) && has("mirror") && !Items(Member(route, "mirrors")).empty()) {
    out.Add("HTTP route cannot contain both mirror and mirrors");
  }
}

void CheckHttpMatch(const json& match, bool independent, Problems& out) {
  if (const json& headers = Member(match, "headers"); headers.is_object()) {
    for (const auto& [name, header] : headers.items()) {
      if (Has(header, "prefix") && !Has(header, "regex") && MemberText(header, "prefix").empty()) {
        out.Add(fmt::format("header prefix match {} may not be empty", name));
      }
      out.Add(HeaderName(name));
      if (independent) out.Add(Regex(header, "headers"));
    }
  }
  if (!independent) {
    for (const auto& [name, header] : Mapping(Member(match, "withoutHeaders")).items()) out.Add(HeaderName(name));
  } else {
    for (const char* part : {"uri", "scheme", "method", "authority"}) out.Add(Regex(Member(match, part), part));
    if (const json& parameters = Member(match, "queryParams"); parameters.is_object()) {
      for (const auto& [name, parameter] : parameters.items()) out.Add(Regex(parameter, "queryParams"));
    }
  }
}

void CheckSourceMatch(const json& match, Problems& out) {
  if (const int64_t port = MemberNumber(match, "port"); port != 0) out.Add(PortNumber(port));
  LabelMap(Member(match, "sourceLabels"), out);
  {
    const Unwarned quiet(out);
    GatewayNames(Member(match, "gateways"), out);
  }
  const std::string ns = MemberText(match, "sourceNamespace");
  if (!ns.empty() && !IsDnsLabel(ns)) out.Add(fmt::format("sourceNamespace match {} is invalid", ns));
}

void CheckPercentage(const json& percentage, Problems& out) {
  const double percent = MemberDouble(percentage, "value");
  if (percent < 0 || percent > 100 || (percent > 0 && percent < 0.0001)) {
    out.Add(fmt::format("percentage {} is neither 0.0, nor in range [0.0001, 100.0]", percent));
  }
}

std::string HttpStatus(int64_t status) {
  return status < 200 || status > 600 ? fmt::format("HTTP status {} is not in range 200-599", status) : "";
}

std::string GrpcStatus(const std::string& status) {
  constexpr std::string_view kKnown[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  if (std::find(std::begin(kKnown), std::end(kKnown), status) != std::end(kKnown)) return "";
  return fmt::format(
      "gRPC status {} is not supported. See https://github.com/grpc/grpc/blob/master/doc/statuscodes.md for a list of "
      "supported codes, for example 'NOT_FOUND'",
      Quoted(status));
}

void CheckFault(const json& fault, Problems& out) {
  if (!fault.is_object()) return;
  const json& abort = Member(fault, "abort");
  const json& delay = Member(fault, "delay");
  if (abort.is_null() && delay.is_null()) out.AddToList("HTTP fault injection must have an abort and/or a delay");
  CheckPercentage(Member(abort, "percentage"), out);
  // Of a oneof the field that is declared last counts.
  if (Has(abort, "http2Error")) {
    out.AddToList("HTTP/2 abort fault injection not supported yet");
  } else if (Has(abort, "grpcStatus")) {
    out.Add(GrpcStatus(MemberText(abort, "grpcStatus")));
  } else if (Has(abort, "httpStatus")) {
    out.Add(HttpStatus(MemberNumber(abort, "httpStatus")));
  }
  CheckPercentage(Member(delay, "percentage"), out);
  if (const json& exponential = Member(delay, "exponentialDelay"); !exponential.is_null()) {
    out.Add(DurationText(exponential));
    out.AddToList("exponentialDelay not supported yet");
  } else {
    out.Add(DurationText(Member(delay, "fixedDelay")));
  }
}

void CheckCors(const json& policy, Problems& out) {
  static const auto* const kMethods =
      new std::set<std::string>{"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"};
  for (const json& origin : Items(Member(policy, "allowOrigins"))) {
    const char* said = Has(origin, "prefix") ? "prefix" : "exact";
    if (MemberText(origin, Has(origin, "regex") ? "regex" : said).empty()) {
      out.Add("'' is not a valid match type for CORS allow origins");
    } else {
      out.Add(Regex(origin, "corsPolicy.allowOrigins"));
    }
  }
  for (const json& method : Items(Member(policy, "allowMethods"))) {
    if (!kMethods->contains(TextOf(method))) out.Add(Quoted(TextOf(method)) + " is not a supported HTTP method");
  }
  for (const char* list : {"allowHeaders", "exposeHeaders"}) {
    for (const json& name : Items(Member(policy, list))) out.Add(HeaderName(TextOf(name)));
  }
  const json& age = Member(policy, "maxAge");
  out.Add(DurationText(age));
  const std::optional<Duration> read = ParseGoDuration(TextOf(age));
  if (read && *read > Duration::zero() && *read % 1s != Duration::zero()) {
    out.AddToList("max_age duration is accurate only to seconds precision");
  }
}

void CheckRedirect(const json& redirect, Problems& out) {
  if (!redirect.is_object()) return;
  const std::string scheme = MemberText(redirect, "scheme");
  const bool port = !Member(redirect, "port").is_null() || !Member(redirect, "derivePort").is_null();
  if (MemberText(redirect, "uri").empty() && MemberText(redirect, "authority").empty() && !port && scheme.empty()) {
    return out.Add("redirect must specify URI, authority, scheme, or port");
  }
  const int64_t code = MemberNumber(redirect, "redirectCode");
  if (code != 0 && (code < 300 || code > 399)) {
    return out.Add(fmt::format("{} is not a valid redirect code, must be 3xx", code));
  }
  if (!scheme.empty() && scheme != "http" && scheme != "https") {
    return out.Add("invalid redirect scheme, must be \"http\" or \"https\"");
  }
  const int64_t number = MemberNumber(redirect, "port");
  if (number > 0 && !Has(redirect, "derivePort")) out.Add(PortNumber(number));
}

void CheckDirectResponse(const json& response, Problems& out) {
  if (!response.is_object()) return;
  constexpr size_t kLarge = size_t{100} << 10, kTooLarge = size_t{1} << 20;
  const json& body = Member(response, "body");
  std::string bytes = MemberText(body, "string");
  if (Has(body, "bytes") && !absl::Base64Unescape(MemberText(body, "bytes"), &bytes)) bytes.clear();
  if (bytes.size() > kTooLarge) {
    out.Add("large direct_responses may impact control plane performance, must be less than 1MB");
  } else if (bytes.size() > kLarge) {
    out.Warn("large direct_responses may impact control plane performance");
  }
  out.Add(HttpStatus(MemberNumber(response, "status")));
}

// A code that Go's net/http has a name for, or one of Envoy's policies.
bool IsRetryPolicy(const std::string& policy, bool later) {
  if (later && (policy == "reset-before-request" || policy == "http3-post-connect-failure")) return true;
  static const auto* const kPolicies = new std::set<std::string>{"5xx",
                                                                 "gateway-error",
                                                                 "reset",
                                                                 "connect-failure",
                                                                 "retriable-4xx",
                                                                 "refused-stream",
                                                                 "retriable-status-codes",
                                                                 "retriable-headers",
                                                                 "envoy-ratelimited",
                                                                 "cancelled",
                                                                 "deadline-exceeded",
                                                                 "internal",
                                                                 "resource-exhausted",
                                                                 "unavailable"};
  static const auto* const kCodes = new std::set<int64_t>{
      100, 101, 102, 103, 200, 201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 301, 302, 303, 304, 305, 307,
      308, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421,
      422, 423, 424, 425, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511};
  int64_t code = 0;
  return kPolicies->contains(policy) || (NumberError(policy, &code).empty() && kCodes->contains(code));
}

void CheckRetry(const json& retries, Problems& out) {
  if (!retries.is_object()) return;
  const int64_t attempts = MemberNumber(retries, "attempts");
  if (attempts < 0) out.AddToList("attempts cannot be negative");
  if (attempts == 0 && (!Member(retries, "perTryTimeout").is_null() || !MemberText(retries, "retryOn").empty() ||
                        !Member(retries, "retryRemoteLocalities").is_null())) {
    out.Add("http retry policy configured when attempts are set to 0 (disabled)");
  }
  out.Add(DurationText(Member(retries, "perTryTimeout")));
  const std::string retry_on = MemberText(retries, "retryOn");
  const auto backoff = [&] {
    if (out.Has(pilot::Change::kRetryBackoff)) out.Add(DurationText(Member(retries, "backoff")));
  };
  if (retry_on.empty()) return backoff();
  for (const std::string& policy : std::vector<std::string>(absl::StrSplit(retry_on, ','))) {
    if (!IsRetryPolicy(policy, out.Has(pilot::Change::kRetryWords)))
      out.Add(Quoted(policy) + " is not a valid retryOn policy");
  }
  backoff();
}

// istiod: validateHTTPMirrors.
void CheckMirrors(const json& mirrors, Problems& out) {
  if (!out.Has(pilot::Change::kSeveralMirrors)) return;
  for (const json& mirror : Items(mirrors)) {
    const json& destination = Member(mirror, "destination");
    if (destination.is_null()) {
      out.Add("destination is required for mirrors");
      continue;
    }
    Destination(destination, out);
    const double percent = MemberDouble(Member(mirror, "percentage"), "value");
    if (percent > 100) out.Add(fmt::format("mirror percentage must have a max value of 100 (it has {:f})", percent));
    if (percent < 0) out.Add(fmt::format("mirror percentage must have a min value of 0 (it has {:f})", percent));
  }
}

// istiod: validateHTTPRewrite.
void CheckRewrite(const json& rewrite, Problems& out) {
  if (!rewrite.is_object()) return;
  const bool uri = !MemberText(rewrite, "uri").empty(), authority = !MemberText(rewrite, "authority").empty();
  if (!out.Has(pilot::Change::kUriRegexRewrite)) {
    if (!uri && !authority) out.Add("rewrite must specify URI, authority, or both");
    return;
  }
  const json& regex = Member(rewrite, "uriRegexRewrite");
  if (uri && !regex.is_null()) return out.Add("rewrite may only contain one of URI or UriRegexRewrite");
  if (!uri && regex.is_null() && !authority) {
    return out.Add(
        "rewrite must specify at least one of URI, UriRegexRewrite, or authority. Only one of URI or UriRegexRewrite "
        "may "
        "be specified");
  }
  if (regex.is_null()) return;
  std::string wrong = "UriRegexRewrite requires both Rewrite and Match fields to be specified";
  if (!MemberText(regex, "match").empty() && !MemberText(regex, "rewrite").empty())
    wrong = Regex({{"regex", MemberText(regex, "match")}}, "HTTPRewrite.UriRegexRewrite.Match");
  if (!wrong.empty()) out.Add("UriRegexRewrite has errors\n" + wrong);
}

// The authority is set in one place only (istiod: validateAuthorityRewrite).
std::string AuthorityProblem(const json& route) {
  std::string current = MemberText(Member(route, "rewrite"), "authority");
  const json& request = Member(Member(route, "headers"), "request");
  for (const char* list : {"set", "add"}) {
    for (const auto& [name, value] : Mapping(Member(request, list)).items()) {
      if (!IsAuthorityHeader(name)) continue;
      const std::string next = TextOf(value);
      if (!current.empty()) {
        return fmt::format("authority header cannot be set multiple times: have {}, attempting to set {}",
                           Quoted(current), Quoted(next));
      }
      current = next;
    }
  }
  return "";
}

void CheckHttpRoute(const json& route, bool delegate, bool anywhere, Problems& out) {
  CheckConflicts(route, delegate, out);
  const bool independent = !delegate && Member(route, "delegate").is_null();
  // Names and values first, then what all kinds of routes have.
  for (const json& match : Items(Member(route, "match"))) CheckHttpMatch(match, independent, out);
  for (const json& match : Items(Member(route, "match"))) CheckSourceMatch(match, out);
  Headers(Member(route, "headers"), HeaderUse::kRequest, out);
  CheckCors(Member(route, "corsPolicy"), out);
  CheckFault(Member(route, "fault"), out);
  if (Has(route, "mirrorPercent")) {
    const int64_t percent = MemberNumber(route, "mirrorPercent");
    if (percent > 100) out.Add(fmt::format("mirror_percent must have a max value of 100 (it has {})", percent));
    out.Warn("using deprecated setting \"mirrorPercent\", use \"mirrorPercentage\" instead");
  }
  const double percent = MemberDouble(Member(route, "mirrorPercentage"), "value");
  if (percent > 100) out.Add(fmt::format("mirror_percentage must have a max value of 100 (it has {:f})", percent));
  if (percent < 0) out.Add(fmt::format("mirror_percentage must have a min value of 0 (it has {:f})", percent));
  Destination(Member(route, "mirror"), out);
  CheckMirrors(Member(route, "mirrors"), out);
  CheckRedirect(Member(route, "redirect"), out);
  CheckDirectResponse(Member(route, "directResponse"), out);
  CheckRetry(Member(route, "retries"), out);
  CheckRewrite(Member(route, "rewrite"), out);
  out.Add(AuthorityProblem(route));
  CheckDestinations(Member(route, "route"), true, anywhere, out);
  out.Add(DurationText(Member(route, "timeout")));
}

// JWT claims are matched at gateways only.
void CheckClaims(const json& spec, Problems& out) {
  const json& gateways = Items(Member(spec, "gateways"));
  std::string names;
  for (const json& gateway : gateways) {
    if (gateway != "mesh") return;
    names += (names.empty() ? "" : " ") + TextOf(gateway);
  }
  for (const json& route : Items(Member(spec, "http"))) {
    for (const json& match : Items(Member(route, "match"))) {
      for (const char* list : {"headers", "withoutHeaders"}) {
        for (const auto& [name, value] : Mapping(Member(match, list)).items()) {
          if (!name.starts_with("@request.auth.claims.")) continue;
          out.Add(fmt::format(
              "JWT claim based routing (key: {}) is only supported for gateway, found no gateways: [{}]", name, names));
        }
      }
    }
  }
}

void CheckL4Match(const json& match, Problems& out) {
  for (const json& subnet : Items(Member(match, "destinationSubnets"))) out.Add(IpSubnet(TextOf(subnet)));
  if (const int64_t port = MemberNumber(match, "port"); port != 0) out.Add(PortNumber(port));
  LabelMap(Member(match, "sourceLabels"), out);
  GatewayNames(Member(match, "gateways"), out);
}

// "a.foo.com" lies within "*.foo.com" (istiod: Name.SubsetOf).
bool Within(const std::string& name, const std::string& host) {
  if (!host.starts_with('*')) return name == host;
  return name.size() >= host.size() - 1 && name.ends_with(host.substr(1));
}

void CheckTlsRoute(const json& route, const json& spec, Problems& out) {
  const json& matches = Items(Member(route, "match"));
  if (matches.empty()) out.Add("TLS route must have at least one match condition");
  for (const json& match : matches) {
    const json& hosts = Items(Member(match, "sniHosts"));
    if (hosts.empty()) out.Add("TLS match must have at least one SNI host");
    for (const json& entry : hosts) {
      const std::string sni = TextOf(entry);
      if (std::string problem = WildcardDomain(sni); !problem.empty()) {
        if (IsIp(sni)) {
          out.Warn(fmt::format("using an IP address ({}) goes against SNI spec and most clients do not support this",
                               Quoted(sni)));
        } else {
          out.Add(std::move(problem));
        }
        continue;
      }
      std::vector<std::string> all;
      bool within = false;
      for (const json& host : Items(Member(spec, "hosts"))) {
        all.push_back(TextOf(host));
        within |= Within(sni, all.back());
      }
      if (!within) {
        out.Add(fmt::format("SNI host {} is not a compatible subset of any of the virtual service hosts: [{}]",
                            Quoted(sni), fmt::join(all, ", ")));
      }
    }
    CheckL4Match(match, out);
  }
  if (Items(Member(route, "route")).empty()) out.Add("TLS route is required");
  CheckDestinations(Member(route, "route"), false, false, out);
}

}  // namespace

void CheckVirtualService(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  const bool delegate = Items(Member(spec, "hosts")).empty();
  const json& gateways = Items(Member(spec, "gateways"));
  const json &http = Items(Member(spec, "http")), &tls = Items(Member(spec, "tls")), &tcp = Items(Member(spec, "tcp"));
  if (delegate) {
    if (!gateways.empty()) out.Add("delegate virtual service must have no gateways specified");
    if (!tls.empty()) out.Add("delegate virtual service must have no tls route specified");
    if (!tcp.empty()) out.Add("delegate virtual service must have no tcp route specified");
  }
  GatewayNames(gateways, out);
  bool mesh = gateways.empty();
  for (const json& gateway : gateways) mesh |= gateway == "mesh";
  CheckClaims(spec, out);
  CheckHosts(spec, mesh, out);
  if (http.empty() && tls.empty() && tcp.empty()) out.Add("http, tcp or tls must be provided in virtual service");
  const bool anywhere = At(At(At(object, "metadata"), "annotations"), "internal.istio.io/route-semantics") == "gateway";
  for (const json& route : http) CheckHttpRoute(route, delegate, anywhere, out);
  for (const json& route : tls) CheckTlsRoute(route, spec, out);
  for (const json& route : tcp) {
    const Unwarned quiet(out);
    for (const json& match : Items(Member(route, "match"))) CheckL4Match(match, out);
    if (Items(Member(route, "route")).empty()) out.Add("TCP route is required");
    CheckDestinations(Member(route, "route"), false, false, out);
  }
  ExportTo(Text(At(object, "metadata"), "namespace"), Member(spec, "exportTo"), Exported::kAny, out);
  WarnOfUnreachable(spec, out);
}

}  // namespace wavetank::validation
