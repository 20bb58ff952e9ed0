// The meshNetworks part of the mesh ConfigMap (istio.io/api mesh/v1alpha1 MeshNetworks).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::config {

struct MeshNetworks {
  struct Endpoint {
    std::string from_cidr, from_registry;  // one of them; the registry counts where both are written
    friend bool operator==(const Endpoint&, const Endpoint&) = default;
  };
  struct Gateway {
    std::string address, registry_service_name;  // one of them; the address counts where both are written
    uint32_t port = 0;
    std::string locality;
    friend bool operator==(const Gateway&, const Gateway&) = default;
  };
  struct Network {
    std::vector<Endpoint> endpoints;
    std::vector<Gateway> gateways;
    friend bool operator==(const Network&, const Network&) = default;
  };
  std::map<std::string, Network> networks;
  friend bool operator==(const MeshNetworks&, const MeshNetworks&) = default;
};

// YAML as in key meshNetworks of the ConfigMap. One part that is invalid (a CIDR that is none, a gateway without
// port) makes the whole invalid, as in istiod: pkg/config/validation, ValidateMeshNetworks.
absl::StatusOr<MeshNetworks> ParseMeshNetworks(std::string_view yaml);

}  // namespace wavetank::config
