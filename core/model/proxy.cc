#include "core/model/proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/ip.h"
#include "core/base/text/parse_bool.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (true) {
    const size_t at = text.find(separator);
    out.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

// Reads the metadata's fields; the first one of a wrong type is the error, as for Go's JSON decoder.
class MetadataReader {
 public:
  explicit MetadataReader(const json& metadata) : metadata_(metadata) {}

  void String(std::string_view field, std::string& out) {
    if (const json* value = Find(field)) {
      if (!value->is_string()) return Fail(field, "a string");
      out = value->get<std::string>();
    }
  }
  template <class Tag>
  void Id(std::string_view field, Name<Tag>& out) {
    std::string text;
    String(field, text);
    out = Name<Tag>(std::move(text));
  }
  // A bool that is written as a string.
  void StringBool(std::string_view field, bool& out) {
    std::string text;
    String(field, text);
    if (text.empty()) return;
    const std::optional<bool> value = ParseBool(text);
    if (!value) return Fail(field, "\"true\" or \"false\"");
    out = *value;
  }
  // Comma separated.
  void StringList(std::string_view field, std::vector<std::string>& out) {
    std::string text;
    String(field, text);
    if (!text.empty()) out = Split(text, ',');
  }
  void StringMap(std::string_view field, Labels& out) {
    const json* value = Find(field);
    if (value == nullptr) return;
    if (!value->is_object()) return Fail(field, "an object of strings");
    for (const auto& [key, item] : value->items()) {
      if (!item.is_string()) return Fail(fmt::format("{}.{}", field, key), "a string");
      out[key] = item.get<std::string>();
    }
  }
  const absl::Status& status() const { return status_; }

 private:
  const json* Find(std::string_view field) const {
    const auto it = metadata_.find(std::string(field));
    return it == metadata_.end() || it->is_null() ? nullptr : &*it;
  }
  void Fail(std::string_view field, std::string_view expected) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(fmt::format("node metadata {} must be {}", field, expected));
  }

  const json& metadata_;
  absl::Status status_;
};

absl::StatusOr<NodeMetadata> ParseMetadata(SharedJson all) {
  const json& metadata = *all;
  NodeMetadata out;
  if (metadata.is_null()) return out;
  if (!metadata.is_object()) return absl::InvalidArgumentError("node metadata must be an object");
  MetadataReader in(metadata);
  in.Id("CLUSTER_ID", out.cluster_id);
  in.Id("NETWORK", out.network);
  in.String("NAMESPACE", out.ns);
  in.String("ISTIO_VERSION", out.istio_version);
  in.String("MESH_ID", out.mesh_id);
  in.String("NAME", out.proxy_name);
  in.String("SERVICE_ACCOUNT", out.service_account);
  in.String("AUTO_REGISTER_GROUP", out.auto_register_group);
  in.String("NODE_NAME", out.node_name);
  in.String("WORKLOAD_NAME", out.workload_name);
  in.String("DOMAIN_SUFFIX", out.domain_suffix);
  in.StringMap("LABELS", out.labels);
  in.StringList("INSTANCE_IPS", out.instance_ips);
  in.StringList("REQUESTED_NETWORK_VIEW", out.requested_network_view);
  in.String("INTERCEPTION_MODE", out.interception_mode);
  in.String("ROUTER_MODE", out.router_mode);
  in.String("GENERATOR", out.generator);
  in.String("UNPRIVILEGED_POD", out.unprivileged_pod);
  in.String("IDLE_TIMEOUT", out.idle_timeout);
  in.StringBool("DNS_CAPTURE", out.dns_capture);
  in.StringBool("DNS_AUTO_ALLOCATE", out.dns_auto_allocate);
  std::string http10;
  in.String("HTTP10", http10);
  out.http10 = http10 == "1";
  in.StringBool("ENABLE_HBONE", out.enable_hbone);
  in.String("TLS_CLIENT_CERT_CHAIN", out.tls_client_cert_chain);
  in.String("TLS_CLIENT_KEY", out.tls_client_key);
  in.String("TLS_CLIENT_ROOT_CERT", out.tls_client_root_cert);
  in.String("TLS_SERVER_CERT_CHAIN", out.tls_server_cert_chain);
  in.String("TLS_SERVER_KEY", out.tls_server_key);
  in.String("TLS_SERVER_ROOT_CERT", out.tls_server_root_cert);
  if (!in.status().ok()) return in.status();
  out.raw = std::move(all);
  return out;
}

struct TypeNames {
  std::string_view short_name, url;
};
// In the order of XdsType, and behind it the type that agents send and istiod never does
// (core/xds/workload_registrar.h).
constexpr std::array<TypeNames, kXdsTypes + 1> kTypeNames{{
    {"CDS", "type.googleapis.com/envoy.config.cluster.v3.Cluster"},
    {"EDS", "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"},
    {"LDS", "type.googleapis.com/envoy.config.listener.v3.Listener"},
    {"RDS", "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"},
    {"SDS", "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"},
    {"NDS", "type.googleapis.com/istio.networking.nds.v1.NameTable"},
    {"ECDS", "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"},
    {"PCDS", "type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig"},
    {"HealthInfo", "type.googleapis.com/istio.v1.HealthInformation"},
}};

}  // namespace

std::string_view TypeUrl(XdsType type) { return kTypeNames[static_cast<size_t>(type)].url; }
std::string_view ShortTypeName(XdsType type) { return kTypeNames[static_cast<size_t>(type)].short_name; }

std::optional<XdsType> ParseTypeUrl(std::string_view url) {
  for (size_t i = 0; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i].url == url) return static_cast<XdsType>(i);
  }
  return std::nullopt;
}

bool Proxy::IsVisible(const NetworkId& network) const {
  const std::vector<std::string>& view = metadata.requested_network_view;
  return view.empty() || network.empty() || std::find(view.begin(), view.end(), network.str()) != view.end();
}

bool Proxy::CanBindToPort(bool bind_to_port, uint32_t port) const {
  if (!bind_to_port) return true;
  if (0 < port && port < 1024 && ParseBool(metadata.unprivileged_pod).value_or(false)) return false;
  // Ports of the agent's static listeners. One that the proxy does not tell counts as 0, the port of unix sockets.
  for (const char* taken : {"ENVOY_PROMETHEUS_PORT", "ENVOY_STATUS_PORT"}) {
    const auto it = metadata.raw->find(taken);
    const bool told = it != metadata.raw->end() && it->is_number();
    if ((told ? it->get<int64_t>() : 0) == static_cast<int64_t>(port)) return false;
  }
  return true;
}

absl::StatusOr<Proxy> ParseServiceNode(std::string_view node_id, SharedJson metadata) {
  absl::StatusOr<NodeMetadata> parsed = ParseMetadata(std::move(metadata));
  if (!parsed.ok()) return parsed.status();
  const std::vector<std::string> parts = Split(node_id, '~');
  if (parts.size() != 4) {
    return absl::InvalidArgumentError(
        fmt::format("node id '{}' must be '<type>~<ip>~<pod>.<namespace>~<domain>'", node_id));
  }
  Proxy proxy;
  proxy.metadata = *std::move(parsed);
  if (parts[0] == "sidecar") {
    proxy.type = NodeType::kSidecarProxy;
  } else if (parts[0] == "router") {
    proxy.type = NodeType::kRouter;
  } else {
    return absl::InvalidArgumentError(
        fmt::format("node id '{}': type '{}' is neither 'sidecar' nor 'router'", node_id, parts[0]));
  }
  const std::vector<std::string>& ips = proxy.metadata.instance_ips;
  if (!ips.empty() && std::all_of(ips.begin(), ips.end(), [](const std::string& ip) { return IsIpAddress(ip); })) {
    proxy.ip_addresses = ips;
  } else if (IsIpAddress(parts[1])) {
    proxy.ip_addresses = {parts[1]};
  } else {
    return absl::InvalidArgumentError(
        fmt::format("node id '{}': no valid IP address in it or in metadata INSTANCE_IPS", node_id));
  }
  proxy.id = parts[2];
  proxy.dns_domain = parts[3];
  // istiod: GetProxyConfigNamespace.
  proxy.config_namespace = proxy.metadata.ns;
  if (proxy.config_namespace.empty()) {
    const size_t dot = proxy.dns_domain.find('.');
    if (dot != std::string::npos) proxy.config_namespace = proxy.dns_domain.substr(0, dot);
  }
  // Its labels stay unknown until SetWorkloadLabels, which istiod calls only after it has looked for the proxy's
  // service instances: a new connection whose pod is not ready finds none by its labels (pilot/pkg/xds/ads.go,
  // computeProxyState).
  proxy.xds_node = std::string(node_id);
  return proxy;
}

}  // namespace wavetank::pilot
