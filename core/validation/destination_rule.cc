#include "core/base/json_access.h"
#include "core/validation/names.h"
#include "core/validation/rules.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

void CheckOutlierDetection(const json& outlier, Problems& out) {
  if (!outlier.is_object()) return;
  out.Add(DurationText(Member(outlier, "baseEjectionTime")));
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
  not_negative(tcp, "maxConnections", "max connections");
  out.Add(DurationText(Member(tcp, "connectTimeout")));
  out.Add(DurationText(Member(tcp, "maxConnectionDuration")));
}

void CheckLoadBalancer(const json& balancer, Problems& out) {
  const json& cookie = Member(Member(balancer, "consistentHash"), "httpCookie");
  if (!cookie.is_object()) return;
  if (MemberText(cookie, "name").empty()) out.Add("name required for HttpCookie");
  if (Member(cookie, "ttl").is_null()) out.Add("ttl required for HttpCookie");
}

void CheckClientTls(const json& tls, Problems& out) {
  if (!tls.is_object()) return;
  const std::string mode = MemberText(tls, "mode");
  const auto given = [&](const char* name) { return !MemberText(tls, name).empty(); };
  if ((mode == "SIMPLE" || mode == "MUTUAL") && given("credentialName")) {
    if (given("clientCertificate") || given("caCertificates") || given("privateKey")) {
      out.Add("cannot specify client certificates or CA certificate If credentialName is set");
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
  CheckLoadBalancer(Member(policy, "loadBalancer"), out);
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
  if (!HasAny(policy, {"outlierDetection", "connectionPool", "loadBalancer", "tls", "portLevelSettings", "tunnel"})) {
    return out.Add("traffic policy must have at least one field");
  }
  CheckParts(policy, out);
  for (const json& port : Items(Member(policy, "portLevelSettings"))) {
    if (Member(port, "port").is_null()) out.Add("portTrafficPolicy must have valid port");
    if (HasAny(port, {"outlierDetection", "connectionPool", "loadBalancer", "tls"})) {
      CheckParts(port, out);
    } else {
      out.Add("port traffic policy must have at least one field");
    }
  }
}

}  // namespace

void CheckDestinationRule(const json& object, Problems& out) {
  const json& spec = At(object, "spec");
  out.Add(WildcardDomain(MemberText(spec, "host")));
  CheckPolicy(Member(spec, "trafficPolicy"), out);
  for (const json& subset : Items(Member(spec, "subsets"))) {
    if (!subset.is_object()) {
      out.Add("subset may not be null");
      continue;
    }
    const std::string name = MemberText(subset, "name");
    if (name.empty()) {
      out.Add("subset name cannot be empty");
    } else if (!IsDnsLabel(name)) {
      out.Add("subset name is invalid: " + name);
    }
    LabelMap(Member(subset, "labels"), out);
    CheckPolicy(Member(subset, "trafficPolicy"), out);
  }
  ExportTo(Text(At(object, "metadata"), "namespace"), Member(spec, "exportTo"),
           !Member(spec, "workloadSelector").is_null(), out);
}

}  // namespace wavetank::validation
