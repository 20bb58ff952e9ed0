#include "serve/admin/config_dump.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "core/agent/secret_manager.h"
#include "core/base/json_access.h"
#include "core/envoyapi/json_printer.h"
#include "core/kube/time_format.h"
#include "core/profile/releases.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "serve/grpc/bootstrap.h"
#include "sim/pod_process.h"

namespace wavetank::serve {
namespace {

using Json = nlohmann::ordered_json;
using pilot::XdsType;

constexpr char kSecret[] = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
constexpr std::string_view kRedacted = "[redacted]";

Json Section(const char* name) { return {{"@type", std::string("type.googleapis.com/envoy.admin.v3.") + name}}; }

int64_t UnixSeconds(Time time) { return kWorldEpochUnixSeconds + time.time_since_epoch() / std::chrono::seconds(1); }
std::string Date(Time time) { return kube::FormatRfc3339(UnixSeconds(time)); }

// Resources of a type with their names, in the form of the admin interface.
std::vector<std::pair<std::string, Json>> Resources(const scenario::XdsSnapshot& held, XdsType type) {
  std::vector<std::string_view> bytes;
  std::vector<std::pair<std::string, Json>> out;
  for (const auto& [name, resource] : held.of(type)) {
    bytes.emplace_back(*resource);
    out.emplace_back(name, Json());
  }
  std::vector<Json> json = pilot::EnvoyJson(pilot::TypeUrl(type), bytes, pilot::FieldNames::kOriginal);
  for (size_t i = 0; i < json.size() && i < out.size(); ++i) out[i].second = std::move(json[i]);
  return out;
}

// Without an Envoy that runs what was sent is all that is known.
template <class Names>
std::set<std::string> Active(const sim::PodProcess& pod, Names names) {
  if (pod.envoy() == nullptr || !pod.envoy()->running()) return {};
  const std::vector<std::string> all = names(*pod.envoy());
  return {all.begin(), all.end()};
}

Json Bootstrap(const sim::PodProcess& pod) {
  Json out = Section("BootstrapConfigDump");
  pilot::ProxyBootstrap proxy = *pod.bootstrap();
  proxy.metadata = pod.node().metadata;
  absl::StatusOr<Json> bootstrap = MakeBootstrap(proxy, {});
  if (!bootstrap.ok()) return out;
  out["bootstrap"] = *std::move(bootstrap);
  // What the binary says of itself; istioctl prints it.
  if (const int minor = pilot::EnvoyMinorOf(Text(proxy.metadata, "ISTIO_VERSION")); minor != 0) {
    Json& node = out["bootstrap"]["node"];
    node["user_agent_name"] = "envoy";
    node["user_agent_build_version"] = {{"version", {{"major_number", 1}, {"minor_number", minor}}},
                                        {"metadata", {{"revision.status", "Clean"}, {"build.type", "RELEASE"}}}};
  }
  return out;
}

Json Clusters(const scenario::XdsSnapshot& held) {
  Json out = Section("ClustersConfigDump");
  out["version_info"] = held.version(XdsType::kCds);
  Json list = Json::array();
  for (auto& [name, cluster] : Resources(held, XdsType::kCds)) {
    list.push_back({{"version_info", held.version(XdsType::kCds)}, {"cluster", std::move(cluster)}});
  }
  out["dynamic_active_clusters"] = std::move(list);
  return out;
}

Json Endpoints(const scenario::XdsSnapshot& held) {
  Json out = Section("EndpointsConfigDump");
  Json list = Json::array();
  for (auto& [name, assignment] : Resources(held, XdsType::kEds)) {
    list.push_back({{"version_info", held.version(XdsType::kEds)}, {"endpoint_config", std::move(assignment)}});
  }
  out["dynamic_endpoint_configs"] = std::move(list);
  return out;
}

Json Listeners(const scenario::XdsSnapshot& held) {
  Json out = Section("ListenersConfigDump");
  out["version_info"] = held.version(XdsType::kLds);
  Json list = Json::array();
  for (auto& [name, listener] : Resources(held, XdsType::kLds)) {
    list.push_back(
        {{"name", name},
         {"active_state", {{"version_info", held.version(XdsType::kLds)}, {"listener", std::move(listener)}}}});
  }
  out["dynamic_listeners"] = std::move(list);
  return out;
}

// A route configuration that no listener names any more is gone from an Envoy, though nothing told it so.
Json Routes(const sim::PodProcess& pod, const scenario::XdsSnapshot& held) {
  const std::set<std::string> active = Active(pod, [](const envoysim::Envoy& envoy) { return envoy.RouteNames(); });
  Json out = Section("RoutesConfigDump");
  Json list = Json::array();
  for (auto& [name, route] : Resources(held, XdsType::kRds)) {
    if (!active.empty() && !active.contains(name)) continue;
    list.push_back({{"version_info", held.version(XdsType::kRds)}, {"route_config", std::move(route)}});
  }
  out["dynamic_route_configs"] = std::move(list);
  return out;
}

Json SecretEntry(const std::string& name, Json secret) {
  Json named{{"@type", kSecret}, {"name", name}};
  for (auto& [key, value] : secret.items()) named[key] = std::move(value);
  return {{"name", name}, {"version_info", "1"}, {"secret", std::move(named)}};
}
Json Inline(std::string_view text) {
  return {{"inline_bytes", absl::Base64Escape(absl::string_view(text.data(), text.size()))}};
}

std::string ChainPem(const wavetank::agent::SecretManager& agent) {
  std::string out;
  for (const x509::CertificateRef& certificate : agent.chain()) out += certificate->ToPem();
  return out;
}

// The workload's own come from its agent, gateways' credentials from istiod.
Json Secrets(const sim::PodProcess& pod, const scenario::XdsSnapshot& held) {
  Json active = Json::array();
  if (const wavetank::agent::SecretManager* const agent = pod.agent(); agent != nullptr && !agent->chain().empty()) {
    active.push_back(SecretEntry(
        "default",
        {{"tls_certificate", {{"certificate_chain", Inline(ChainPem(*agent))}, {"private_key", Inline(kRedacted)}}}}));
    if (!agent->roots_pem().empty()) {
      active.push_back(SecretEntry("ROOTCA", {{"validation_context", {{"trusted_ca", Inline(agent->roots_pem())}}}}));
    }
  }
  for (auto& [name, secret] : Resources(held, XdsType::kSds)) {
    if (!secret.is_object()) continue;
    if (secret.contains("tls_certificate")) secret["tls_certificate"]["private_key"] = Inline(kRedacted);
    secret.erase("@type");
    secret.erase("name");
    active.push_back(SecretEntry(name, std::move(secret)));
  }
  Json out = Section("SecretsConfigDump");
  out["dynamic_active_secrets"] = std::move(active);
  return out;
}

void HidePullSecrets(Json& in) {
  if (!in.is_structured()) return;
  for (auto& [key, value] : in.items()) {
    if (key == "ISTIO_META_WASM_IMAGE_PULL_SECRET") {
      value = "<Redacted>";
    } else {
      HidePullSecrets(value);
    }
  }
}

Json Extensions(const scenario::XdsSnapshot& held) {
  Json out = Section("EcdsConfigDump");
  Json list = Json::array();
  for (auto& [name, extension] : Resources(held, XdsType::kEcds)) {
    HidePullSecrets(extension);
    list.push_back({{"version_info", held.version(XdsType::kEcds)}, {"ecds_filter", std::move(extension)}});
  }
  out["ecds_filters"] = std::move(list);
  return out;
}

Json AddressJson(const std::string& address) {
  if (address.starts_with("unix://")) return {{"pipe", {{"path", address.substr(7)}}}};
  const size_t colon = address.rfind(':');
  int32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return {{"socket_address", {{"address", address}}}};
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return {{"socket_address", {{"address", host}, {"port_value", port}}}};
}

std::map<std::string, std::vector<envoysim::EndpointStatus>> HostsByCluster(const sim::PodProcess& pod) {
  std::map<std::string, std::vector<envoysim::EndpointStatus>> out;
  if (pod.envoy() == nullptr) return out;
  for (const std::string& name : pod.envoy()->ClusterNames()) out[name];
  for (envoysim::EndpointStatus& host : pod.envoy()->Endpoints()) out[host.cluster].push_back(std::move(host));
  return out;
}

Json LocalityJson(const std::string& label) {
  Json out = Json::object();
  size_t begin = 0;
  for (const char* part : {"region", "zone", "sub_zone"}) {
    const size_t end = std::min(label.find('/', begin), label.size());
    if (end > begin) out[part] = label.substr(begin, end - begin);
    if (end == label.size()) break;
    begin = end + 1;
  }
  return out;
}

}  // namespace

Json ProxyConfigDump(const sim::PodProcess& pod, const scenario::XdsSnapshot& held, bool include_eds) {
  Json configs = Json::array({Bootstrap(pod), Clusters(held)});
  if (include_eds) configs.push_back(Endpoints(held));
  configs.push_back(Listeners(held));
  configs.push_back(Section("ScopedRoutesConfigDump"));
  configs.push_back(Routes(pod, held));
  configs.push_back(Secrets(pod, held));
  if (!held.of(XdsType::kEcds).empty()) configs.push_back(Extensions(held));
  return {{"configs", std::move(configs)}};
}

Json ProxyClusters(const sim::PodProcess& pod) {
  Json statuses = Json::array();
  for (const auto& [name, hosts] : HostsByCluster(pod)) {
    Json status{{"name", name}, {"added_via_api", true}};
    Json list = Json::array();
    for (const envoysim::EndpointStatus& host : hosts) {
      Json health{{"eds_health_status", host.healthy ? "HEALTHY" : "UNHEALTHY"}};
      for (const auto& [set, flag] : {std::pair{host.failed_active_hc, "failed_active_health_check"},
                                      {host.outlier_ejected, "failed_outlier_check"},
                                      {host.degraded_active_hc, "failed_active_degraded_check"},
                                      {host.pending_dynamic_removal, "pending_dynamic_removal"},
                                      {host.pending_active_hc, "pending_active_hc"},
                                      {host.excluded_via_immediate_hc_fail, "excluded_via_immediate_hc_fail"},
                                      {host.active_hc_timeout, "active_hc_timeout"}}) {
        if (set) health[flag] = true;
      }
      Json entry{{"address", AddressJson(host.address)}, {"health_status", std::move(health)}, {"weight", host.weight}};
      if (host.priority != 0) entry["priority"] = host.priority;
      entry["locality"] = LocalityJson(host.locality);
      list.push_back(std::move(entry));
    }
    if (!list.empty()) status["host_statuses"] = std::move(list);
    status["observability_name"] = name;
    statuses.push_back(std::move(status));
  }
  return {{"cluster_statuses", std::move(statuses)}};
}

std::string ProxyClustersText(const sim::PodProcess& pod) {
  std::string out;
  for (const auto& [name, hosts] : HostsByCluster(pod)) {
    out += fmt::format("{0}::observability_name::{0}\n{0}::added_via_api::true\n", name);
    for (const envoysim::EndpointStatus& host : hosts) {
      const std::string prefix = name + "::" + host.address;
      const Json locality = LocalityJson(host.locality);
      const std::string flags = envoysim::HealthFlags(host);
      out += fmt::format("{}::health_flags::{}\n", prefix, flags.empty() ? "healthy" : flags);
      out += fmt::format("{}::weight::{}\n", prefix, host.weight);
      for (const char* part : {"region", "zone", "sub_zone"}) {
        out +=
            fmt::format("{}::{}::{}\n", prefix, part, locality.is_object() ? locality.value(part, "") : std::string());
      }
      out += fmt::format("{}::priority::{}\n", prefix, host.priority);
    }
  }
  return out;
}

Json ProxyCerts(const sim::PodProcess& pod) {
  Json out{{"certificates", Json::array()}};
  const wavetank::agent::SecretManager* const agent = pod.agent();
  if (agent == nullptr || agent->chain().empty()) return out;
  const auto describe = [](const x509::Certificate& certificate) {
    Json names = Json::array();
    for (const std::string& uri : certificate.sans().uris) names.push_back({{"uri", uri}});
    for (const std::string& dns : certificate.sans().dns_names) names.push_back({{"dns", dns}});
    return Json{{"path", "<inline>"},
                {"serial_number", certificate.serial()},
                {"subject_alt_names", std::move(names)},
                {"valid_from", Date(certificate.not_before())},
                {"expiration_time", Date(certificate.not_after())}};
  };
  Json chain = Json::array({describe(*agent->chain().front())}), ca = Json::array();
  ca.push_back(describe(*agent->chain().back()));
  out["certificates"].push_back({{"ca_cert", std::move(ca)}, {"cert_chain", std::move(chain)}});
  return out;
}

}  // namespace wavetank::serve
