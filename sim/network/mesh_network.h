// Where a SYN ends up: pods in flat networks, cluster VIPs, load balancers, and the redirect rules of pods with a
// sidecar. The addresses of Services are told to it by each cluster's KubeProxy.
//
// Reachability. Pods of one network reach each other by pod IP, whatever their cluster. Load balancer addresses are
// reachable from everywhere over the lines between sites. Any other address gets no answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fakes/envoy/tcp/network.h"
#include "sim/network/links.h"

namespace wavetank::pilot {
struct Interception;
}

namespace wavetank::sim {

using envoysim::Acceptor;
using envoysim::IpAddress;
using envoysim::SocketAddress;
using envoysim::WorkloadId;

enum class NetworkIndex : uint16_t {};
enum class NodeIndex : uint32_t {};  // 0: none

// A pod as the network sees it. The acceptors belong to its Envoy and applications and may be absent.
struct Workload {
  SiteId site{};
  NetworkIndex network{};
  NodeIndex node{};
  IpAddress ip;
  NameId name = kNoName;
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
};

class MeshNetwork final : public envoysim::Network {
 public:
  explicit MeshNetwork(Links& links) : links_(links) {}

  NetworkIndex Network(std::string_view name);
  NodeIndex Node(SiteId site, std::string_view name);

  WorkloadId Add(Workload workload);
  Workload& at(WorkloadId id) { return *workloads_[static_cast<uint32_t>(id)]; }
  void Remove(WorkloadId id);  // the address is free again; paths in use stay valid

  // Replaces what one Service of one cluster contributes. `vips` are reachable inside the cluster's site only.
  struct ServiceAddresses {
    std::vector<IpAddress> vips, load_balancers;
    std::vector<std::pair<uint16_t, ServiceBackends>> ports;
  };
  void SetService(SiteId site, NetworkIndex network, const std::string& key, ServiceAddresses addresses);
  void RemoveService(SiteId site, const std::string& key);
  // A load balancer's address was given back: the cloud forgets the connections through it.
  std::function<void(const IpAddress&)> on_address_gone;

  envoysim::Route Resolve(const envoysim::Origin& origin, const SocketAddress& destination, uint64_t flow) override;

  // The pod at an address of a network; nullptr if there is none.
  const Workload* Find(NetworkIndex network, const IpAddress& ip) const;
  size_t size() const { return by_address_.size(); }

 private:
  struct VirtualPort {
    SiteId site;
    NetworkIndex network;
    ServiceBackends backends;
  };
  using AddressKey = std::pair<uint16_t, IpAddress>;      // network or site, address
  using VirtualKey = std::pair<uint16_t, SocketAddress>;  // site, address and port; kEverywhere for load balancers
  static constexpr uint16_t kEverywhere = 0xffff;

  envoysim::Route ToPod(const Workload& from, const envoysim::AcceptInfo& info, NetworkIndex network, SiteId via);

  Links& links_;
  std::vector<std::string> networks_;
  std::vector<std::pair<SiteId, std::string>> nodes_;  // by NodeIndex, from 1
  std::vector<std::unique_ptr<Workload>> workloads_;   // by WorkloadId; 0 is none
  absl::flat_hash_map<AddressKey, WorkloadId> by_address_;
  absl::flat_hash_map<VirtualKey, VirtualPort> virtual_ports_;
  struct ServiceState {
    std::vector<VirtualKey> keys;
    std::vector<IpAddress> load_balancers;
  };
  absl::flat_hash_map<std::pair<uint16_t, std::string>, ServiceState> services_;
  void Forget(ServiceState& state);
};

}  // namespace wavetank::sim
