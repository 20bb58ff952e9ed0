#include "sim/network/kube_proxy.h"

#include <algorithm>
#include <optional>

#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/base/json_access.h"
#include "core/kube/types.h"
#include "fakes/kube/services/load_balancers.h"
#include "fakes/kube/services/metal_lb.h"

namespace wavetank::sim {
namespace {

constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";
// Distinguishes in the network what a Service contributes at nodes' addresses.
constexpr const char* kNodePorts = " at nodes";

const nlohmann::json& AddressesOf(const kube::ObjectRef& node) {
  return node == nullptr ? Null() : At(node->body, {"status", "addresses"});
}

void AddAddress(std::string_view text, std::vector<IpAddress>* out) {
  if (const absl::StatusOr<IpAddress> ip = IpAddress::Parse(text); ip.ok()) out->push_back(*ip);
}

// The endpoints that a node passes connections to under externalTrafficPolicy Local: its own.
ServiceBackends OnNode(const ServiceBackends& all, NodeIndex node) {
  ServiceBackends out;
  out.dropped = true;
  for (size_t i = 0; i < all.backends.size(); ++i) {
    if (all.nodes[i] != node) continue;
    out.backends.push_back(all.backends[i]);
    out.nodes.push_back(node);
  }
  return out;
}

}  // namespace

KubeProxy::KubeProxy(fakekube::Cluster& cluster, MeshNetwork& network, SiteId site, NetworkIndex pods, Duration delay,
                     const HealthChecks& checks)
    : cluster_(cluster), network_(network), site_(site), pods_(pods), delay_(delay), checks_(checks) {
  subscriptions_.Add(cluster_.api().Observe(
      "Service", [this](const fakekube::Change& change) { Touch(change.object->meta.ns, change.object->meta.name); }));
  subscriptions_.Add(
      cluster_.api().Observe("EndpointSlice", [this](const fakekube::Change& change) { OnSlice(change); }));
  for (const char* kind :
       {fakekube::kMetalLbPool, fakekube::kMetalLbAdvertisements[0], fakekube::kMetalLbAdvertisements[1]}) {
    subscriptions_.Add(cluster_.api().Observe(kind, [this](const fakekube::Change&) { TouchAll(); }));
  }
  subscriptions_.Add(cluster_.api().Observe("Node", [this](const fakekube::Change& change) {
    if (change.type == kube::WatchEventType::kModified && AddressesOf(change.previous) == AddressesOf(change.object))
      return;
    TouchAll();
  }));
}

void KubeProxy::TouchAll() {
  for (const kube::ObjectRef& service : cluster_.api().List("Service")) Touch(service->meta.ns, service->meta.name);
}

void KubeProxy::SetNodeLost(const std::string& node, bool lost) {
  if (lost) {
    lost_.insert(node);
  } else {
    lost_.erase(node);
  }
  network_.SetNodeLost(network_.Node(site_, node), lost);
  if (checks_.interval > Duration::zero()) TouchAll();
}

std::vector<NodeIndex> KubeProxy::Targets(const kube::NamespacedName& service, bool local,
                                          const std::set<NodeIndex>& with_endpoints) {
  std::vector<NodeIndex> out;
  for (const kube::ObjectRef& node : cluster_.api().List("Node")) {
    const std::string& name = node->meta.name;
    const NodeIndex index = network_.Node(site_, name);
    const bool answers = !lost_.contains(name) && (!local || with_endpoints.contains(index));
    Health& health = health_.try_emplace({service, name}, Health{answers, 0}).first->second;
    if (health.healthy == answers) {
      health.row = 0;
    } else if (health.row == 0) {
      health.row = ++rows_;
      const Duration since = cluster_.api().host().Now().time_since_epoch();
      const int64_t in_a_row = answers ? checks_.successes : checks_.failures;
      WAVETANK_ASSERT(checks_.interval > Duration::zero(), checks_.interval);
      WAVETANK_ASSERT(in_a_row > 0, in_a_row);
      const Duration last = checks_.interval - since % checks_.interval + (in_a_row - 1) * checks_.interval;
      const std::weak_ptr<KubeProxy*> self(self_);
      cluster_.api().host().RunAfter(last, [self, service, name, answers, row = health.row] {
        const auto proxy = self.lock();
        if (!proxy) return;
        const auto it = (*proxy)->health_.find({service, name});
        if (it == (*proxy)->health_.end() || it->second.row != row) return;
        it->second = {answers, 0};
        (*proxy)->Touch(service.ns, service.name);
      });
    }
    if (health.healthy) out.push_back(index);
  }
  return out;
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
  cluster_.api().host().RunAfter(delay_ + BuggifyDelay(BuggifyPoint::kKubeProxyLate),
                                 [weak = std::weak_ptr<KubeProxy*>(self_)] {
                                   if (const auto self = weak.lock()) (*self)->Sync();
                                 });
}

void KubeProxy::Sync() {
  WAVETANK_ASSERT(!dirty_.empty());  // it was asked for, by the first of them
  const std::set<kube::NamespacedName> dirty = std::exchange(dirty_, {});
  for (const kube::NamespacedName& name : dirty) SyncService(name);
}

void KubeProxy::SyncService(const kube::NamespacedName& name) {
  const std::string key = name.ns + "/" + name.name;
  const kube::ObjectRef object = cluster_.api().Get("Service", name);
  if (object == nullptr) {
    network_.RemoveService(site_, key);
    std::erase_if(health_, [&](const auto& each) { return each.first.first == name; });
    return SyncNodePorts(key, false, {});
  }
  const kube::Service& service = kube::ParseService(*object);
  const nlohmann::json& spec = At(object->body, "spec");
  const bool external_local = Text(spec, "externalTrafficPolicy") == "Local";
  MeshNetwork::ServiceAddresses addresses;
  for (const std::string& ip : service.cluster_ips) AddAddress(ip, &addresses.vips);
  if (service.cluster_ips.empty()) AddAddress(service.cluster_ip, &addresses.vips);
  for (const std::string& ip : service.external_ips) AddAddress(ip, &addresses.load_balancers);
  for (const auto& ingress : service.ingress) {
    if (!ingress.ip.empty())
      AddAddress(ingress.ip, fakekube::AnnouncesByMetalLb(cluster_.api(), ingress.ip) ? &addresses.load_balancers
                                                                                      : &addresses.unannounced);
    if (!ingress.hostname.empty()) {
      AddAddress(fakekube::AddressOfLoadBalancerName(ingress.hostname).value_or(""), &addresses.load_balancers);
    }
  }
  std::vector<std::pair<uint16_t, ServiceBackends>> node_ports;
  std::set<NodeIndex> with_endpoints;
  for (const kube::ServicePort& port : service.ports) {
    if (port.protocol != "TCP") continue;
    ServiceBackends backends = BackendsOf(name, port.name);
    backends.internal_local = Text(spec, "internalTrafficPolicy") == "Local";
    backends.external_local = external_local;
    with_endpoints.insert(backends.nodes.begin(), backends.nodes.end());
    if (port.node_port != 0) node_ports.emplace_back(static_cast<uint16_t>(port.node_port), backends);
    addresses.ports.emplace_back(static_cast<uint16_t>(port.port), std::move(backends));
  }
  if (checks_.interval > Duration::zero() && service.type == "LoadBalancer") {
    const std::vector<NodeIndex> targets = Targets(name, external_local, with_endpoints);
    for (auto& [port, backends] : addresses.ports) {
      backends.checked = true;
      backends.targets = targets;
    }
  }
  network_.SetService(site_, pods_, key, std::move(addresses));
  SyncNodePorts(key, external_local, node_ports);
}

ServiceBackends KubeProxy::BackendsOf(const kube::NamespacedName& service, const std::string& port) {
  ServiceBackends out;
  for (const std::string& slice_name : slices_[service]) {
    const kube::ObjectRef object = cluster_.api().Get("EndpointSlice", {service.ns, slice_name});
    if (object == nullptr) continue;
    const kube::EndpointSlice& slice = kube::ParseEndpointSlice(*object);
    const auto match = std::find_if(slice.ports.begin(), slice.ports.end(), [&](const auto& candidate) {
      return candidate.name.value_or("") == port && candidate.port.has_value();
    });
    if (match == slice.ports.end()) continue;
    const nlohmann::json& written = Items(At(object->body, "endpoints"));
    for (size_t i = 0; i < slice.endpoints.size(); ++i) {
      const kube::EndpointSlice::Endpoint& endpoint = slice.endpoints[i];
      if (!endpoint.ready.value_or(true)) continue;
      const std::string node = i < written.size() ? Text(written[i], "nodeName") : "";
      for (const std::string& address : endpoint.addresses) {
        const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address);
        if (!ip.ok()) continue;
        out.backends.push_back({*ip, static_cast<uint16_t>(*match->port)});
        out.nodes.push_back(network_.Node(site_, node));
      }
    }
  }
  return out;
}

// Every node of the cluster answers: inside by its internal address, from everywhere by its external one.
void KubeProxy::SyncNodePorts(const std::string& key, bool local,
                              const std::vector<std::pair<uint16_t, ServiceBackends>>& ports) {
  const std::set<std::string> before = std::exchange(node_ports_[key], {});
  std::map<std::string, MeshNetwork::ServiceAddresses> now;
  for (const kube::ObjectRef& node : cluster_.api().List("Node")) {
    if (ports.empty()) break;
    const std::string& name = node->meta.name;
    MeshNetwork::ServiceAddresses& addresses = now[key + kNodePorts + "/" + name];
    addresses.of_node = true;
    addresses.node = network_.Node(site_, name);
    for (const nlohmann::json& address : Items(AddressesOf(node))) {
      const std::string type = Text(address, "type"), ip = Text(address, "address");
      if (type == "InternalIP") AddAddress(ip, &addresses.vips);
      if (type == "ExternalIP") AddAddress(ip, &addresses.load_balancers);
    }
    for (const auto& [port, backends] : ports) {
      addresses.ports.emplace_back(port, local ? OnNode(backends, network_.Node(site_, name)) : backends);
    }
  }
  // What goes goes first: an address may be another node's now.
  for (const std::string& name : before) {
    if (!now.contains(name)) network_.RemoveService(site_, name);
  }
  for (auto& [name, addresses] : now) {
    node_ports_[key].insert(name);
    network_.SetService(site_, pods_, name, std::move(addresses));
  }
  if (now.empty()) node_ports_.erase(key);
}

}  // namespace wavetank::sim
