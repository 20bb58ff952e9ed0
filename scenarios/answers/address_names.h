// Whose an address is, for messages: "cluster2's gateway istio-eastwestgateway 172.30.2.1". Knows what there was, too:
// requests go on to addresses that belong to no pod and no Service any more.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/time.h"
#include "fakes/envoy/tcp/address.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

class AddressNames {
 public:
  // `world` outlives it.
  explicit AddressNames(sim::World& world) : world_(world) {}

  // Takes note of what has its address now.
  void Learn();
  // The address itself, with its owner before it if there is or was one.
  std::string Of(const envoysim::SocketAddress& address) const;
  struct Owner {
    std::string name, cluster, pod;  // pod: as traces name it; empty: a Service's load balancer
    std::string ns, service;         // of a load balancer
  };
  // Null: no owner of it was ever learned.
  const Owner* OwnerOf(const envoysim::SocketAddress& address) const;
  // What the network itself does to connections from that pod's proxy to the address now: "no route leads ...", that
  // its pod has ended, or that nobody is behind a load balancer's; of a gateway between networks, what keeps it from
  // all that it has of the proxy's cluster ("outbound|5000||HOST"). Empty: nothing, or there is no such pod.
  std::string Obstacle(const std::string& pod, const envoysim::SocketAddress& address,
                       std::string_view cluster = {}) const;
  // The same of "172.30.2.1:15443".
  std::string Named(const std::string& address) const;

 private:
  // Of a load balancer: why nobody takes its connections now. Empty: somebody does.
  std::string NobodyBehind(const Owner& owner) const;
  std::string KeptFromGateway(const Owner& owner, std::string_view cluster) const;

  sim::World& world_;
  struct Asked {
    Time at{Duration(-1)};
    std::string answer;
  };
  mutable std::map<std::string, Asked> asked_;  // by owner's name
  std::map<std::string, Owner> owners_;         // by address without port
};

}  // namespace wavetank::scenario
