// kube-proxy of one cluster: programmes Services' addresses into the modelled network, a while after they change.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "fakes/kube/cluster.h"
#include "sim/network/mesh_network.h"

namespace wavetank::sim {

class KubeProxy {
 public:
  // All must outlive it. `delay`: written -> programmed.
  KubeProxy(fakekube::Cluster& cluster, MeshNetwork& network, SiteId site, NetworkIndex pods, Duration delay);

  bool Settled() const { return dirty_.empty(); }

 private:
  void Touch(const std::string& ns, const std::string& service);
  void OnSlice(const fakekube::Change& change);
  void Sync();
  void SyncService(const kube::NamespacedName& name);
  ServiceBackends BackendsOf(const kube::NamespacedName& service, const std::string& port);
  // The Service's node ports at the nodes' addresses: at all of them alike, or at each those of its own endpoints.
  void SyncNodePorts(const std::string& key, bool local,
                     const std::vector<std::pair<uint16_t, ServiceBackends>>& ports);

  fakekube::Cluster& cluster_;
  MeshNetwork& network_;
  SiteId site_;
  NetworkIndex pods_;
  Duration delay_;
  std::set<kube::NamespacedName> dirty_;
  std::map<std::string, std::set<std::string>> node_ports_;  // by Service: what it contributes to the network at nodes
  std::map<kube::NamespacedName, std::set<std::string>> slices_;  // names of EndpointSlices by their Service
  std::shared_ptr<KubeProxy*> self_ = std::make_shared<KubeProxy*>(this);
  Subscriptions subscriptions_;
};

}  // namespace wavetank::sim
