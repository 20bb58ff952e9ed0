// A cluster's networks and the gateways to them.
#include "core/registry/kube/kube_controller.h"

#include <utility>

#include "core/config/mesh/mesh_networks.h"
#include "core/profile/changes.h"
#include "core/registry/service_conversion.h"

namespace wavetank::pilot {

NetworkId KubeController::NetworkOf(std::string_view ip, const Labels& labels) const {
  if (const auto label = labels.find(kNetworkLabel); label != labels.end() && !label->second.empty()) {
    return NetworkId(label->second);
  }
  if (!network_.empty()) return network_;
  return NetworkFromMeshNetworks(ip);
}

NetworkId KubeController::NetworkFromMeshNetworks(std::string_view ip) const {
  if (!network_from_mesh_config_.empty()) return network_from_mesh_config_;
  if (cidr_networks_.empty()) return {};
  const absl::StatusOr<IpAddress> address = IpAddress::Parse(ip);
  if (!address.ok()) return {};
  // Of nested ranges istiod takes the widest: its trie lists them from the root.
  const NetworkId* network = cidr_networks_.FindWidest(*address);
  return network == nullptr ? NetworkId() : *network;
}

void KubeController::ReloadMeshNetworks() {
  network_from_mesh_config_ = {};
  registry_service_gateways_.clear();
  const std::shared_ptr<const config::MeshNetworks> networks = networks_ ? networks_() : nullptr;
  // istiod keeps the ranges of the configuration before when the new one is empty (reloadMeshNetworks returns early).
  if (networks == nullptr || networks->networks.empty()) return;
  cidr_networks_.clear();
  for (const auto& [name, network] : networks->networks) {
    bool from_registry = false;
    for (const auto& endpoint : network.endpoints) {
      if (!endpoint.from_cidr.empty()) {
        if (const absl::StatusOr<IpPrefix> cidr = IpPrefix::Parse(endpoint.from_cidr); cidr.ok()) {
          cidr_networks_.Insert(*cidr, NetworkId(name));
        }
      }
      if (endpoint.from_registry == options_.cluster.str() && !endpoint.from_registry.empty()) from_registry = true;
    }
    if (!from_registry) continue;
    if (network_from_mesh_config_.empty()) network_from_mesh_config_ = NetworkId(name);
    for (const auto& gateway : network.gateways) {
      if (gateway.registry_service_name.empty()) continue;
      registry_service_gateways_[gateway.registry_service_name].push_back(
          {NetworkId(name), options_.cluster, "", gateway.port});
    }
  }
}

void KubeController::OnMeshNetworksChanged() {
  ReloadMeshNetworks();
  OnNetworkChange();
}

void KubeController::OnNetworkChange() {
  for (const kube::ObjectRef& pod : pods_.List()) OnPod(pod, Event::kAdd);
  for (const kube::ObjectRef& slice : slices_.List()) OnSlice(slice, Event::kAdd);
  // Stops at the first Service that changed, as istiod 1.18 does (latent bug L1: with two of them the other stays as it
  // was).
  const bool all = options_.profile.Has(Change::kNetworkChangeReachesAll);
  bool changed = false;
  for (const auto& [hostname, service] : services_map_) {
    changed |= UpdateGateways(*service);
    if (changed && !all) break;
  }
  if (all && changed) updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kNetworks)});
  if ((all || changed) && on_gateways_changed) on_gateways_changed();
  if (!all && changed) updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kNetworks)});
}

std::vector<NetworkGateway> KubeController::Gateways() const {
  std::set<NetworkGateway> all;
  for (const auto& [hostname, gateways] : gateways_by_service_) all.insert(gateways.begin(), gateways.end());
  return {all.begin(), all.end()};
}

bool KubeController::ExtractGateways(const Service& service) {
  const bool changed = UpdateGateways(service);
  if (changed && on_gateways_changed) on_gateways_changed();
  return changed;
}

bool KubeController::UpdateGateways(const Service& service) {
  const auto previous = gateways_by_service_.find(service.hostname);
  // Which networks this Service is a gateway of: by label, else by name in meshNetworks (istiod: getGatewayDetails).
  std::vector<NetworkGateway> details;
  const Labels& labels = service.attributes.labels;
  if (const auto network = labels.find(kNetworkLabel); network != labels.end() && !network->second.empty()) {
    uint32_t port = kDefaultNetworkGatewayPort;
    if (const auto label = labels.find(kGatewayPortLabel); label != labels.end()) {
      if (const std::optional<int> number = ParseWholeNumber(label->second)) port = static_cast<uint32_t>(*number);
    }
    NetworkGateway gateway{NetworkId(network->second), {}, "", port};
    if (!options_.profile.Has(Change::kGatewayPortListed)) {
      details.push_back(gateway);
    } else {
      // What the Service does not list is not served there.
      constexpr uint32_t kHbonePort = 15008;
      if (service.FindPort(static_cast<int>(port)) == nullptr) gateway.port = 0;
      if (service.FindPort(static_cast<int>(kHbonePort)) != nullptr) gateway.hbone_port = kHbonePort;
      if (gateway.port != 0 || gateway.hbone_port != 0) details.push_back(gateway);
    }
  } else if (const auto by_name = registry_service_gateways_.find(service.hostname);
             by_name != registry_service_gateways_.end()) {
    details = by_name->second;
  }
  if (previous == gateways_by_service_.end() && details.empty()) return false;

  std::set<NetworkGateway> gateways;
  const auto addresses = service.attributes.cluster_external_addresses.find(options_.cluster);
  const auto ports = service.attributes.cluster_external_ports.find(options_.cluster);
  if (addresses != service.attributes.cluster_external_addresses.end()) {
    for (const std::string& address : addresses->second) {
      for (NetworkGateway gateway : details) {
        if (ports != service.attributes.cluster_external_ports.end()) {
          const auto node_port = ports->second.find(gateway.port);
          if (node_port != ports->second.end()) gateway.port = node_port->second;
        }
        gateway.cluster = options_.cluster;
        gateway.addr = address;
        gateways.insert(gateway);
      }
    }
  }
  const bool changed = previous == gateways_by_service_.end() ? !gateways.empty() : previous->second != gateways;
  if (gateways.empty()) {
    gateways_by_service_.erase(service.hostname);
  } else {
    gateways_by_service_[service.hostname] = std::move(gateways);
  }
  return changed;
}

}  // namespace wavetank::pilot
