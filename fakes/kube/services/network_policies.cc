#include "fakes/kube/services/network_policies.h"

#include <algorithm>

#include "core/base/json_access.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// A selector that an API server would not have stored selects nobody.
std::optional<kube::LabelSelector> Selector(const json& selector) {
  absl::StatusOr<kube::LabelSelector> read = kube::LabelSelector::FromJson(selector);
  if (!read.ok()) return std::nullopt;
  return *std::move(read);
}

std::string_view NameOf(PolicyProtocol protocol) { return protocol == PolicyProtocol::kTcp ? "TCP" : "UDP"; }

bool HasPortNamed(const kube::Object& pod, const std::string& name, uint16_t number, PolicyProtocol protocol) {
  for (const json& container : Items(At(pod.body, {"spec", "containers"}))) {
    for (const json& port : Items(At(container, "ports"))) {
      if (Text(port, "name") == name && Number(port, "containerPort") == number &&
          Text(port, "protocol", "TCP") == NameOf(protocol))
        return true;
    }
  }
  return false;
}

bool OfItsNode(const kube::Object& pod) { return At(pod.body, {"spec", "hostNetwork"}) == true; }

}  // namespace

bool IsOfDirection(const json& policy_spec, PolicyDirection direction) {
  const json& types = Items(At(policy_spec, "policyTypes"));
  const bool ingress = direction == PolicyDirection::kIngress;
  // kubernetes: pkg/apis/networking/v1/defaults.go.
  if (types.empty()) return ingress || !Items(At(policy_spec, "egress")).empty();
  return std::any_of(types.begin(), types.end(),
                     [&](const json& type) { return type == (ingress ? "Ingress" : "Egress"); });
}

NetworkPolicies::NetworkPolicies(ApiServer& api)
    : api_(api), subscription_(api.Observe("NetworkPolicy.networking.k8s.io", [this](const Change& change) {
        const kube::ObjectMeta& meta = change.object->meta;
        auto& policies = by_namespace_[meta.ns];
        policies.erase(meta.name);
        if (change.type != kube::WatchEventType::kDeleted) {
          if (std::optional<Policy> policy = Read(change.object)) policies.emplace(meta.name, *std::move(policy));
        }
        if (policies.empty()) by_namespace_.erase(meta.ns);
      })) {}

std::vector<NetworkPolicies::Rule> NetworkPolicies::ReadRules(const json& rules, const char* peers) {
  std::vector<Rule> out;
  for (const json& each : Items(rules)) {
    Rule& rule = out.emplace_back();
    const json &list = Items(At(each, peers)), &ports = Items(At(each, "ports"));
    rule.all_peers = list.empty();
    rule.all_ports = ports.empty();
    for (const json& peer : list) {
      PeerRule read;
      if (const json& block = At(peer, "ipBlock"); !block.is_null()) {
        const absl::StatusOr<IpPrefix> range = IpPrefix::Parse(Text(block, "cidr"));
        if (!range.ok()) continue;
        read.block = Block{*range, {}};
        for (const json& except : Items(At(block, "except"))) {
          if (const auto prefix = IpPrefix::Parse(TextOf(except)); prefix.ok()) read.block->except.push_back(*prefix);
        }
      } else {
        const json &in = At(peer, "namespaceSelector"), &of = At(peer, "podSelector");
        if (!in.is_null()) read.namespaces = Selector(in);
        if (!of.is_null()) read.pods = Selector(of);
        if ((!in.is_null() && !read.namespaces) || (!of.is_null() && !read.pods)) continue;
      }
      rule.peers.push_back(std::move(read));
    }
    for (const json& port : ports) {
      const std::string protocol = Text(port, "protocol", "TCP");
      if (protocol != "TCP" && protocol != "UDP") continue;
      const json& value = At(port, "port");
      PortRule read;
      if (protocol == "UDP") read.protocol = PolicyProtocol::kUdp;
      read.every = value.is_null();
      if (value.is_string()) read.name = TextOf(value);
      if (value.is_number_integer()) {
        read.first = static_cast<uint16_t>(NumberOf(value));
        read.last = static_cast<uint16_t>(Number(port, "endPort", read.first));
      }
      rule.ports.push_back(std::move(read));
    }
  }
  return out;
}

std::optional<NetworkPolicies::Policy> NetworkPolicies::Read(const kube::ObjectRef& object) {
  const json& spec = At(object->body, "spec");
  std::optional<kube::LabelSelector> pods = Selector(At(spec, "podSelector"));
  if (!pods) return std::nullopt;
  Policy out{object, *std::move(pods), {}, {}};
  if (IsOfDirection(spec, PolicyDirection::kIngress)) out.in = ReadRules(At(spec, "ingress"), "from");
  if (IsOfDirection(spec, PolicyDirection::kEgress)) out.out = ReadRules(At(spec, "egress"), "to");
  return out;
}

bool NetworkPolicies::Lets(const Rule& rule, const Policy& policy, const Peer& other, const kube::Object* receiver,
                           uint16_t port, PolicyProtocol protocol) const {
  const bool of_port = rule.all_ports || std::any_of(rule.ports.begin(), rule.ports.end(), [&](const PortRule& each) {
                         if (each.protocol != protocol) return false;
                         if (!each.name.empty())
                           return receiver != nullptr && HasPortNamed(*receiver, each.name, port, protocol);
                         return each.every || (each.first <= port && port <= each.last);
                       });
  if (!of_port) return false;
  return rule.all_peers || std::any_of(rule.peers.begin(), rule.peers.end(), [&](const PeerRule& peer) {
           if (peer.block && other.in_every_block) return true;
           if (peer.block) {
             return peer.block->range.Contains(other.ip) &&
                    std::none_of(peer.block->except.begin(), peer.block->except.end(),
                                 [&](const IpPrefix& except) { return except.Contains(other.ip); });
           }
           if (other.pod == nullptr) return false;
           if (!peer.namespaces) {
             if (other.pod->meta.ns != policy.object->meta.ns) return false;
           } else if (!peer.namespaces->empty()) {
             const kube::ObjectRef ns = api_.Get("Namespace", {"", other.pod->meta.ns});
             kube::Labels labels = ns == nullptr ? kube::Labels() : ns->meta.labels;
             labels["kubernetes.io/metadata.name"] = other.pod->meta.ns;
             if (!peer.namespaces->Matches(labels)) return false;
           }
           return !peer.pods || peer.pods->Matches(other.pod->meta.labels);
         });
}

kube::ObjectRef NetworkPolicies::Refuses(PolicyDirection direction, const kube::Object& pod, const Peer& other,
                                         uint16_t port, PolicyProtocol protocol) const {
  const auto in_namespace = by_namespace_.find(pod.meta.ns);
  if (in_namespace == by_namespace_.end() || OfItsNode(pod)) return nullptr;
  const bool ingress = direction == PolicyDirection::kIngress;
  Peer peer = other;
  if (peer.pod != nullptr && OfItsNode(*peer.pod)) peer.pod = nullptr;
  kube::ObjectRef isolates;
  for (const auto& [name, policy] : in_namespace->second) {
    const auto& rules = ingress ? policy.in : policy.out;
    if (!rules || !policy.pods.Matches(pod.meta.labels)) continue;
    const kube::Object* const receiver = ingress ? &pod : peer.pod;
    if (std::any_of(rules->begin(), rules->end(),
                    [&, &of = policy](const Rule& rule) { return Lets(rule, of, peer, receiver, port, protocol); }))
      return nullptr;
    if (isolates == nullptr) isolates = policy.object;
  }
  return isolates;
}

kube::ObjectRef NetworkPolicies::RefusesDns(const kube::Object& pod, const IpAddress& ip) const {
  constexpr uint16_t kDns = 53;
  constexpr const char* kNamespace = "kube-system";
  // Each request of a client asks.
  if (!by_namespace_.contains(pod.meta.ns) && !by_namespace_.contains(kNamespace)) return nullptr;
  static const auto* const usual = [] {
    auto* const out = new kube::Object;
    out->kind = "Pod";
    out->meta.ns = kNamespace;
    out->meta.name = "coredns";
    out->meta.labels = {{"k8s-app", "kube-dns"}};
    return out;
  }();
  std::vector<kube::ObjectRef> servers;
  for (const kube::ObjectRef& each : api_.List("Pod", kNamespace)) {
    const auto label = each->meta.labels.find("k8s-app");
    if (label != each->meta.labels.end() && label->second == "kube-dns") servers.push_back(each);
  }
  const auto refuses = [&](const kube::Object& server) {
    const Peer to{&server, {}, true}, from{&pod, ip, false};
    if (auto out = Refuses(PolicyDirection::kEgress, pod, to, kDns, PolicyProtocol::kUdp); out != nullptr) return out;
    return Refuses(PolicyDirection::kIngress, server, from, kDns, PolicyProtocol::kUdp);
  };
  if (servers.empty()) return refuses(*usual);
  kube::ObjectRef first;
  for (const kube::ObjectRef& server : servers) {
    kube::ObjectRef refused = refuses(*server);
    if (refused == nullptr) return nullptr;
    if (first == nullptr) first = std::move(refused);
  }
  return first;
}

}  // namespace wavetank::fakekube
