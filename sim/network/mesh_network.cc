#include "sim/network/mesh_network.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/assert.h"
#include "core/inject/proxy_bootstrap.h"
#include "fmt/format.h"

namespace wavetank::sim {

using envoysim::Origin;
using envoysim::Route;

namespace {

// The hash-th endpoint on a node; null: it has none.
const SocketAddress* OnNode(const ServiceBackends& service, NodeIndex node, uint64_t hash) {
  const auto count = static_cast<uint64_t>(std::count(service.nodes.begin(), service.nodes.end(), node));
  if (count == 0) return nullptr;
  uint64_t left = hash % count;
  for (size_t i = 0; i < service.nodes.size(); ++i) {
    if (service.nodes[i] == node && left-- == 0) return &service.backends[i];
  }
  return nullptr;
}

}  // namespace

// As kube-proxy or a load balancer picks it. `inside`: by the cluster IP; otherwise by an address that is known
// outside, from the cluster's own site or not.
const SocketAddress* MeshNetwork::Pick(const VirtualPort& port, uint64_t hash, const Workload& from,
                                       bool inside) const {
  const ServiceBackends& service = port.backends;
  if (service.backends.empty() || (port.of_node && lost_.contains(port.node))) return nullptr;
  const auto any = [&] { return &service.backends[hash % service.backends.size()]; };
  if (inside && service.internal_local) return OnNode(service, from.node, hash);
  if (inside || from.site == port.site) return any();
  if (service.checked) {
    if (service.targets.empty()) return nullptr;
    const NodeIndex target = service.targets[Mix64(hash) % service.targets.size()];
    if (lost_.contains(target)) return nullptr;
    return service.external_local ? OnNode(service, target, hash) : any();
  }
  if (!service.external_local) return any();
  std::vector<NodeIndex> nodes = service.nodes;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return OnNode(service, nodes[Mix64(hash) % nodes.size()], hash);
}

void MeshNetwork::SetNodeLost(NodeIndex node, bool lost) {
  if (lost) {
    lost_.insert(node);
  } else {
    lost_.erase(node);
  }
}

void MeshNetwork::SetUnderlay(Underlay underlay) {
  networks_ = underlay.site_names();
  underlay_ = std::make_unique<Underlay>(std::move(underlay));
}

NetworkIndex MeshNetwork::Network(std::string_view name) {
  const auto it = std::find(networks_.begin(), networks_.end(), name);
  if (it != networks_.end()) return NetworkIndex(static_cast<uint16_t>(it - networks_.begin()));
  WAVETANK_ASSERT(networks_.size() < kPrivate, name);  // a scope holds its number beside that bit
  networks_.emplace_back(name);
  return NetworkIndex(static_cast<uint16_t>(networks_.size() - 1));
}

NodeIndex MeshNetwork::Node(SiteId site, std::string_view name) {
  if (name.empty()) return NodeIndex{};
  const auto it = std::find_if(nodes_.begin(), nodes_.end(),
                               [&](const auto& node) { return node.first == site && node.second == name; });
  if (it != nodes_.end()) return NodeIndex(static_cast<uint32_t>(it - nodes_.begin() + 1));
  nodes_.emplace_back(site, name);
  return NodeIndex(static_cast<uint32_t>(nodes_.size()));
}

bool IsOwnAddress(const Workload& workload, const IpAddress& ip) {
  return ip == workload.ip ||
         std::find(workload.more_ips.begin(), workload.more_ips.end(), ip) != workload.more_ips.end();
}

IpAddress SourceFor(const Workload& workload, const IpAddress& destination) {
  if (destination.is_v4() == workload.ip.is_v4()) return workload.ip;
  const auto it = std::find_if(workload.more_ips.begin(), workload.more_ips.end(),
                               [&](const IpAddress& ip) { return ip.is_v4() == destination.is_v4(); });
  return it == workload.more_ips.end() ? workload.ip : *it;
}

WorkloadId MeshNetwork::Add(Workload workload) {
  if (workloads_.empty()) workloads_.push_back(nullptr);
  WAVETANK_ASSERT(workloads_.size() < UINT32_MAX, workloads_.size());
  WAVETANK_ASSERT(workload.up);  // what is added is there
  const auto id = WorkloadId(static_cast<uint32_t>(workloads_.size()));
  by_address_[{static_cast<uint16_t>(workload.network), workload.ip}] = id;
  for (const IpAddress& ip : workload.more_ips) by_address_[{static_cast<uint16_t>(workload.network), ip}] = id;
  if (ranges_shared_) by_site_[{static_cast<uint16_t>(workload.site), workload.ip}] = id;
  workloads_.push_back(std::make_unique<Workload>(std::move(workload)));
  return id;
}

void MeshNetwork::Remove(WorkloadId id) {
  WAVETANK_ASSERT(id != WorkloadId{});
  Workload& workload = at(id);
  const auto forget = [&](const IpAddress& ip) {
    const auto it = by_address_.find({static_cast<uint16_t>(workload.network), ip});
    if (it != by_address_.end() && it->second == id) by_address_.erase(it);
  };
  forget(workload.ip);
  for (const IpAddress& ip : workload.more_ips) forget(ip);
  const auto own = by_site_.find({static_cast<uint16_t>(workload.site), workload.ip});
  if (own != by_site_.end() && own->second == id) by_site_.erase(own);
  workload.up = false;
  workload.outbound = workload.inbound = workload.direct = nullptr;
  workload.interception = nullptr;
  workload.ports.clear();
}

// kube-proxy has rules of its own for each IP family (kubernetes: pkg/proxy/metaproxier). A Service whose endpoints are
// all of the other family is one that somebody wrote by hand: it keeps them.
ServiceBackends OfFamily(const ServiceBackends& backends, bool v4) {
  const auto fits = [v4](const SocketAddress& backend) { return backend.ip.is_v4() == v4; };
  const auto count = std::count_if(backends.backends.begin(), backends.backends.end(), fits);
  if (count == 0 || static_cast<size_t>(count) == backends.backends.size()) return backends;
  ServiceBackends out = backends;
  out.backends.clear();
  out.nodes.clear();
  for (size_t i = 0; i < backends.backends.size(); ++i) {
    if (!fits(backends.backends[i])) continue;
    out.backends.push_back(backends.backends[i]);
    out.nodes.push_back(backends.nodes[i]);
  }
  return out;
}

void MeshNetwork::SetService(SiteId site, NetworkIndex network, const std::string& key, ServiceAddresses addresses) {
  ServiceState& state = services_[{static_cast<uint16_t>(site), key}];
  Forget(site, state);
  const auto add = [&](uint16_t scope, const IpAddress& ip, uint16_t port, const ServiceBackends& backends,
                       bool announced = true) {
    const VirtualKey virtual_key{scope, SocketAddress{ip, port}};
    VirtualPort here{site, network, OfFamily(backends, ip.is_v4()), addresses.of_node, addresses.node, announced};
    const auto [it, fresh] = virtual_ports_.try_emplace(virtual_key, here);
    const bool shared = !fresh && it->second.site != site;
    own_differ_ = own_differ_ || shared;
    if (!fresh && (!shared || site < it->second.site)) it->second = std::move(here);
    state.keys.push_back(virtual_key);
  };
  const auto own = static_cast<uint16_t>(kOwn | static_cast<uint16_t>(site));
  own_differ_ = own_differ_ || !addresses.unannounced.empty();
  for (const auto& [port, backends] : addresses.ports) {  // order: a vector
    for (const IpAddress& vip : addresses.vips) add(static_cast<uint16_t>(site), vip, port, backends);
    for (const IpAddress& address : addresses.load_balancers) {
      add(KnownIn(network, address), address, port, backends);
      add(own, address, port, backends);
    }
    for (const IpAddress& address : addresses.unannounced) add(own, address, port, backends, false);
  }
  const std::vector<IpAddress> before = std::exchange(state.load_balancers, std::move(addresses.load_balancers));
  const std::vector<IpAddress> now = state.load_balancers;
  for (const IpAddress& ip : before) {
    if (std::find(now.begin(), now.end(), ip) == now.end() && on_address_gone) on_address_gone(ip);
  }
}

uint16_t MeshNetwork::KnownIn(NetworkIndex network, const IpAddress& address) const {
  const bool outside = underlay_ == nullptr || !underlay_->IsPrivate(network, address);
  return outside ? kEverywhere : static_cast<uint16_t>(kPrivate | static_cast<uint16_t>(network));
}

void MeshNetwork::Forget(SiteId site, ServiceState& state) {
  for (const VirtualKey& virtual_key : state.keys) {
    const auto it = virtual_ports_.find(virtual_key);
    if (it == virtual_ports_.end() || it->second.site != site) continue;
    virtual_ports_.erase(it);
    if (!own_differ_ || (virtual_key.first != kEverywhere && (virtual_key.first & kPrivate) == 0)) continue;
    // Who else has the address answers for it now.
    for (uint16_t other = 0; other < links_.sites().size(); ++other) {
      const VirtualPort* const heir = FindPort(static_cast<uint16_t>(kOwn | other), virtual_key.second);
      if (heir == nullptr || !heir->announced || KnownIn(heir->network, virtual_key.second.ip) != virtual_key.first)
        continue;
      const VirtualPort copy = *heir;  // the map may move
      virtual_ports_[virtual_key] = copy;
      break;
    }
  }
  state.keys.clear();
}

void MeshNetwork::RemoveService(SiteId site, const std::string& key) {
  const auto it = services_.find({static_cast<uint16_t>(site), key});
  if (it == services_.end()) return;
  Forget(site, it->second);
  const std::vector<IpAddress> gone = it->second.load_balancers;
  services_.erase(it);
  for (const IpAddress& ip : gone) {
    if (on_address_gone) on_address_gone(ip);
  }
}

const Workload* MeshNetwork::Find(NetworkIndex network, const IpAddress& ip) const {
  const auto it = by_address_.find({static_cast<uint16_t>(network), ip});
  return it == by_address_.end() ? nullptr : workloads_[static_cast<uint32_t>(it->second)].get();
}

void MeshNetwork::SetPodRange(SiteId site, const std::string& cidr) {
  const size_t slash = cidr.find('/');
  int bits = 0;
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(cidr.substr(0, slash));
  if (slash == std::string::npos || !absl::SimpleAtoi(cidr.substr(slash + 1, cidr.find(',') - slash - 1), &bits) ||
      !ip.ok() || !ip->is_v4() || bits < 0 || bits > 32) {
    return;
  }
  const uint64_t size = uint64_t{1} << (32 - bits), first = ip->low() & ~(size - 1);
  for (const PodRange& other : pod_ranges_) {
    ranges_shared_ = ranges_shared_ || (other.first < first + size && first < other.end);
  }
  pod_ranges_.push_back({site, first, first + size});
}

WorkloadId MeshNetwork::PodFrom(SiteId site, NetworkIndex network, const IpAddress& ip) const {
  if (ranges_shared_) {
    // A node's own routes are longer than those to other clusters (kubernetes: kubenet, CNI host-local).
    for (const PodRange& range : pod_ranges_) {
      if (range.site != site || !ip.is_v4() || ip.low() < range.first || ip.low() >= range.end) continue;
      const auto own = by_site_.find({static_cast<uint16_t>(site), ip});
      return own == by_site_.end() ? WorkloadId{} : own->second;
    }
  }
  const auto it = by_address_.find({static_cast<uint16_t>(network), ip});
  return it == by_address_.end() ? WorkloadId{} : it->second;
}

Route MeshNetwork::ToPod(const Workload& from, const envoysim::AcceptInfo& info, NetworkIndex network, SiteId via) {
  Route route;
  route.info = info;
  const WorkloadId id = PodFrom(via, network, info.destination.ip);
  Workload* to = id == WorkloadId{} ? nullptr : workloads_[static_cast<uint32_t>(id)].get();
  if (to == &from) {
    route.path = &links_.pod();
  } else {
    // A load balancer stands at its own site; the way from there to the pod is counted as part of the same line.
    route.path = &links_.Between(from.site, to != nullptr ? to->site : via);
  }
  if (to == nullptr || !to->up) return route;  // blackholed
  route.info.acceptor = id;
  if (to->inbound != nullptr && to != &from &&
      (to->interception == nullptr || to->interception->TakesInbound(info.destination))) {
    route.acceptor = to->inbound;
  } else if (const auto port = to->ports.find(info.destination.port); port != to->ports.end()) {
    route.acceptor = port->second;
  } else {
    route.acceptor = to->direct;
  }
  route.outcome = route.acceptor == nullptr ? Route::Outcome::kRefused : Route::Outcome::kAccepting;
  return route;
}

const MeshNetwork::VirtualPort* MeshNetwork::FindPort(uint16_t scope, const SocketAddress& at) const {
  const auto it = virtual_ports_.find({scope, at});
  return it == virtual_ports_.end() ? nullptr : &it->second;
}

MeshNetwork::Way MeshNetwork::Find(const Workload& from, const SocketAddress& destination) const {
  Way way{nullptr, from.network, destination};
  const auto within = [](NetworkIndex site) { return static_cast<uint16_t>(kPrivate | static_cast<uint16_t>(site)); };
  const auto take = [&](const VirtualPort* service) {
    way.service = service;
    if (service != nullptr) way.site = service->network;
    return service != nullptr;
  };
  if (underlay_ == nullptr) {
    take(FindPort(kEverywhere, destination));
    return way;
  }
  if (take(FindPort(within(from.network), destination))) return way;
  if (const std::optional<Underlay::Destination> translated = underlay_->Translate(destination)) {
    // From here on as within the site whose router does it: its load balancers, its nodes' ports, its pods.
    way.site = translated->site;
    way.to = translated->to;
    if (take(FindPort(within(translated->site), way.to))) return way;
    if (const VirtualPort* open = FindPort(kEverywhere, way.to); open != nullptr && open->network == translated->site) {
      take(open);
      return way;
    }
    for (uint16_t cluster = 0; cluster < links_.sites().size(); ++cluster) {
      const VirtualPort* node = FindPort(cluster, way.to);
      if (node != nullptr && node->of_node && node->network == translated->site && take(node)) return way;
    }
    return way;
  }
  if (take(FindPort(kEverywhere, destination)) || HasPod(from.network, destination.ip)) return way;
  for (const NetworkIndex site : underlay_->RoutesTo(from.network, destination.ip)) {
    if (!take(FindPort(within(site), destination)) && !HasPod(site, destination.ip)) continue;
    way.site = site;
    way.routed = true;
    return way;
  }
  return way;
}

MeshNetwork::Obstacle MeshNetwork::Unknown(const Workload& from, const SocketAddress& destination) const {
  const std::string& here = networks_[static_cast<uint16_t>(from.network)];
  for (uint16_t site = 0; site < networks_.size(); ++site) {
    if (site == static_cast<uint16_t>(from.network)) continue;
    if (HasPod(NetworkIndex(site), destination.ip) ||
        FindPort(static_cast<uint16_t>(kPrivate | site), destination) != nullptr) {
      return {fmt::format("no route leads from {} to {}, which is in {}", here, destination.ip.ToString(),
                          networks_[site])};
    }
  }
  for (const auto& [key, service] : services_) {  // order: whichever has it, the words are the same
    if (std::find(service.load_balancers.begin(), service.load_balancers.end(), destination.ip) !=
        service.load_balancers.end())
      return {fmt::format("the load balancer {} has no port {}", destination.ip.ToString(), destination.port)};
  }
  for (const auto& [key, service] : services_) {  // order: a Service's own address is one Service's
    const bool own = std::any_of(service.keys.begin(), service.keys.end(),
                                 [&](const VirtualKey& each) { return each.second.ip == destination.ip; });
    if (own && key.first == static_cast<uint16_t>(from.site))
      return {fmt::format("{} is Service {}, which has no port {}", destination.ip.ToString(), key.second,
                          destination.port),
              true};
  }
  if (const std::optional<Underlay::Destination> translated =
          underlay_ == nullptr ? std::nullopt : underlay_->Translate(destination)) {
    return {fmt::format("NAT of {} leads {} to {}, which nothing there has",
                        networks_[static_cast<uint16_t>(translated->site)], destination.ToString(),
                        translated->to.ToString()),
            true};
  }
  return {fmt::format("nothing that {} reaches has {}", here, destination.ip.ToString()), true};
}

void MeshNetwork::SetPolicies(SiteId site, const fakekube::ApiServer* api, const fakekube::NetworkPolicies* policies,
                              bool strict) {
  const auto index = static_cast<size_t>(site);
  if (policies_.size() <= index) policies_.resize(index + 1);
  policies_[index] = {api, policies, strict};
}

kube::ObjectRef MeshNetwork::PodUnderPolicies(const Workload& workload) const {
  const auto index = static_cast<size_t>(workload.site);
  if (index >= policies_.size() || policies_[index].policies == nullptr || !policies_[index].policies->any() ||
      workload.pod.name.empty())
    return nullptr;
  return policies_[index].api->Get("Pod", workload.pod);
}

kube::ObjectRef MeshNetwork::KeepsFromDns(WorkloadId from) const {
  const Workload& workload = *workloads_[static_cast<uint32_t>(from)];
  const kube::ObjectRef pod = PodUnderPolicies(workload);
  if (pod == nullptr) return nullptr;
  return policies_[static_cast<size_t>(workload.site)].policies->RefusesDns(*pod, workload.ip);
}

MeshNetwork::Refusal MeshNetwork::RefusedByPolicy(const Workload& from, const Workload* to, bool home,
                                                  const IpAddress& source, const SocketAddress& wire,
                                                  uint16_t target_port, bool strict_alone) const {
  using fakekube::PolicyDirection;
  if (to == &from) return {};  // a pod is never kept from itself
  const kube::ObjectRef sender = PodUnderPolicies(from), receiver = to == nullptr ? nullptr : PodUnderPolicies(*to);
  const auto refused = [&](PolicyDirection direction, const Workload& at, const kube::ObjectRef& pod,
                           const kube::ObjectRef& other, const IpAddress& ip, uint16_t port) {
    if (pod == nullptr) return Refusal{};
    const SitePolicies& own = policies_[static_cast<size_t>(at.site)];
    if (strict_alone && !own.strict) return Refusal{};
    return Refusal{own.policies->Refuses(direction, *pod, {home ? other.get() : nullptr, ip, false}, port), at.site,
                   direction};
  };
  Refusal out = refused(PolicyDirection::kEgress, from, sender, receiver, wire.ip, wire.port);
  if (out.policy != nullptr || to == nullptr) return out;
  return refused(PolicyDirection::kIngress, *to, receiver, sender, source, target_port);
}

Route MeshNetwork::Pass(const Workload& from, Route route, const Way& way, const SocketAddress& wire, bool inside,
                        Inquiry* inquiry) {
  if (!policies_.empty() && (inquiry == nullptr || inquiry->heed == Heed::kAll)) {
    const Workload* const to = route.info.acceptor == WorkloadId{} ? nullptr : &at(route.info.acceptor);
    // Between two pods of one cluster both are known by their labels, unless a load balancer stands between.
    const bool home = to != nullptr && to->site == from.site && (inside || way.service == nullptr);
    if (Refusal refusal =
            RefusedByPolicy(from, to, home, route.info.source.ip, wire, route.info.destination.port, false);
        refusal.policy != nullptr) {
      if (inquiry != nullptr) {
        const bool egress = refusal.direction == fakekube::PolicyDirection::kEgress;
        const std::string& cluster = links_.sites()[static_cast<size_t>(refusal.site)];
        inquiry->found.why =
            fmt::format("NetworkPolicy {}/{} of {} ({}) does not let {} through to {}", refusal.policy->meta.ns,
                        refusal.policy->meta.name, cluster, egress ? "egress" : "ingress",
                        route.info.source.ip.ToString(), egress ? wire.ToString() : route.info.destination.ToString());
        inquiry->found.policy = std::move(refusal.policy);
        inquiry->found.policy_cluster = cluster;
      }
      route.outcome = Route::Outcome::kBlackholed;
      return route;
    }
  }
  if (underlay_ == nullptr) return route;
  const SiteId* to_cluster = way.service == nullptr ? nullptr : &way.service->site;
  if (route.info.acceptor != WorkloadId{}) to_cluster = &at(route.info.acceptor).site;
  Crossing crossing;
  crossing.before = {route.info.source.ip, wire};
  crossing.from = from.network;
  crossing.to = way.site;
  crossing.from_cluster = from.site;
  if (to_cluster != nullptr) crossing.to_cluster = *to_cluster;
  crossing.routed = way.routed;
  if (crossing.from != crossing.to) route.info.source.ip = underlay_->SourceOutside(from.network, route.info.source.ip);
  crossing.after = {route.info.source.ip, route.info.destination};
  switch (underlay_->Judge(crossing, inquiry == nullptr ? nullptr : &inquiry->found.why)) {
    case Underlay::Fate::kPasses:
      break;
    case Underlay::Fate::kDropped:
      route.outcome = Route::Outcome::kBlackholed;
      return route;
    case Underlay::Fate::kRejected:
      route.outcome = Route::Outcome::kRefused;
      return route;
  }
  if (inquiry != nullptr && way.service == nullptr && route.outcome == Route::Outcome::kBlackholed &&
      !HasPod(way.site, way.to.ip)) {
    inquiry->found = Unknown(from, wire);
  }
  return route;
}

MeshNetwork::Obstacle MeshNetwork::WhyNot(const Origin& origin, const SocketAddress& destination, Heed heed) {
  Inquiry inquiry{heed, {}};
  Walk(origin, destination, 0, &inquiry);
  return std::move(inquiry.found);
}

MeshNetwork::SenderKind MeshNetwork::KindOf(WorkloadId id) const {
  const Workload& workload = *workloads_[static_cast<uint32_t>(id)];
  SenderKind out{workload.site, workload.network, workload.node, {}, {}, {}};
  if (const kube::ObjectRef pod = PodUnderPolicies(workload); pod != nullptr) {
    out.ns = pod->meta.ns;
    out.labels = pod->meta.labels;
  }
  if (underlay_ == nullptr) return out;
  out.ranges = underlay_->RangesWith(workload.ip);
  for (const IpAddress& ip : workload.more_ips) {
    const std::vector<bool> more = underlay_->RangesWith(ip);
    out.ranges.insert(out.ranges.end(), more.begin(), more.end());
  }
  return out;
}

bool MeshNetwork::StillPasses(const Origin& origin, const SocketAddress& dialled, const envoysim::AcceptInfo& info) {
  if (info.acceptor == WorkloadId{}) return true;
  const Workload &from = at(origin.workload), &to = at(info.acceptor);
  if (&from == &to) return true;
  Crossing crossing;
  // The address of an own Service never leaves the node.
  const bool inside = FindPort(static_cast<uint16_t>(from.site), dialled) != nullptr;
  if (!policies_.empty() && RefusedByPolicy(from, &to, from.site == to.site, info.source.ip,
                                            inside ? info.destination : dialled, info.destination.port, true)
                                    .policy != nullptr)
    return false;
  if (underlay_ == nullptr) return true;
  crossing.before = {origin.source.empty() ? from.ip : origin.source, inside ? info.destination : dialled};
  crossing.after = {info.source.ip, info.destination};
  crossing.from = from.network;
  crossing.to = to.network;
  crossing.from_cluster = from.site;
  crossing.to_cluster = to.site;
  crossing.established = true;
  return underlay_->Judge(crossing, nullptr) == Underlay::Fate::kPasses;
}

bool MeshNetwork::ReachesApiServer(WorkloadId from, SiteId cluster, NetworkIndex site) const {
  if (const kube::ObjectRef sender = PodUnderPolicies(*workloads_[static_cast<uint32_t>(from)]); sender != nullptr) {
    // Plugins differ in whether they see the Service's port or the server's own.
    const Workload& pod = *workloads_[static_cast<uint32_t>(from)];
    const fakekube::NetworkPolicies& policies = *policies_[static_cast<size_t>(pod.site)].policies;
    const fakekube::NetworkPolicies::Peer server{nullptr, ApiServerAddress(cluster), false};
    if (policies.Refuses(fakekube::PolicyDirection::kEgress, *sender, server, 6443) != nullptr &&
        policies.Refuses(fakekube::PolicyDirection::kEgress, *sender, server, 443) != nullptr)
      return false;
  }
  if (underlay_ == nullptr) return true;
  constexpr uint16_t kApiPort = 6443;
  const Workload& client = *workloads_[static_cast<uint32_t>(from)];
  const IpAddress ip = ApiServerAddress(cluster);
  Crossing crossing;
  crossing.before = crossing.after = {client.ip, {ip, kApiPort}};
  crossing.from = client.network;
  crossing.to = site;
  crossing.from_cluster = client.site;
  crossing.to_cluster = cluster;
  if (crossing.from != crossing.to) crossing.after.source = underlay_->SourceOutside(client.network, client.ip);
  return underlay_->Judge(crossing, nullptr) == Underlay::Fate::kPasses;
}

Route MeshNetwork::Walk(const Origin& origin, const SocketAddress& destination, uint64_t flow, Inquiry* inquiry) {
  const Workload& from = at(origin.workload);
  envoysim::AcceptInfo info;
  info.workload = origin.workload;
  info.source = SocketAddress{origin.source.empty() ? SourceFor(from, destination.ip) : origin.source, 0};
  info.destination = destination;

  if (origin.who == Origin::Who::kApplication && from.outbound != nullptr && !IsOwnAddress(from, destination.ip) &&
      !destination.ip.is_loopback() &&
      (from.interception == nullptr || from.interception->TakesOutbound(destination))) {
    Route route;
    route.outcome = Route::Outcome::kAccepting;
    route.acceptor = from.outbound;
    route.info = info;
    route.path = &links_.pod();
    return route;
  }
  const bool own = IsOwnAddress(from, destination.ip) && origin.who == Origin::Who::kProxy;
  if (destination.ip.is_loopback() || own) {
    // The sidecar to its own application, bound to 127.0.0.6 as inbound clusters are; a proxy that calls its own pod as
    // any other passes its inbound listener (istio: tools/istio-iptables/pkg/capture/run.go, "-o lo ! -d
    // 127.0.0.1/32").
    Route route;
    route.info = info;
    route.path = &links_.pod();
    if (own && origin.source.empty() && from.inbound != nullptr) {
      route.acceptor = from.inbound;
    } else {
      const auto port = from.ports.find(destination.port);
      route.acceptor = port == from.ports.end() ? from.direct : port->second;
    }
    route.outcome = route.acceptor == nullptr ? Route::Outcome::kRefused : Route::Outcome::kAccepting;
    return route;
  }

  Way way{FindPort(static_cast<uint16_t>(from.site), destination), from.network, destination};
  bool inside = way.service != nullptr;
  if (!inside && own_differ_) {
    way.service = FindPort(static_cast<uint16_t>(kOwn | static_cast<uint16_t>(from.site)), destination);
    if (way.service != nullptr) way.site = way.service->network;
  }
  if (way.service == nullptr) way = Find(from, destination);
  SocketAddress wire = destination;
  // A Service's endpoints may be a load balancer themselves (istiod's Service in a remote cluster), which is as far as
  // it goes.
  for (int hops = 0; way.service != nullptr; ++hops) {
    WAVETANK_ASSERT(hops <= 2, hops);  // or two Services lead to each other for ever
    const VirtualPort& service = *way.service;
    const SocketAddress* backend = Pick(service, Mix64(flow + static_cast<uint64_t>(hops)), from, inside);
    if (backend == nullptr || hops > 1) {
      // kube-proxy rejects connections to a Service without endpoints, and drops those that a policy leaves without
      // one.
      Route route;
      const bool none = service.backends.backends.empty() && !service.backends.dropped;
      if (none || hops > 1) route.outcome = Route::Outcome::kRefused;
      route.info = info;
      route.path = &links_.Between(from.site, service.site);
      return inside ? route : Pass(from, std::move(route), way, wire, false, inquiry);
    }
    info.destination = *backend;
    const bool home = HasPod(service.network, info.destination.ip);
    Way next{nullptr, service.network, info.destination};
    if (!home) next = Find(from, info.destination);
    if (home || next.service == nullptr) {
      // A Service of its own is the sender's node's doing: the pod's address is what leaves it.
      if (inside) wire = info.destination;
      return Pass(from, ToPod(from, info, service.network, service.site), way, wire, inside, inquiry);
    }
    way = next;
    wire = info.destination;
    inside = false;
  }
  info.destination = way.to;
  return Pass(from, ToPod(from, info, way.site, from.site), way, wire, false, inquiry);
}

}  // namespace wavetank::sim
