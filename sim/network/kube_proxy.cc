#include "sim/network/kube_proxy.h"

#include <algorithm>
#include <optional>

#include "core/base/json_access.h"
#include "core/kube/types.h"
#include "fakes/kube/services/load_balancers.h"

namespace wavetank::sim {
namespace {

constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";
// Distinguishes in the network what a Service contributes at nodes' addresses.
constexpr const char* kNodePorts = " at nodes";

const nlohmann::json& AddressesOf(const kube::ObjectRef& node) {
  return node == nullptr ? Null() : At(node->body, {"status", "addresses"});
}

}  // namespace

KubeProxy::KubeProxy(fakekube::Cluster& cluster, MeshNetwork& network, SiteId site, NetworkIndex pods, Duration delay)
    : cluster_(cluster), network_(network), site_(site), pods_(pods), delay_(delay) {
  subscriptions_.Add(cluster_.api().Observe(
      "Service", [this](const fakekube::Change& change) { Touch(change.object->meta.ns, change.object->meta.name); }));
  subscriptions_.Add(
      cluster_.api().Observe("EndpointSlice", [this](const fakekube::Change& change) { OnSlice(change); }));
  subscriptions_.Add(cluster_.api().Observe("Node", [this](const fakekube::Change& change) {
    if (change.type == kube::WatchEventType::kModified && AddressesOf(change.previous) == AddressesOf(change.object))
      return;
    for (const kube::ObjectRef& service : cluster_.api().List("Service")) Touch(service->meta.ns, service->meta.name);
  }));
}

void KubeProxy::OnSlice(const fakekube::Change& change) {
  const auto service_of = [](const kube::Object& slice) -> std::optional<kube::NamespacedName> {
    const auto label = slice.meta.labels.find(kServiceNameLabel);
    if (label == slice.meta.labels.end()) return std::nullopt;
    return kube::NamespacedName{slice.meta.ns, label->second};
  };
  const std::string& name = change.object->meta.name;
  if (change.previous != nullptr) {
    if (const auto before = service_of(*change.previous)) slices_[*before].erase(name);
  }
  const auto service = service_of(*change.object);
  if (!service) return;
  if (change.type != kube::WatchEventType::kDeleted) slices_[*service].insert(name);
  Touch(service->ns, service->name);
}

void KubeProxy::Touch(const std::string& ns, const std::string& service) {
  const bool first = dirty_.empty();
  dirty_.insert({ns, service});
  if (!first) return;
  cluster_.api().host().RunAfter(delay_, [weak = std::weak_ptr<KubeProxy*>(self_)] {
    if (const auto self = weak.lock()) (*self)->Sync();
  });
}

void KubeProxy::Sync() {
  const std::set<kube::NamespacedName> dirty = std::exchange(dirty_, {});
  for (const kube::NamespacedName& name : dirty) SyncService(name);
}

void KubeProxy::SyncService(const kube::NamespacedName& name) {
  const std::string key = name.ns + "/" + name.name;
  const kube::ObjectRef object = cluster_.api().Get("Service", name);
  if (object == nullptr) {
    network_.RemoveService(site_, key);
    network_.RemoveService(site_, key + kNodePorts);
    return;
  }
  const kube::Service& service = kube::ParseService(*object);
  MeshNetwork::ServiceAddresses addresses, node_ports;
  const auto add = [](std::string_view text, std::vector<IpAddress>* out) {
    if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text); ip.ok()) out->push_back(*ip);
  };
  for (const std::string& ip : service.cluster_ips) add(ip, &addresses.vips);
  if (service.cluster_ips.empty()) add(service.cluster_ip, &addresses.vips);
  for (const std::string& ip : service.external_ips) add(ip, &addresses.load_balancers);
  for (const auto& ingress : service.ingress) {
    if (!ingress.ip.empty()) add(ingress.ip, &addresses.load_balancers);
    if (!ingress.hostname.empty()) {
      add(fakekube::AddressOfLoadBalancerName(ingress.hostname).value_or(""), &addresses.load_balancers);
    }
  }
  for (const kube::ServicePort& port : service.ports) {
    if (port.protocol != "TCP") continue;
    ServiceBackends backends;
    for (const std::string& slice_name : slices_[name]) {
      const kube::ObjectRef slice_object = cluster_.api().Get("EndpointSlice", {name.ns, slice_name});
      if (slice_object == nullptr) continue;
      const kube::EndpointSlice& slice = kube::ParseEndpointSlice(*slice_object);
      const auto match = std::find_if(slice.ports.begin(), slice.ports.end(), [&](const auto& candidate) {
        return candidate.name.value_or("") == port.name && candidate.port.has_value();
      });
      if (match == slice.ports.end()) continue;
      for (const kube::EndpointSlice::Endpoint& endpoint : slice.endpoints) {
        if (!endpoint.ready.value_or(true)) continue;
        for (const std::string& address : endpoint.addresses) {
          if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address); ip.ok()) {
            backends.backends.push_back({*ip, static_cast<uint16_t>(*match->port)});
          }
        }
      }
    }
    if (port.node_port != 0) node_ports.ports.emplace_back(static_cast<uint16_t>(port.node_port), backends);
    addresses.ports.emplace_back(static_cast<uint16_t>(port.port), std::move(backends));
  }
  network_.SetService(site_, pods_, key, std::move(addresses));
  if (node_ports.ports.empty()) {
    network_.RemoveService(site_, key + kNodePorts);
    return;
  }
  // Every node of the cluster answers: inside by its internal address, from
  // everywhere by its external one.
  for (const kube::ObjectRef& node : cluster_.api().List("Node")) {
    for (const nlohmann::json& address : Items(AddressesOf(node))) {
      const std::string type = Text(address, "type"), ip = Text(address, "address");
      if (type == "InternalIP") add(ip, &node_ports.vips);
      if (type == "ExternalIP") add(ip, &node_ports.load_balancers);
    }
  }
  network_.SetService(site_, pods_, key + kNodePorts, std::move(node_ports));
}

}  // namespace wavetank::sim
