// What a cluster's network plugin lets pods say to each other by NetworkPolicies (networking.k8s.io/v1; kubernetes.io,
// concepts/services-networking/network-policies; pkg/apis/networking/types.go).
//
// Rules. A policy holds for the pods of its namespace that it selects, in its directions (policyTypes; left out:
// Ingress, and Egress if it has such rules). A pod that some policy selects in a direction is isolated in it: a
// connection passes if a rule of any of them lets it. A connection needs the sender's egress and the receiver's
// ingress. Peers by labels are pods of this cluster, all others are addresses. Ports are the receiving pod's, after
// Services have been resolved, by number, range, or the name that a container gives them. Pods in their node's network
// are no pods here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ip.h"
#include "core/kube/label_selector.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

enum class PolicyDirection : uint8_t { kIngress, kEgress };
enum class PolicyProtocol : uint8_t { kTcp, kUdp };
// Whether a policy with that spec says anything in that direction.
bool IsOfDirection(const nlohmann::json& policy_spec, PolicyDirection direction);

class NetworkPolicies {
 public:
  explicit NetworkPolicies(ApiServer& api);  // outlives this
  NetworkPolicies(const NetworkPolicies&) = delete;
  NetworkPolicies& operator=(const NetworkPolicies&) = delete;

  bool any() const { return !by_namespace_.empty(); }

  // The other end of a connection, or of datagrams: a pod of this cluster, or only an address.
  struct Peer {
    const kube::Object* pod = nullptr;
    IpAddress ip;
    bool in_every_block = false;  // its address is not known: whatever block a policy names may hold it
  };
  // The first policy by name that isolates the pod, if none lets the connection with `other` through; null: it passes.
  // `port`: the receiver's. O(policies of the namespace).
  kube::ObjectRef Refuses(PolicyDirection direction, const kube::Object& pod, const Peer& other, uint16_t port,
                          PolicyProtocol protocol = PolicyProtocol::kTcp) const;
  // The one that lets no query of the pod's out to the cluster's DNS by UDP, as resolvers ask, or none in there; null:
  // they pass. Of a cluster without such pods (k8s-app: kube-dns) they are taken to be in kube-system.
  kube::ObjectRef RefusesDns(const kube::Object& pod, const IpAddress& ip) const;

 private:
  struct Block {
    IpPrefix range;
    std::vector<IpPrefix> except;
  };
  struct PeerRule {
    std::optional<Block> block;  // else by labels
    std::optional<kube::LabelSelector> namespaces, pods;
  };
  struct PortRule {
    PolicyProtocol protocol = PolicyProtocol::kTcp;
    bool every = false;  // of the protocol
    uint16_t first = 0, last = 0;
    std::string name;
  };
  struct Rule {
    bool all_peers = false, all_ports = false;
    std::vector<PeerRule> peers;
    std::vector<PortRule> ports;
  };
  struct Policy {
    kube::ObjectRef object;
    kube::LabelSelector pods;
    std::optional<std::vector<Rule>> in, out;  // by direction; none: it is not of it
  };
  static std::vector<Rule> ReadRules(const nlohmann::json& rules, const char* peers);
  static std::optional<Policy> Read(const kube::ObjectRef& object);
  bool Lets(const Rule& rule, const Policy& policy, const Peer& other, const kube::Object* receiver, uint16_t port,
            PolicyProtocol protocol) const;

  ApiServer& api_;
  std::map<std::string, std::map<std::string, Policy>, std::less<>> by_namespace_;
  Subscription subscription_;
};

}  // namespace wavetank::fakekube
