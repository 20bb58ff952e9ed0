#include "core/config/mesh/mesh_networks.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "core/base/ip.h"
#include "core/config/schema/dns_names.h"
#include "core/kube/text/yaml_nodes.h"

namespace wavetank::config {
namespace {

std::string Text(const YAML::Node& node, const char* camel, const char* snake) {
  const YAML::Node a = node[camel], b = node[snake];
  if (a && a.IsScalar()) return a.Scalar();
  if (b && b.IsScalar()) return b.Scalar();
  return {};
}

// The field is there with some value, be it an empty one.
bool Given(const YAML::Node& node, const char* camel, const char* snake) {
  return (node[camel] && node[camel].IsScalar()) || (node[snake] && node[snake].IsScalar());
}

// istiod: pkg/config/validation/validation.go, validateNetwork. One bad field rejects the whole.
absl::StatusOr<MeshNetworks> Read(const YAML::Node& root) {
  MeshNetworks out;
  const auto bad = [](const std::string& network, std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("meshNetworks: network '{}': {}", network, what));
  };
  const YAML::Node networks = root.IsMap() ? root["networks"] : YAML::Node();
  if (!networks || networks.IsNull()) return out;
  if (!networks.IsMap()) return absl::InvalidArgumentError("meshNetworks: networks: expected a mapping");
  for (const auto& entry : networks) {
    const std::string name = entry.first.Scalar();
    MeshNetworks::Network network;
    if (entry.second.IsMap()) {
      for (const YAML::Node& e : entry.second["endpoints"]) {
        if (!e.IsMap()) return bad(name, "an endpoint is no mapping");
        // Two fields of one oneof: the one that Istio's API lists later counts (protobuf's jsonpb), here the registry.
        MeshNetworks::Endpoint endpoint;
        const bool of_registry = Given(e, "fromRegistry", "from_registry");
        if (of_registry) {
          endpoint.from_registry = Text(e, "fromRegistry", "from_registry");
        } else if (Given(e, "fromCidr", "from_cidr")) {
          endpoint.from_cidr = Text(e, "fromCidr", "from_cidr");
        } else {
          continue;
        }
        // One address alone is accepted and covers nothing (istiod: ValidateIPSubnet against reloadMeshNetworks).
        if (!of_registry && !IpPrefix::Parse(endpoint.from_cidr).ok() && !IsIpAddress(endpoint.from_cidr)) {
          return bad(name, fmt::format("'{}' is no CIDR; write 10.0.0.0/8", endpoint.from_cidr));
        }
        if (of_registry && !IsDnsLabel(endpoint.from_registry)) {
          return bad(name,
                     fmt::format("'{}' is no cluster's name; write letters, digits and -", endpoint.from_registry));
        }
        network.endpoints.push_back(std::move(endpoint));
      }
      for (const YAML::Node& g : entry.second["gateways"]) {
        if (!g.IsMap()) return bad(name, "a gateway is no mapping");
        MeshNetworks::Gateway gateway;
        // As above; here the address counts.
        const bool by_address = Given(g, "address", "address");
        const bool by_name = !by_address && Given(g, "registryServiceName", "registry_service_name");
        if (by_address) gateway.address = Text(g, "address", "address");
        if (by_name) gateway.registry_service_name = Text(g, "registryServiceName", "registry_service_name");
        gateway.locality = Text(g, "locality", "locality");
        const std::string port = Text(g, "port", "port");
        if (!port.empty() && port.size() < 6 && port.find_first_not_of("0123456789") == std::string::npos) {
          gateway.port = static_cast<uint32_t>(std::stoul(port));
        }
        if (gateway.port == 0 || gateway.port > 65535) return bad(name, "a gateway needs a port from 1 to 65535");
        if (by_address && !IsIpAddress(gateway.address) && !IsDomainName(gateway.address)) {
          return bad(name, fmt::format("'{}' is neither an IP address nor a DNS name", gateway.address));
        }
        if (by_name && !IsDomainName(gateway.registry_service_name)) {
          return bad(name, fmt::format("'{}' is no DNS name", gateway.registry_service_name));
        }
        // One without either is accepted and leads nowhere.
        if (by_address || by_name) network.gateways.push_back(std::move(gateway));
      }
    }
    out.networks.emplace(name, std::move(network));
  }
  return out;
}

}  // namespace

absl::StatusOr<MeshNetworks> ParseMeshNetworks(std::string_view yaml) {
  try {
    const std::vector<YAML::Node> documents = kube::LoadYamlDocuments(std::string(yaml));
    return Read(documents.empty() ? YAML::Node() : documents[0]);
  } catch (const YAML::Exception& e) {
    return absl::InvalidArgumentError(
        fmt::format("meshNetworks:{}:{}: not valid YAML: {}", e.mark.line + 1, e.mark.column + 1, e.msg));
  }
}

}  // namespace wavetank::config
