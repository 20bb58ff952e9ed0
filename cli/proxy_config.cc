#include "cli/proxy_config.h"

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/envoyapi/json_printer.h"
#include "core/gen/nds/name_table.h"
#include "core/kube/credentials/sealing.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/core/v3/extension.pb.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"
#include "replay/secrets.h"

namespace wavetank::cli {
namespace {

using pilot::XdsType;

absl::Status Unreadable(const std::string& name) {
  return absl::DataLossError(fmt::format("resource '{}' is no message of its type", name));
}

const google::protobuf::Struct* IstioMetadata(const envoy::config::core::v3::Metadata& metadata) {
  const auto it = metadata.filter_metadata().find("istio");
  return it == metadata.filter_metadata().end() ? nullptr : &it->second;
}

// "name.namespace" of the configuration object that metadata points at: "/apis/GROUP/V/namespaces/NS/KIND/NAME".
std::string ConfigName(const envoy::config::core::v3::Metadata& metadata) {
  const google::protobuf::Struct* istio = IstioMetadata(metadata);
  if (istio == nullptr) return {};
  const auto config = istio->fields().find("config");
  if (config == istio->fields().end()) return {};
  const std::vector<std::string> parts = absl::StrSplit(config->second.string_value(), '/');
  return parts.size() < 8 ? std::string() : parts[7] + "." + parts[5];
}

void ClusterRow(const envoy::config::cluster::v3::Cluster& cluster, Rows* rows) {
  // "outbound|5000|v1|helloworld.sample.svc.cluster.local"
  const std::vector<std::string> parts = absl::StrSplit(cluster.name(), '|');
  const std::string type = envoy::config::cluster::v3::Cluster::DiscoveryType_Name(cluster.type());
  if (parts.size() == 4) {
    rows->push_back({parts[3].empty() ? "" : parts[3], parts[1], parts[2].empty() ? "-" : parts[2], parts[0], type,
                     ConfigName(cluster.metadata())});
  } else {
    rows->push_back({cluster.name(), "-", "-", "-", type, ConfigName(cluster.metadata())});
  }
}

std::string AddressOf(const envoy::config::core::v3::Address& address) {
  if (address.has_pipe()) return "unix://" + address.pipe().path();
  return fmt::format("{}:{}", address.socket_address().address(), address.socket_address().port_value());
}

void EndpointRows(const envoy::config::endpoint::v3::ClusterLoadAssignment& assignment, Rows* rows) {
  for (const auto& locality : assignment.endpoints()) {
    for (const auto& endpoint : locality.lb_endpoints()) {
      std::string status = envoy::config::core::v3::HealthStatus_Name(endpoint.health_status());
      if (status == "UNKNOWN") status = "HEALTHY";
      rows->push_back({AddressOf(endpoint.endpoint().address()), status,
                       std::to_string(endpoint.load_balancing_weight().value()),
                       fmt::format("{}/{}/{}", locality.locality().region(), locality.locality().zone(),
                                   locality.locality().sub_zone()),
                       std::to_string(locality.priority()), assignment.cluster_name()});
    }
  }
}

std::string DestinationOf(const envoy::config::listener::v3::FilterChain& chain) {
  namespace hcm = envoy::extensions::filters::network::http_connection_manager::v3;
  namespace tcp = envoy::extensions::filters::network::tcp_proxy::v3;
  for (const auto& filter : chain.filters()) {
    if (filter.typed_config().Is<hcm::HttpConnectionManager>()) {
      hcm::HttpConnectionManager manager;
      if (!filter.typed_config().UnpackTo(&manager)) continue;
      if (manager.has_rds()) return "Route: " + manager.rds().route_config_name();
      std::string routes;
      for (const auto& host : manager.route_config().virtual_hosts())
        routes += (routes.empty() ? "" : ", ") + host.name();
      return "Inline Route: " + routes;
    }
    if (filter.typed_config().Is<tcp::TcpProxy>()) {
      tcp::TcpProxy proxy;
      if (!filter.typed_config().UnpackTo(&proxy)) continue;
      if (!proxy.cluster().empty()) return "Cluster: " + proxy.cluster();
      std::string clusters;
      for (const auto& c : proxy.weighted_clusters().clusters()) {
        clusters += fmt::format("{}{} ({})", clusters.empty() ? "" : ", ", c.name(), c.weight());
      }
      return "Clusters: " + clusters;
    }
  }
  return "Non-HTTP/Non-TCP";
}

std::string MatchOf(const envoy::config::listener::v3::FilterChainMatch& match) {
  std::vector<std::string> parts;
  if (match.server_names_size() > 0) parts.push_back("SNI: " + fmt::format("{}", fmt::join(match.server_names(), ",")));
  if (!match.transport_protocol().empty()) parts.push_back("Trans: " + match.transport_protocol());
  if (match.application_protocols_size() > 0) {
    parts.push_back("App: " + fmt::format("{}", fmt::join(match.application_protocols(), ",")));
  }
  if (match.has_destination_port()) parts.push_back(fmt::format("Port: {}", match.destination_port().value()));
  for (const auto& range : match.prefix_ranges()) {
    parts.push_back(fmt::format("Addr: {}/{}", range.address_prefix(), range.prefix_len().value()));
  }
  return parts.empty() ? "ALL" : fmt::format("{}", fmt::join(parts, "; "));
}

void ListenerRows(const envoy::config::listener::v3::Listener& listener, Rows* rows) {
  const std::string address = listener.address().socket_address().address();
  const std::string port = std::to_string(listener.address().socket_address().port_value());
  for (const auto& chain : listener.filter_chains()) {
    rows->push_back({address, port, MatchOf(chain.filter_chain_match()), DestinationOf(chain)});
  }
  if (listener.has_default_filter_chain()) {
    rows->push_back({address, port, "ALL", DestinationOf(listener.default_filter_chain())});
  }
}

void RouteRows(const envoy::config::route::v3::RouteConfiguration& config, Rows* rows) {
  for (const auto& host : config.virtual_hosts()) {
    // The shortest names say most.
    std::string domains;
    for (int i = 0; i < host.domains_size() && i < 2; ++i) domains += (i == 0 ? "" : ", ") + host.domains(i);
    if (host.domains_size() > 2) domains += fmt::format(" + {} more...", host.domains_size() - 2);
    for (const auto& route : host.routes()) {
      std::string match = "/*";
      if (!route.match().prefix().empty()) match = route.match().prefix() + "*";
      if (!route.match().path().empty()) match = route.match().path();
      if (!route.match().path_separated_prefix().empty()) match = route.match().path_separated_prefix() + "*";
      if (route.match().has_safe_regex()) match = "regex " + route.match().safe_regex().regex();
      std::string to = route.route().cluster();
      for (const auto& c : route.route().weighted_clusters().clusters()) {
        to += fmt::format("{}{} ({})", to.empty() ? "" : ", ", c.name(), c.weight().value());
      }
      if (route.has_redirect()) to = "redirect";
      if (route.has_direct_response()) to = fmt::format("{}", route.direct_response().status());
      rows->push_back({config.name(), domains, match, to, ConfigName(route.metadata())});
    }
  }
}

void ExtensionRow(const envoy::config::core::v3::TypedExtensionConfig& extension, Rows* rows) {
  const std::vector<std::string> type = absl::StrSplit(extension.typed_config().type_url(), '/');
  rows->push_back({extension.name(), type.back()});
}

// What a WasmPlugin's image is pulled with stands in its configuration (istiod: pilot/pkg/xds/ecds.go), and is shown to
// nobody.
void HidePullSecrets(nlohmann::ordered_json& in) {
  if (!in.is_structured()) return;
  for (auto& [key, value] : in.items()) {
    if (key == "ISTIO_META_WASM_IMAGE_PULL_SECRET" && value.is_string()) {
      value = fmt::format("({} bytes)", value.get_ref<const std::string&>().size());
    } else {
      HidePullSecrets(value);
    }
  }
}

// Texts of `from`, which is the same value but for them, in the order of `to`.
void TakeTexts(nlohmann::ordered_json& to, const nlohmann::json& from) {
  if (to.is_string() && from.is_string()) to = TextOf(from);
  if (to.is_object()) {
    for (auto& [key, value] : to.items()) TakeTexts(value, At(from, key));
  }
  if (to.is_array() && from.is_array()) {
    for (size_t i = 0; i < to.size() && i < from.size(); ++i) TakeTexts(to[i], from[i]);
  }
}

template <class Message>
absl::Status Each(const scenario::XdsSnapshot::Resources& resources, void (*add)(const Message&, Rows*), Rows* rows) {
  for (const auto& [name, bytes] : resources) {
    Message message;
    if (!message.ParseFromArray(bytes->data(), static_cast<int>(bytes->size()))) return Unreadable(name);
    add(message, rows);
  }
  return absl::OkStatus();
}

// The one resource of names, which has none itself.
absl::Status NameRows(const scenario::XdsSnapshot::Resources& resources, Rows* rows) {
  for (const auto& [name, bytes] : resources) {
    const absl::StatusOr<pilot::NameTable> table = pilot::DecodeNameTable(*bytes);
    if (!table.ok()) return table.status();
    for (const auto& [host, entry] : table->hosts)
      rows->push_back({host, fmt::format("{}", fmt::join(entry.ips, ",")), entry.registry});
  }
  return absl::OkStatus();
}

// As istiod's page ndsz and the agent's print it (istio.networking.nds.v1).
absl::Status NameTableJson(std::string_view bytes, nlohmann::ordered_json* out) {
  const absl::StatusOr<pilot::NameTable> table = pilot::DecodeNameTable(bytes);
  if (!table.ok()) return table.status();
  nlohmann::ordered_json hosts = nlohmann::ordered_json::object();
  for (const auto& [host, entry] : table->hosts) {
    nlohmann::ordered_json of = {{"ips", entry.ips}, {"registry", entry.registry}};
    if (!entry.short_name.empty()) of["shortname"] = entry.short_name;
    if (!entry.ns.empty()) of["namespace"] = entry.ns;
    hosts[host] = std::move(of);
  }
  (*out)["table"] = std::move(hosts);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Rows> ProxyConfigTable(XdsType type, const scenario::XdsSnapshot& snapshot) {
  Rows rows;
  absl::Status status;
  const auto& resources = snapshot.of(type);
  switch (type) {
    case XdsType::kCds:
      rows.push_back({"SERVICE FQDN", "PORT", "SUBSET", "DIRECTION", "TYPE", "DESTINATION RULE"});
      status = Each<envoy::config::cluster::v3::Cluster>(resources, ClusterRow, &rows);
      break;
    case XdsType::kEds:
      rows.push_back({"ENDPOINT", "STATUS", "WEIGHT", "LOCALITY", "PRIORITY", "CLUSTER"});
      status = Each<envoy::config::endpoint::v3::ClusterLoadAssignment>(resources, EndpointRows, &rows);
      break;
    case XdsType::kLds:
      rows.push_back({"ADDRESS", "PORT", "MATCH", "DESTINATION"});
      status = Each<envoy::config::listener::v3::Listener>(resources, ListenerRows, &rows);
      break;
    case XdsType::kRds:
      rows.push_back({"NAME", "DOMAINS", "MATCH", "CLUSTER", "VIRTUAL SERVICE"});
      status = Each<envoy::config::route::v3::RouteConfiguration>(resources, RouteRows, &rows);
      break;
    case XdsType::kEcds:
      rows.push_back({"NAME", "TYPE"});
      status = Each<envoy::config::core::v3::TypedExtensionConfig>(resources, ExtensionRow, &rows);
      break;
    case XdsType::kNds:
      rows.push_back({"NAME", "ADDRESSES", "REGISTRY"});
      status = NameRows(resources, &rows);
      break;
    default:
      rows.push_back({"NAME", "BYTES"});
      for (const auto& [name, bytes] : resources) rows.push_back({name, std::to_string(bytes->size())});
  }
  if (!status.ok()) return status;
  return rows;
}

namespace {

absl::StatusOr<std::string> ConfigJson(XdsType type, const scenario::XdsSnapshot& snapshot,
                                       pilot::FieldNames field_names) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  std::vector<std::string> names;
  std::vector<std::string_view> messages;
  for (const auto& [name, bytes] : snapshot.of(type)) {
    // Secrets hold keys, which are shown to nobody.
    if (type == XdsType::kSds) {
      out.push_back({{"name", name}, {"bytes", bytes->size()}});
      continue;
    }
    if (type == XdsType::kNds) {
      nlohmann::ordered_json table;
      if (absl::Status status = NameTableJson(*bytes, &table); !status.ok()) return status;
      out.push_back({{"name", name}, {"resource", std::move(table)}});
      continue;
    }
    names.push_back(name);
    messages.emplace_back(bytes->data(), bytes->size());
  }
  std::vector<nlohmann::ordered_json> opened = pilot::EnvoyJson(pilot::TypeUrl(type), messages, field_names);
  for (size_t i = 0; i < opened.size(); ++i) {
    nlohmann::ordered_json& resource = opened[i];
    TakeTexts(resource, kube::Sealed(replay::RedactedWithin(ParseJson(JsonText(resource)))));
    if (type == XdsType::kEcds) HidePullSecrets(resource);
    out.push_back({{"name", names[i]}, {"resource", std::move(resource)}});
  }
  return JsonText(out, 1);
}

}  // namespace

absl::StatusOr<std::string> ProxyConfigJson(XdsType type, const scenario::XdsSnapshot& snapshot) {
  return ConfigJson(type, snapshot, pilot::FieldNames::kCamelCase);
}

// envoy: source/server/admin/config_dump_handler.cc, MessageUtil::getJsonStringFromMessage
absl::StatusOr<std::string> AdminConfigJson(XdsType type, const scenario::XdsSnapshot& snapshot) {
  return ConfigJson(type, snapshot, pilot::FieldNames::kOriginal);
}

}  // namespace wavetank::cli
