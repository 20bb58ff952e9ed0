// Where a SYN ends up: pods in flat networks, cluster VIPs, load balancers, and the redirect rules of pods with a
// sidecar. The addresses of Services are told to it by each cluster's KubeProxy.
//
// Reachability. Pods of one site reach each other by pod IP, whatever their cluster. Load balancer addresses are
// reachable from everywhere over the lines between clusters. What routes, firewalls and NAT make of it: underlay.h. Any
// other address gets no answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/kube/object.h"
#include "fakes/envoy/tcp/network.h"
#include "fakes/kube/services/network_policies.h"
#include "sim/network/links.h"
#include "sim/network/underlay.h"

namespace wavetank::pilot {
struct Interception;
}

namespace wavetank::sim {

using envoysim::Acceptor;
using envoysim::IpAddress;
using envoysim::SocketAddress;
using envoysim::WorkloadId;

enum class NodeIndex : uint32_t {};  // 0: none

// A pod as the network sees it. The acceptors belong to its Envoy and applications and may be absent.
struct Workload {
  SiteId site{};
  NetworkIndex network{};
  NodeIndex node{};
  IpAddress ip;
  std::vector<IpAddress> more_ips;  // of another IP family
  NameId name = kNoName;
  kube::NamespacedName pod;                           // as its cluster knows it; without a name: it is none
  bool up = true;                                     // false: the node is gone, and nothing answers
  Acceptor* outbound = nullptr;                       // sidecar: where the application's connections are redirected
  Acceptor* inbound = nullptr;                        // sidecar: where connections from elsewhere are redirected
  const pilot::Interception* interception = nullptr;  // which connections those two get; null: all
  Acceptor* direct = nullptr;                         // gateway: whatever it listens on
  absl::flat_hash_map<uint16_t, Acceptor*> ports;     // applications
};

// One port of a Service as kube-proxy programmes it.
struct ServiceBackends {
  std::vector<SocketAddress> backends;  // ready endpoints, in order
  std::vector<NodeIndex> nodes;         // where each of them runs
  // internalTrafficPolicy Local: a client inside reaches the endpoints of its own node by the cluster IP, or none.
  bool internal_local = false;
  // externalTrafficPolicy Local: a load balancer's health checks find the nodes that have endpoints, between which it
  // balances; a node passes connections to its own endpoints alone. Clients inside the cluster reach all.
  bool external_local = false;
  // Without an endpoint a connection is dropped, not refused.
  bool dropped = false;
  // A load balancer from outside sends to one of these nodes, which its health checks found, whether the node is still
  // there or not; false: it knows at once, and sends to endpoints.
  bool checked = false;
  std::vector<NodeIndex> targets;
};

bool IsOwnAddress(const Workload& workload, const IpAddress& ip);
// The address from which it reaches `destination`: of the same IP family, if it has one.
IpAddress SourceFor(const Workload& workload, const IpAddress& destination);

class MeshNetwork final : public envoysim::Network {
 public:
  explicit MeshNetwork(Links& links) : links_(links) {}

  // Before anything else. Without one every network is a site, and nothing is cut, denied or translated.
  void SetUnderlay(Underlay underlay);
  Underlay* underlay() { return underlay_.get(); }  // null: none was set
  NetworkIndex Network(std::string_view name);
  NodeIndex Node(SiteId site, std::string_view name);
  // Its machine answers nothing, or does again.
  void SetNodeLost(NodeIndex node, bool lost);

  // The cluster's own pods have that range ("10.1.0.0/16"): what its nodes send there stays with them, even if another
  // cluster on the same network has the range as well. Of two IP families that of IPv4 is looked at.
  void SetPodRange(SiteId site, const std::string& cidr);

  // The NetworkPolicy that keeps the pod's queries from its cluster's DNS; null: none does.
  kube::ObjectRef KeepsFromDns(WorkloadId from) const;
  // A cluster whose network plugin acts upon NetworkPolicies; with `strict` on connections that stand, too. Both
  // outlive this.
  void SetPolicies(SiteId site, const fakekube::ApiServer* api, const fakekube::NetworkPolicies* policies, bool strict);

  WorkloadId Add(Workload workload);
  Workload& at(WorkloadId id) { return *workloads_[static_cast<uint32_t>(id)]; }
  void Remove(WorkloadId id);  // the address is free again; paths in use stay valid

  // Replaces what one Service of one cluster contributes. `vips` are reachable inside the cluster's site only. Where
  // two clusters' load balancers have one address, each reaches its own (kube-proxy: pkg/proxy/iptables has rules for
  // ingress addresses on every node), and all others that of the cluster that the world named first.
  struct ServiceAddresses {
    std::vector<IpAddress> vips, load_balancers;
    std::vector<IpAddress>
        unannounced;  // of load balancers that nobody tells the network of: their own cluster's alone
    std::vector<std::pair<uint16_t, ServiceBackends>> ports;
    bool of_node = false;  // `vips` are a node's own addresses
    NodeIndex node{};      // which
  };
  void SetService(SiteId site, NetworkIndex network, const std::string& key, ServiceAddresses addresses);
  void RemoveService(SiteId site, const std::string& key);
  // A load balancer's address was given back: the cloud forgets the connections through it.
  std::function<void(const IpAddress&)> on_address_gone;

  envoysim::Route Resolve(const envoysim::Origin& origin, const SocketAddress& destination, uint64_t flow) override {
    return Walk(origin, destination, flow, nullptr);
  }
  // Why the network itself keeps a connection from there: "no route leads from east to 10.2.0.5, which is in west".
  // Empty: it does not.
  struct Obstacle {
    std::string why;
    bool nobody = false;     // nothing in this world has the address
    kube::ObjectRef policy;  // the NetworkPolicy that drops it; null: none does
    std::string policy_cluster;
  };
  enum class Heed : uint8_t { kAll, kRoutes };  // kRoutes: as if there were no NetworkPolicy
  Obstacle WhyNot(const envoysim::Origin& origin, const SocketAddress& destination, Heed heed = Heed::kAll);
  // What of a workload the network looks at when it sends something: proxies of one kind meet the same obstacles on
  // their way to an address that is not their own.
  struct SenderKind {
    SiteId site{};
    NetworkIndex network{};
    NodeIndex node{};
    std::vector<bool> ranges;  // Underlay::RangesWith, of each of its addresses
    std::string ns;            // and labels, where NetworkPolicies are
    kube::Labels labels;
    friend auto operator<=>(const SenderKind&, const SenderKind&) = default;
  };
  SenderKind KindOf(WorkloadId id) const;
  // Whether segments of a connection that stands still get through.
  bool StillPasses(const envoysim::Origin& origin, const SocketAddress& dialled, const envoysim::AcceptInfo& info);
  // Whether a pod reaches a cluster's API server now.
  bool ReachesApiServer(WorkloadId from, SiteId cluster, NetworkIndex site) const;

  // The pod at an address of a network; nullptr if there is none.
  const Workload* Find(NetworkIndex network, const IpAddress& ip) const;
  size_t size() const { return by_address_.size(); }

 private:
  struct VirtualPort {
    SiteId site;
    NetworkIndex network;
    ServiceBackends backends;
    bool of_node = false;
    NodeIndex node{};       // of_node
    bool announced = true;  // of a load balancer: known outside its cluster
  };
  using AddressKey = std::pair<uint16_t, IpAddress>;  // network or site, address
  // Cluster, address and port; of load balancers kEverywhere, or kPrivate and the site within which they are known.
  using VirtualKey = std::pair<uint16_t, SocketAddress>;
  static constexpr uint16_t kEverywhere = 0xffff, kPrivate = 0x8000;
  // And the cluster, of those of its own load balancers: looked at where some address is not everybody's alike.
  static constexpr uint16_t kOwn = 0x4000;

  // Where an address leads that is no Service's of the sender's own cluster.
  struct Way {
    const VirtualPort* service = nullptr;  // null: a pod in `site` may have it
    NetworkIndex site{};
    SocketAddress to;     // after NAT
    bool routed = false;  // by a route to another site
  };
  Way Find(const Workload& from, const SocketAddress& destination) const;
  // The endpoint that a connection to `service` gets; null: none.
  const SocketAddress* Pick(const VirtualPort& service, uint64_t hash, const Workload& from, bool inside) const;
  const VirtualPort* FindPort(uint16_t scope, const SocketAddress& at) const;
  bool HasPod(NetworkIndex network, const IpAddress& ip) const {
    return by_address_.contains({static_cast<uint16_t>(network), ip});
  }
  // That nothing within reach has the address; says who has it elsewhere.
  Obstacle Unknown(const Workload& from, const SocketAddress& destination) const;
  // Of a connection that is only asked about; null: of one that is made.
  struct Inquiry {
    Heed heed = Heed::kAll;
    Obstacle found;
  };
  envoysim::Route Walk(const envoysim::Origin& origin, const SocketAddress& destination, uint64_t flow,
                       Inquiry* inquiry);
  // The route as the underlay lets it be. `wire`: the destination as the packet leaves with it.
  // `inside`: it was a Service of the sender's own cluster, whose node has resolved it.
  envoysim::Route Pass(const Workload& from, envoysim::Route route, const Way& way, const SocketAddress& wire,
                       bool inside, Inquiry* inquiry);
  // The NetworkPolicy that drops the connection, and whose it is.
  struct Refusal {
    kube::ObjectRef policy;  // null: none does
    SiteId site{};
    fakekube::PolicyDirection direction{};
  };
  // To `to`, null: to no pod, at its own `target_port`, by the address on the wire. `home`: both ends know each other's
  // labels. `strict_alone`: of those policies that cut what stands.
  Refusal RefusedByPolicy(const Workload& from, const Workload* to, bool home, const IpAddress& source,
                          const SocketAddress& wire, uint16_t target_port, bool strict_alone) const;
  // The pod that packets of a cluster's nodes come to; none if there is none.
  WorkloadId PodFrom(SiteId site, NetworkIndex network, const IpAddress& ip) const;
  envoysim::Route ToPod(const Workload& from, const envoysim::AcceptInfo& info, NetworkIndex network, SiteId via);

  struct SitePolicies {
    const fakekube::ApiServer* api = nullptr;
    const fakekube::NetworkPolicies* policies = nullptr;
    bool strict = false;
  };
  std::vector<SitePolicies> policies_;  // by SiteId, as far as they are enforced
  // The pod, if its cluster enforces policies and has some.
  kube::ObjectRef PodUnderPolicies(const Workload& workload) const;

  Links& links_;
  std::unique_ptr<Underlay> underlay_;
  std::vector<std::string> networks_;
  std::vector<std::pair<SiteId, std::string>> nodes_;  // by NodeIndex, from 1
  absl::flat_hash_set<NodeIndex> lost_;
  std::vector<std::unique_ptr<Workload>> workloads_;  // by WorkloadId; 0 is none
  absl::flat_hash_map<AddressKey, WorkloadId> by_address_;
  struct PodRange {
    SiteId site;
    uint64_t first, end;
  };
  std::vector<PodRange> pod_ranges_;
  bool ranges_shared_ = false;  // by two clusters; else the following is empty
  absl::flat_hash_map<AddressKey, WorkloadId> by_site_;
  absl::flat_hash_map<VirtualKey, VirtualPort> virtual_ports_;
  bool own_differ_ = false;  // a load balancer's address is another cluster's too, or unannounced
  struct ServiceState {
    std::vector<VirtualKey> keys;
    std::vector<IpAddress> load_balancers;
  };
  absl::flat_hash_map<std::pair<uint16_t, std::string>, ServiceState> services_;
  void Forget(SiteId site, ServiceState& state);
  uint16_t KnownIn(NetworkIndex network, const IpAddress& address) const;
};

}  // namespace wavetank::sim
