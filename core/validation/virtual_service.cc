#include <set>

#include "core/base/json_access.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

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

void CheckDestination(const json& destination, Problems& out) {
  if (!destination.is_object()) return;
  const std::string host = MemberText(destination, "host");
  out.Add(host == "*" ? "invalid destination host *" : WildcardDomain(host));
  const std::string subset = MemberText(destination, "subset");
  if (!subset.empty() && !IsDnsLabel(subset)) out.Add("subset name is invalid: " + subset);
  if (const json& port = Member(destination, "port"); port.is_object()) {
    out.Add(PortNumber(MemberNumber(port, "number")));
  }
}

void CheckDestinations(const json& routes, bool http, Problems& out) {
  int64_t total = 0;
  for (const json& route : Items(routes)) {
    if (!route.is_object()) {
      out.AddToList("weight may not be nil");
      continue;
    }
    const json& destination = Member(route, "destination");
    if (destination.is_null()) out.AddToList("destination is required");
    if (http) Headers(Member(route, "headers"), HeaderUse::kDestination, out);
    CheckDestination(destination, out);
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
    if (has("route")) out.Add(fmt::format("root HTTP route {} must not specify route", name));
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
}

void CheckHttpMatch(const json& match, bool independent, Problems& out) {
  if (const json& headers = Member(match, "headers"); headers.is_object()) {
    for (const auto& [name, header] : headers.items()) {
      if (header.is_null()) out.Add(fmt::format("header match {} cannot be null", name));
      if (const json& prefix = Member(header, "prefix"); prefix.is_string() && prefix == "") {
        out.Add(fmt::format("header prefix match {} may not be empty", name));
      }
      out.Add(HeaderName(name));
      if (independent) out.Add(Regex(header, "headers"));
    }
  }
  if (independent) {
    for (const char* part : {"uri", "scheme", "method", "authority"}) out.Add(Regex(Member(match, part), part));
    if (const json& parameters = Member(match, "queryParams"); parameters.is_object()) {
      for (const auto& [name, parameter] : parameters.items()) out.Add(Regex(parameter, "queryParams"));
    }
  }
  if (const int64_t port = MemberNumber(match, "port"); port != 0) out.Add(PortNumber(port));
  LabelMap(Member(match, "sourceLabels"), out);
  GatewayNames(Member(match, "gateways"), out);
  const std::string ns = MemberText(match, "sourceNamespace");
  if (!ns.empty() && !IsDnsLabel(ns)) out.Add(fmt::format("sourceNamespace match {} is invalid", ns));
}

void CheckPercentage(const json& percentage, Problems& out) {
  const json& value = Member(percentage, "value");
  if (!value.is_number()) return;
  const double percent = value.get<double>();
  if (percent < 0 || percent > 100 || (percent > 0 && percent < 0.0001)) {
    out.Add(fmt::format("percentage {} is neither 0.0, nor in range [0.0001, 100.0]", percent));
  }
}

std::string HttpStatus(int64_t status) {
  return status < 200 || status > 600 ? fmt::format("HTTP status {} is not in range 200-599", status) : "";
}

void CheckFault(const json& fault, Problems& out) {
  if (!fault.is_object()) return;
  const json& abort = Member(fault, "abort");
  const json& delay = Member(fault, "delay");
  if (abort.is_null() && delay.is_null()) out.AddToList("HTTP fault injection must have an abort and/or a delay");
  CheckPercentage(Member(abort, "percentage"), out);
  if (!Member(abort, "httpStatus").is_null()) out.Add(HttpStatus(MemberNumber(abort, "httpStatus")));
  if (!Member(abort, "http2Error").is_null()) out.AddToList("HTTP/2 abort fault injection not supported yet");
  CheckPercentage(Member(delay, "percentage"), out);
  out.Add(DurationText(Member(delay, "fixedDelay")));
  if (!Member(delay, "exponentialDelay").is_null()) out.AddToList("exponentialDelay not supported yet");
}

void CheckCors(const json& policy, Problems& out) {
  static const auto* const kMethods =
      new std::set<std::string>{"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE", "*"};
  for (const json& origin : Items(Member(policy, "allowOrigins"))) {
    if (MemberText(origin, "exact").empty() && MemberText(origin, "prefix").empty() &&
        MemberText(origin, "regex").empty()) {
      out.Add("'' is not a valid match type for CORS allow origins");
    }
    out.Add(Regex(origin, "corsPolicy.allowOrigins"));
  }
  for (const json& method : Items(Member(policy, "allowMethods"))) {
    if (!kMethods->contains(TextOf(method))) out.Add(Quoted(TextOf(method)) + " is not a supported HTTP method");
  }
  for (const char* list : {"allowHeaders", "exposeHeaders"}) {
    for (const json& name : Items(Member(policy, list))) out.Add(HeaderName(TextOf(name)));
  }
  out.Add(DurationText(Member(policy, "maxAge")));
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
  if (const int64_t number = MemberNumber(redirect, "port"); number > 0) out.Add(PortNumber(number));
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
}

void CheckHttpRoute(const json& route, bool delegate, Problems& out) {
  CheckConflicts(route, delegate, out);
  const bool independent = !delegate && Member(route, "delegate").is_null();
  for (const json& match : Items(Member(route, "match"))) {
    if (match.is_object()) CheckHttpMatch(match, independent, out);
  }
  Headers(Member(route, "headers"), HeaderUse::kRequest, out);
  CheckCors(Member(route, "corsPolicy"), out);
  CheckFault(Member(route, "fault"), out);
  if (const json& mirror = Member(Member(route, "mirrorPercentage"), "value"); mirror.is_number()) {
    const double percent = mirror.get<double>();
    if (percent > 100) out.Add(fmt::format("mirror_percentage must have a max value of 100 (it has {:f})", percent));
    if (percent < 0) out.Add(fmt::format("mirror_percentage must have a min value of 0 (it has {:f})", percent));
  }
  CheckDestination(Member(route, "mirror"), out);
  CheckRedirect(Member(route, "redirect"), out);
  if (const json& direct = Member(route, "directResponse"); direct.is_object()) {
    out.Add(HttpStatus(MemberNumber(direct, "status")));
  }
  CheckRetry(Member(route, "retries"), out);
  if (const json& rewrite = Member(route, "rewrite");
      rewrite.is_object() && MemberText(rewrite, "uri").empty() && MemberText(rewrite, "authority").empty()) {
    out.Add("rewrite must specify URI, authority, or both");
  }
  CheckDestinations(Member(route, "route"), true, out);
  out.Add(DurationText(Member(route, "timeout")));
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
        if (!IsIp(sni)) out.Add(std::move(problem));
        continue;
      }
      std::string all;
      bool within = false;
      for (const json& host : Items(Member(spec, "hosts"))) {
        all += (all.empty() ? "" : ", ") + TextOf(host);
        within |= Within(sni, TextOf(host));
      }
      if (!within) {
        out.Add(fmt::format("SNI host {} is not a compatible subset of any of the virtual service hosts: [{}]",
                            Quoted(sni), all));
      }
    }
    CheckL4Match(match, out);
  }
  if (Items(Member(route, "route")).empty()) out.Add("TLS route is required");
  CheckDestinations(Member(route, "route"), false, out);
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
  CheckHosts(spec, mesh, out);
  if (http.empty() && tls.empty() && tcp.empty()) out.Add("http, tcp or tls must be provided in virtual service");
  for (const json& route : http) {
    if (route.is_null()) {
      out.Add("http route may not be null");
    } else {
      CheckHttpRoute(route, delegate, out);
    }
  }
  for (const json& route : tls) CheckTlsRoute(route, spec, out);
  for (const json& route : tcp) {
    for (const json& match : Items(Member(route, "match"))) CheckL4Match(match, out);
    if (Items(Member(route, "route")).empty()) out.Add("TCP route is required");
    CheckDestinations(Member(route, "route"), false, out);
  }
  ExportTo(Text(At(object, "metadata"), "namespace"), Member(spec, "exportTo"), false, out);
}

}  // namespace wavetank::validation
