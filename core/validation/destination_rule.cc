#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_split.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/profile/changes.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

void CheckOutlierDetection(const json& outlier, Problems& out) {
  if (!outlier.is_object()) return;
  out.Add(DurationText(Member(outlier, "baseEjectionTime")));
  if (MemberNumber(outlier, "consecutiveErrors") != 0) {
    out.Warn(
        "outlier detection consecutive errors is deprecated, use consecutiveGatewayErrors or consecutive5xxErrors "
        "instead");
  }
  if (Member(outlier, "splitExternalLocalOriginErrors") != true &&
      MemberNumber(outlier, "consecutiveLocalOriginFailures") > 0) {
    out.Add(
        "outlier detection consecutive local origin failures is specified, but split external local origin errors is "
        "set to false");
  }
  out.Add(DurationText(Member(outlier, "interval")));
  out.Add(Percent(MemberNumber(outlier, "maxEjectionPercent")));
  out.Add(Percent(MemberNumber(outlier, "minHealthPercent")));
}

// istiod: validateLoadBalancer.
void CheckWarmup(const json& warmup, Problems& out) {
  if (!warmup.is_object() || !out.Has(pilot::Change::kWarmupShape)) return;
  const json& duration = Member(warmup, "duration");
  out.Add(duration.is_null() ? "duration is required" : DurationText(duration));
  if (MemberDouble(warmup, "minimumPercent") > 100) {
    out.Add("minimumPercent value should be less than or equal to 100");
  }
  if (!Member(warmup, "aggression").is_null() && MemberDouble(warmup, "aggression") < 1) {
    out.Add("aggression should be greater than or equal to 1");
  }
}

void CheckCookieAttributes(const json& cookie, Problems& out) {
  if (!out.Has(pilot::Change::kHashCookieAttributes)) return;
  std::set<std::string> names;
  for (const json& attribute : Items(Member(cookie, "attributes"))) {
    const std::string name = MemberText(attribute, "name");
    if (name.empty()) {
      out.Add("cookie attribute name cannot be empty");
    } else if (!names.insert(name).second) {
      out.Add("duplicate cookie attribute name: " + name);
    }
  }
}

}  // namespace

void CheckConnectionPool(const json& pool, Problems& out) {
  if (!pool.is_object()) return;
  const json &http = Member(pool, "http"), &tcp = Member(pool, "tcp");
  if (http.is_null() && tcp.is_null()) return out.Add("connection pool must have at least one field");
  const auto not_negative = [&](const json& in, const char* field, const char* what) {
    if (MemberNumber(in, field) < 0) out.Add(std::string(what) + " must be non-negative");
  };
  not_negative(http, "http1MaxPendingRequests", "http1 max pending requests");
  not_negative(http, "http2MaxRequests", "http2 max requests");
  not_negative(http, "maxRequestsPerConnection", "max requests per connection");
  not_negative(http, "maxRetries", "max retries");
  out.Add(DurationText(Member(http, "idleTimeout")));
  if (MemberText(http, "h2UpgradePolicy") == "UPGRADE" && Member(http, "useClientProtocol") == true) {
    out.Add("use client protocol must not be true when H2UpgradePolicy is UPGRADE");
  }
  if (out.Has(pilot::Change::kConcurrentStreams)) not_negative(http, "maxConcurrentStreams", "max concurrent streams");
  not_negative(tcp, "maxConnections", "max connections");
  out.Add(DurationText(Member(tcp, "connectTimeout")));
  out.Add(DurationText(Member(tcp, "maxConnectionDuration")));
  // Less than a millisecond switches it off.
  const json& idle = Member(tcp, "idleTimeout");
  const std::optional<Duration> read = ParseGoDuration(TextOf(idle));
  if (out.Has(pilot::Change::kTcpIdleTimeout) && !(read && *read / 1ms == 0)) out.Add(DurationText(idle));
}

namespace {

// Localities that others of the list hold already; "region/zone/subzone", "*" last. One error at most.
std::string LocalitiesProblem(const std::vector<std::string>& localities) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> seen;
  for (const std::string& locality : localities) {
    const auto stars = std::count(locality.begin(), locality.end(), '*');
    if (stars > 1 || (stars == 1 && !locality.ends_with('*'))) {
      return fmt::format("locality {} wildcard '*' number can not exceed 1 and must be in the end", locality);
    }
    const std::string overlap = fmt::format("locality {} overlap with previous specified ones", locality);
    if (seen.contains("*")) return overlap;
    const std::vector<std::string> parts = absl::StrSplit(locality, absl::MaxSplits('/', 2));
    if (std::find(parts.begin(), parts.end(), "") != parts.end()) {
      return fmt::format("locality {} must not contain empty region/zone/subzone info", locality);
    }
    const bool known = seen.contains(parts[0]);
    std::map<std::string, std::set<std::string>>& zones = seen[parts[0]];
    if (parts.size() == 1) {
      if (known) return overlap;
      zones["*"].insert("*");
      continue;
    }
    if (zones.contains("*") || (parts.size() == 2 && zones.contains(parts[1]))) return overlap;
    std::set<std::string>& sub_zones = zones[parts[1]];
    if (sub_zones.contains("*")) return overlap;
    if (!sub_zones.insert(parts.size() == 2 ? "*" : parts[2]).second) return overlap;
  }
  return "";
}

// istiod: validateLocalityLbSetting.
void CheckLocalityLb(const json& setting, bool outlier, Problems& out) {
  if (!setting.is_object()) return;
  const json& distribute = Items(Member(setting, "distribute"));
  const json& failover = Items(Member(setting, "failover"));
  if (!distribute.empty() && !failover.empty()) {
    return out.Add("can not simultaneously specify 'distribute' and 'failover'");
  }
  std::vector<std::string> sources;
  for (const json& one : distribute) {
    sources.push_back(MemberText(one, "from"));
    std::vector<std::string> destinations;
    int64_t total = 0;
    for (const auto& [locality, share] : Mapping(Member(one, "to")).items()) {
      destinations.push_back(locality);
      const int64_t weight = MemberNumber({{"weight", share}}, "weight");
      if (weight <= 0 || weight > 100) return out.Add("locality weight must be in range [1, 100]");
      total += weight;
    }
    if (total != 100) return out.Add(fmt::format("total locality weight {} != 100", total));
    out.Add(LocalitiesProblem(destinations));
  }
  out.Add(LocalitiesProblem(sources));
  if ((!failover.empty() || !Items(Member(setting, "failoverPriority")).empty()) && !outlier) {
    out.Warn("outlier detection policy must be provided for failover");
  }
  for (const json& one : failover) {
    const std::string from = MemberText(one, "from"), to = MemberText(one, "to");
    const auto either = [&](char c) { return from.find(c) != std::string::npos || to.find(c) != std::string::npos; };
    if (from == to) out.Add("locality lb failover settings must specify different regions");
    if (either('/')) out.Add("locality lb failover only specify region");
    if (either('*')) out.Add("locality lb failover region should not contain '*' wildcard");
  }
}

void CheckLoadBalancer(const json& balancer, bool outlier, Problems& out) {
  const json& hash = Member(balancer, "consistentHash");
  if (const json& cookie = Member(hash, "httpCookie"); cookie.is_object()) {
    if (MemberText(cookie, "name").empty()) out.Add("name required for HttpCookie");
    if (!out.Has(pilot::Change::kHashCookieAttributes) && Member(cookie, "ttl").is_null()) {
      out.Add("ttl required for HttpCookie");
    }
    CheckCookieAttributes(cookie, out);
  }
  if (MemberNumber(hash, "minimumRingSize") != 0) {
    out.Warn("consistent hash MinimumRingSize is deprecated, use ConsistentHashLB's RingHash configuration instead");
    if (Has(hash, "ringHash") || Has(hash, "maglev")) {
      out.Add("only one of MinimumRingSize or Maglev/Ringhash can be specified");
    }
  }
  CheckLocalityLb(Member(balancer, "localityLbSetting"), outlier, out);
  CheckWarmup(Member(balancer, "warmup"), out);
}

void CheckTunnel(const json& tunnel, Problems& out) {
  if (!tunnel.is_object()) return;
  const std::string protocol = MemberText(tunnel, "protocol"), host = MemberText(tunnel, "targetHost");
  if (!protocol.empty() && protocol != "CONNECT" && protocol != "POST") {
    out.Add("tunnel protocol must be \"CONNECT\" or \"POST\"");
  }
  const std::string no_name = Fqdn(host), no_address = Ip(host);
  if (!no_name.empty() && !no_address.empty()) {
    out.Add(fmt::format("tunnel target host must be valid FQDN or IP address: {}; {}", no_name, no_address));
  }
  const std::string no_port = PortNumber(MemberNumber(tunnel, "targetPort"));
  if (!no_port.empty()) out.Add("tunnel target port is invalid: " + no_port);
}

void CheckClientTls(const json& tls, Problems& out) {
  if (!tls.is_object()) return;
  const std::string mode = MemberText(tls, "mode");
  const auto given = [&](const char* name) { return !MemberText(tls, name).empty(); };
  if ((mode == "SIMPLE" || mode == "MUTUAL") && given("credentialName")) {
    const bool crl = out.Has(pilot::Change::kRevocationFiles);
    if (given("clientCertificate") || given("caCertificates") || given("privateKey") || (crl && given("caCrl"))) {
      out.Add(fmt::format("cannot specify client certificates or CA certificate {}If credentialName is set",
                          crl ? "or CA CRL " : ""));
    }
    return;
  }
  if (mode != "MUTUAL") return;
  if (!given("clientCertificate")) out.Add("client certificate required for mutual tls");
  if (!given("privateKey")) out.Add("private key required for mutual tls");
}

void CheckParts(const json& policy, Problems& out) {
  CheckOutlierDetection(Member(policy, "outlierDetection"), out);
  CheckConnectionPool(Member(policy, "connectionPool"), out);
  CheckLoadBalancer(Member(policy, "loadBalancer"), Has(policy, "outlierDetection"), out);
  CheckClientTls(Member(policy, "tls"), out);
}

bool HasAny(const json& policy, std::initializer_list<const char*> fields) {
  for (const char* field : fields) {
    if (!Member(policy, field).is_null()) return true;
  }
  return false;
}

void CheckPolicy(const json& policy, Problems& out) {
  if (!policy.is_object()) return;
  const bool proxy_protocol =
      out.Has(pilot::Change::kUpstreamProxyProtocol) && !Member(policy, "proxyProtocol").is_null();
  const bool budget = out.Has(pilot::Change::kRetryBudgets) && !Member(policy, "retryBudget").is_null();
  if (!HasAny(policy, {"outlierDetection", "connectionPool", "loadBalancer", "tls", "tunnel"}) && !proxy_protocol &&
      !budget && Items(Member(policy, "portLevelSettings")).empty()) {
    return out.Add("traffic policy must have at least one field");
  }
  if (proxy_protocol && HasAny(policy, {"tunnel"})) {
    return out.Add("tunnel and proxyProtocol must not be set together");
  }
  CheckParts(policy, out);
  Unwarned ports(out);
  for (const json& port : Items(Member(policy, "portLevelSettings"))) {
    if (Member(port, "port").is_null()) out.Add("portTrafficPolicy must have valid port");
    if (HasAny(port, {"outlierDetection", "connectionPool", "loadBalancer", "tls"})) {
      CheckParts(port, out);
    } else {
      out.Add("port traffic policy must have at least one field");
    }
  }
  CheckTunnel(Member(policy, "tunnel"), out);
}

}  // namespace

void CheckDestinationRule(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  out.Add(WildcardDomain(MemberText(spec, "host")));
  CheckPolicy(Member(spec, "trafficPolicy"), out);
  for (const json& subset : Items(Member(spec, "subsets"))) {
    const Unwarned quiet(out);
    const std::string name = MemberText(subset, "name");
    if (name.empty()) {
      out.Add("subset name cannot be empty");
    } else if (!IsDnsLabel(name)) {
      out.Add("subset name is invalid: " + name);
    }
    LabelMap(Member(subset, "labels"), out);
    CheckPolicy(Member(subset, "trafficPolicy"), out);
  }
  const json& selector = Member(spec, "workloadSelector");
  ExportTo(Text(At(object, "metadata"), "namespace"), Member(spec, "exportTo"),
           selector.is_null() ? Exported::kAny : Exported::kRuleWithSelector, out);
  Selector(selector, "matchLabels", "", "", out);
}

}  // namespace wavetank::validation
