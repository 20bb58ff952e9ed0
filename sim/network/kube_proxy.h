// kube-proxy of one cluster: programmes Services' addresses into the modelled network, a while after they change. And
// the health checks of its load balancers, which tell them to which nodes they send.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "fakes/kube/cluster.h"
#include "sim/network/mesh_network.h"

namespace wavetank::sim {

// Of load balancers. Their probes come at whole intervals; so many in a row change their mind about a node.
struct HealthChecks {
  Duration interval{};  // zero: none is made, and all is known at once
  int64_t failures = 3, successes = 2;
};

class KubeProxy {
 public:
  // All must outlive it. `delay`: written -> programmed.
  KubeProxy(fakekube::Cluster& cluster, MeshNetwork& network, SiteId site, NetworkIndex pods, Duration delay,
            const HealthChecks& checks);
  // A node's machine goes, or is back: the network hears at once, load balancers when their checks have told them.
  void SetNodeLost(const std::string& node, bool lost);

  bool Settled() const { return dirty_.empty(); }

 private:
  void Touch(const std::string& ns, const std::string& service);
  void TouchAll();
  void OnSlice(const fakekube::Change& change);
  void Sync();
  void SyncService(const kube::NamespacedName& name);
  // The nodes that a load balancer's checks have found. A probe of a node succeeds if it is there and, under
  // externalTrafficPolicy Local, among `with_endpoints`, those of any of the Service's ports (kubernetes:
  // pkg/proxy/endpoints.go, LocalReadyEndpoints).
  std::vector<NodeIndex> Targets(const kube::NamespacedName& service, bool local,
                                 const std::set<NodeIndex>& with_endpoints);
  ServiceBackends BackendsOf(const kube::NamespacedName& service, const std::string& port);
  // The Service's node ports at the nodes' addresses: at all of them alike, or at each those of its own endpoints.
  void SyncNodePorts(const std::string& key, bool local,
                     const std::vector<std::pair<uint16_t, ServiceBackends>>& ports);

  fakekube::Cluster& cluster_;
  MeshNetwork& network_;
  SiteId site_;
  NetworkIndex pods_;
  Duration delay_;
  const HealthChecks checks_;
  std::set<std::string> lost_;  // nodes
  struct Health {
    bool healthy = false;
    uint64_t row = 0;  // the number of the row of probes that say otherwise; 0: there is none
  };
  uint64_t rows_ = 0;
  std::map<std::pair<kube::NamespacedName, std::string>, Health> health_;  // by Service and node
  std::set<kube::NamespacedName> dirty_;
  std::map<std::string, std::set<std::string>> node_ports_;  // by Service: what it contributes to the network at nodes
  std::map<kube::NamespacedName, std::set<std::string>> slices_;  // names of EndpointSlices by their Service
  std::shared_ptr<KubeProxy*> self_ = std::make_shared<KubeProxy*>(this);
  Subscriptions subscriptions_;
};

}  // namespace wavetank::sim
