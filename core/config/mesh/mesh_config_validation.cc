#include "core/config/mesh/mesh_config_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/config/kinds/read_message.h"
#include "core/config/mesh/private_key_provider.h"
#include "core/config/schema/dns_names.h"

namespace wavetank::config {
namespace {

using namespace std::chrono_literals;

absl::Status RefusedMesh(std::string_view field, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("mesh.{}: {}", field, what));
}

bool IsPortNumber(int64_t port) { return port >= 1 && port <= 65535; }
bool WholeMilliseconds(Duration duration) { return duration % Duration(1ms) == Duration(0); }

// Localities of one list must not overlap: "a/*" covers "a/b", and what comes second is at fault.
// istiod: validateLocalities.
absl::Status ValidateLocalities(const std::vector<std::string>& localities) {
  const std::string all = "*";
  std::map<std::string, std::map<std::string, std::set<std::string>>> seen;
  for (const std::string& locality : localities) {
    const auto bad = [&locality](std::string_view what) {
      return RefusedMesh("localityLbSetting", fmt::format("locality '{}' {}", locality, what));
    };
    if (const auto stars = std::count(locality.begin(), locality.end(), '*');
        stars > 1 || (stars == 1 && locality.back() != '*')) {
      return bad("may have one '*', at its end");
    }
    const std::vector<std::string> parts = absl::StrSplit(locality, absl::MaxSplits('/', 2));
    if (std::any_of(parts.begin(), parts.end(), [](const std::string& part) { return part.empty(); })) {
      return bad("has an empty part");
    }
    const auto covered = [&](const auto& level, const std::string& name) {
      return level.contains(all) || level.contains(name);
    };
    const auto region = seen.find(parts[0]);
    const bool known_region = region != seen.end();
    bool overlaps = seen.contains(all);
    if (parts.size() == 1) {
      overlaps = overlaps || known_region;
      seen[parts[0]][all] = {all};
    } else if (parts.size() == 2) {
      overlaps = overlaps || (known_region && covered(region->second, parts[1]));
      seen[parts[0]][parts[1]] = {all};
    } else {
      if (known_region) {
        const auto zone = region->second.find(parts[1]);
        overlaps = overlaps || region->second.contains(all) ||
                   (zone != region->second.end() && covered(zone->second, parts[2]));
      }
      seen[parts[0]][parts[1]].insert(parts[2]);
    }
    if (overlaps) return bad("overlaps with one before it");
  }
  return absl::OkStatus();
}

// istiod: validateLocalityLbSetting.
absl::Status ValidateLocalityLbSetting(const LocalityLbSetting& setting) {
  constexpr std::string_view kField = "localityLbSetting";
  if (!setting.distribute.empty() && !setting.failover.empty()) {
    return RefusedMesh(kField, "distribute and failover exclude each other");
  }
  std::vector<std::string> sources;
  for (const LocalityLbSetting::Distribute& rule : setting.distribute) {
    sources.push_back(rule.from);
    std::vector<std::string> targets;
    uint32_t total = 0;
    for (const auto& [locality, weight] : rule.to) {
      if (weight < 1 || weight > 100) return RefusedMesh(kField, "a weight must be from 1 to 100");
      targets.push_back(locality);
      total += weight;
    }
    if (total != 100) return RefusedMesh(kField, fmt::format("the weights from '{}' must sum to 100", rule.from));
    if (absl::Status status = ValidateLocalities(targets); !status.ok()) return status;
  }
  if (absl::Status status = ValidateLocalities(sources); !status.ok()) return status;
  for (const LocalityLbSetting::Failover& rule : setting.failover) {
    if (rule.from == rule.to) return RefusedMesh(kField, "failover must lead to another region");
    if ((rule.from + rule.to).find_first_of("/*") != std::string::npos) {
      return RefusedMesh(kField, "failover names regions only");
    }
  }
  return absl::OkStatus();
}

struct AddressOf {
  std::optional<std::string> address, access_token;
};
void ReadMessage(ProtoJson& in, AddressOf& out) {
  in.Field("address", out.address);
  in.Field("accessToken", out.access_token);
}

struct Tracers {
  std::optional<AddressOf> zipkin, lightstep, datadog;
};
void ReadMessage(ProtoJson& in, Tracers& out) {
  in.Field("zipkin", out.zipkin);
  in.Field("lightstep", out.lightstep);
  in.Field("datadog", out.datadog);
}

enum class AuthPolicy : uint8_t { kNone, kMutualTls };
enum class InterceptionMode : uint8_t { kRedirect, kTproxy, kNone };

// Of ProxyConfig, what is checked, with istiod's defaults; the last of it for its types alone.
struct CheckedProxyConfig {
  std::string config_path = "./etc/istio/proxy", binary_path = "/usr/local/bin/envoy", service_cluster = "istio-proxy";
  std::string discovery_address = "istiod.istio-system.svc:15012";
  std::string statsd_udp_address, envoy_metrics_service_address;
  Duration drain_duration = 45s;
  int32_t proxy_admin_port = 15000, status_port = 15020;
  Tracers tracing;
  AddressOf metrics_service, access_log_service;
  std::optional<PrivateKeyProvider> private_key_provider;

  AuthPolicy auth_policy = AuthPolicy::kMutualTls;
  InterceptionMode interception_mode = InterceptionMode::kRedirect;
  std::optional<int32_t> concurrency, stat_name_length;
  Duration termination_drain{}, parent_shutdown{};
  bool hold_application = false;
  std::map<std::string, std::string> metadata, runtime_values;
};
void ReadMessage(ProtoJson& in, CheckedProxyConfig& out) {
  in.Field("configPath", out.config_path);
  in.Field("binaryPath", out.binary_path);
  if (!in.Has("tracingServiceName")) in.Field("serviceCluster", out.service_cluster);
  in.Field("discoveryAddress", out.discovery_address);
  in.Field("statsdUdpAddress", out.statsd_udp_address);
  in.Field("envoyMetricsServiceAddress", out.envoy_metrics_service_address);
  in.Field("drainDuration", out.drain_duration);
  in.Field("proxyAdminPort", out.proxy_admin_port);
  in.Field("statusPort", out.status_port);
  in.Field("tracing", out.tracing);
  in.Field("envoyMetricsService", out.metrics_service);
  in.Field("envoyAccessLogService", out.access_log_service);
  in.Field("privateKeyProvider", out.private_key_provider);
  in.Enum("controlPlaneAuthPolicy", out.auth_policy,
          {{"NONE", AuthPolicy::kNone}, {"MUTUAL_TLS", AuthPolicy::kMutualTls}});
  in.Enum("interceptionMode", out.interception_mode,
          {{"REDIRECT", InterceptionMode::kRedirect},
           {"TPROXY", InterceptionMode::kTproxy},
           {"NONE", InterceptionMode::kNone}});
  in.Field("concurrency", out.concurrency);
  in.Field("statNameLength", out.stat_name_length);
  in.Field("terminationDrainDuration", out.termination_drain);
  in.Field("parentShutdownDuration", out.parent_shutdown);
  in.Field("holdApplicationUntilProxyStarts", out.hold_application);
  in.Field("proxyMetadata", out.metadata);
  in.Field("runtimeValues", out.runtime_values);
}

}  // namespace

absl::Status CheckProxyConfig(const nlohmann::json& config, const std::string& path) {
  CheckedProxyConfig proxy;
  absl::Status status;
  ProtoJson fields(config, path, status);
  if (status.ok()) ReadMessage(fields, proxy);
  if (!status.ok()) return status;
  const auto bad = [&path](std::string_view field, std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("{}.{}: {}", path, field, what));
  };
  for (const auto& [name, value] : {std::pair("configPath", &proxy.config_path),
                                    {"binaryPath", &proxy.binary_path},
                                    {"serviceCluster", &proxy.service_cluster}}) {
    if (value->empty()) return bad(name, "must not be empty");
  }
  if (proxy.drain_duration < Duration(1s) || proxy.drain_duration > Duration(1h) ||
      proxy.drain_duration % Duration(1s) != Duration(0)) {
    return bad("drainDuration", "expected whole seconds, from 1s to 1h");
  }
  constexpr std::string_view kAddress = "expected HOST:PORT";
  if (!IsHostAndPort(proxy.discovery_address)) return bad("discoveryAddress", kAddress);
  for (const auto& [name, tracer] : {std::pair("tracing.zipkin.address", &proxy.tracing.zipkin),
                                     {"tracing.lightstep.address", &proxy.tracing.lightstep},
                                     {"tracing.datadog.address", &proxy.tracing.datadog}}) {
    if (!*tracer) continue;
    const std::string address = absl::StrReplaceAll((*tracer)->address.value_or(""), {{"$(HOST_IP)", "127.0.0.1"}});
    if (!IsHostAndPort(address)) return bad(name, kAddress);
  }
  if (proxy.tracing.lightstep && proxy.tracing.lightstep->access_token.value_or("").empty()) {
    return bad("tracing.lightstep.accessToken", "must not be empty");
  }
  for (const auto& [name, address] :
       {std::pair("statsdUdpAddress", proxy.statsd_udp_address),
        {"envoyMetricsServiceAddress", proxy.envoy_metrics_service_address},
        {"envoyMetricsService.address", proxy.metrics_service.address.value_or("")},
        {"envoyAccessLogService.address", proxy.access_log_service.address.value_or("")}}) {
    if (!address.empty() && !IsHostAndPort(address)) return bad(name, kAddress);
  }
  if (!IsPortNumber(proxy.proxy_admin_port)) return bad("proxyAdminPort", "expected a port from 1 to 65535");
  if (!IsPortNumber(proxy.status_port)) return bad("statusPort", "expected a port from 1 to 65535");
  if (const auto& provider = proxy.private_key_provider) {
    if (provider->kind == PrivateKeyProvider::Kind::kNone) return bad("privateKeyProvider", "expected cryptomb or qat");
    if (provider->poll_delay.value_or(Duration(0)) == Duration(0)) {
      return bad("privateKeyProvider", "expected a pollDelay that is not 0");
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateMeshConfig(const MeshConfig& mesh) {
  // 1.18.2 looks at proxyListenPort alone (istiod: pkg/config/validation/validation.go, ValidateMeshConfig). It takes
  // any proxyInboundListenPort: with 0 sidecars are told to listen at a pipe named like the wildcard address.
  if (!IsPortNumber(mesh.proxy_listen_port)) return RefusedMesh("proxyListenPort", "expected a port from 1 to 65535");
  if (mesh.connect_timeout) {
    if (*mesh.connect_timeout < Duration(1ms)) return RefusedMesh("connectTimeout", "expected at least 1ms");
    if (*mesh.connect_timeout > Duration(30s)) return RefusedMesh("connectTimeout", "expected at most 30s");
    if (!WholeMilliseconds(*mesh.connect_timeout)) return RefusedMesh("connectTimeout", "expected whole milliseconds");
  }
  if (mesh.protocol_detection_timeout && !WholeMilliseconds(*mesh.protocol_detection_timeout)) {
    return RefusedMesh("protocolDetectionTimeout", "expected whole milliseconds");
  }
  if (const auto proxy = mesh.raw.find("defaultConfig"); proxy != mesh.raw.end() && !proxy->is_null()) {
    if (absl::Status status = CheckProxyConfig(*proxy, "mesh.defaultConfig"); !status.ok()) return status;
  }
  if (mesh.locality_lb_setting) {
    if (absl::Status status = ValidateLocalityLbSetting(*mesh.locality_lb_setting); !status.ok()) return status;
  }
  for (const MeshConfig::ServiceSettings& settings : mesh.service_settings) {
    for (const std::string& host : settings.hosts) {
      if (!IsWildcardDomain(host)) return RefusedMesh("serviceSettings", fmt::format("'{}' is no DNS name", host));
    }
  }
  if (!IsTrustDomain(mesh.trust_domain)) {
    return RefusedMesh("trustDomain", fmt::format("'{}' is no trust domain; write DNS labels", mesh.trust_domain));
  }
  for (const std::string& alias : mesh.trust_domain_aliases) {
    if (!IsTrustDomain(alias)) return RefusedMesh("trustDomainAliases", fmt::format("'{}' is no trust domain", alias));
  }
  if (!mesh.mesh_mtls.ecdh_curves.empty()) return RefusedMesh("meshMTLS.ecdhCurves", "cannot be set; see tlsDefaults");
  return absl::OkStatus();
}

}  // namespace wavetank::config
