// NetworkPolicies that cut what the mesh needs, or name nobody: told at the policy, whether requests show it or not.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/kube/label_selector.h"
#include "core/model/labels.h"
#include "fakes/kube/services/network_policies.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::check {
namespace {

using fakekube::PolicyDirection;
using nlohmann::json;

// Label selectors as policies have them; nothing: an expression that is not read here.
std::optional<bool> SelectorTakes(const json& selector, const kube::Labels& labels) {
  const auto read = kube::LabelSelector::FromJson(selector);
  if (!read.ok()) return std::nullopt;
  return read->Matches(labels);
}

// A rule lets the port through; a name counts as a yes.
bool HasPort(const json& rule, int port, std::string_view protocol = "TCP") {
  const json& ports = Items(At(rule, "ports"));
  if (ports.empty()) return true;
  return std::any_of(ports.begin(), ports.end(), [&](const json& p) {
    if (Text(p, "protocol", "TCP") != protocol) return false;
    if (!At(p, "port").is_number_integer()) return true;
    const int64_t from = Number(p, "port");
    return from <= port && port <= Number(p, "endPort", from);
  });
}

// Policies of one direction that hold for the pod, and their rules together.
struct Isolation {
  kube::ObjectRef policy;  // the first; null: not isolated
  std::vector<const json*> rules;
};

Isolation IsolationOf(const std::vector<kube::ObjectRef>& policies, const std::string& ns, const kube::Labels& labels,
                      PolicyDirection direction) {
  Isolation out;
  for (const kube::ObjectRef& policy : policies) {
    const json& spec = At(policy->body, "spec");
    if (policy->meta.ns != ns || !fakekube::IsOfDirection(spec, direction)) continue;
    if (!SelectorTakes(At(spec, "podSelector"), labels).value_or(false)) continue;
    if (out.policy == nullptr) out.policy = policy;
    const char* const field = direction == PolicyDirection::kIngress ? "ingress" : "egress";
    for (const json& rule : Items(At(spec, field))) out.rules.push_back(&rule);
  }
  return out;
}
Isolation IsolationOf(const std::vector<kube::ObjectRef>& policies, const sim::PodProcess& pod,
                      PolicyDirection direction) {
  return IsolationOf(policies, pod.pod()->meta.ns, pod.pod()->meta.labels, direction);
}

// Of the pods behind a Service; of those that are to come, where there are none yet, as a policy that cuts istiod's
// webhook keeps them out.
std::vector<kube::Labels> LabelsBehind(const Mesh& mesh, const MeshCluster& cluster, const kube::Object& service) {
  std::vector<kube::Labels> out;
  for (const sim::PodProcess* pod : Behind(mesh, cluster, service)) out.push_back(pod->pod()->meta.labels);
  if (!out.empty()) return out;
  const kube::Labels& selector = kube::ParseService(service).selector;
  for (const kube::ObjectRef& deployment : mesh.List(cluster, "Deployment.apps")) {
    kube::Labels labels;
    for (const auto& [name, value] : At(deployment->body, {"spec", "template", "metadata", "labels"}).items())
      labels[name] = TextOf(value);
    if (deployment->meta.ns == service.meta.ns && !selector.empty() && Selects(selector, labels))
      out.push_back(std::move(labels));
  }
  return out;
}

// The peers of a rule, `from` or `to`, include those pods: `ns` is their namespace, `labels` theirs.
bool HasPeer(const json& from_or_to, const kube::Object& policy, const kube::Object* ns, const std::string& ns_name,
             const kube::Labels& labels) {
  const json& peers = Items(from_or_to);
  if (peers.empty()) return true;
  kube::Labels of_ns = ns == nullptr ? kube::Labels() : ns->meta.labels;
  of_ns["kubernetes.io/metadata.name"] = ns_name;
  return std::any_of(peers.begin(), peers.end(), [&](const json& peer) {
    if (!At(peer, "ipBlock").is_null()) return true;
    const json& in = At(peer, "namespaceSelector");
    if (in.is_null() && ns_name != policy.meta.ns) return false;
    if (!in.is_null() && !SelectorTakes(in, of_ns).value_or(true)) return false;
    return At(peer, "podSelector").is_null() || SelectorTakes(At(peer, "podSelector"), labels).value_or(true);
  });
}

bool OpenToAll(const json& rule) {
  const json& peers = Items(At(rule, "from"));
  return peers.empty() ||
         std::any_of(peers.begin(), peers.end(), [](const json& peer) { return !At(peer, "ipBlock").is_null(); });
}

void ClosedGateways(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  for (const auto& cluster : mesh.clusters()) {
    const auto policies = mesh.List(*cluster, "NetworkPolicy.networking.k8s.io");
    for (const kube::ObjectRef& service : NetworkGatewayServices(mesh, *cluster)) {
      for (const kube::Labels& labels : LabelsBehind(mesh, *cluster, *service)) {
        const Isolation in = IsolationOf(policies, service->meta.ns, labels, PolicyDirection::kIngress);
        if (in.policy == nullptr) continue;
        const bool open = std::any_of(in.rules.begin(), in.rules.end(),
                                      [](const json* rule) { return OpenToAll(*rule) && HasPort(*rule, 15443); });
        if (open) continue;
        findings.Add(*cluster, *in.policy,
                     fmt::format("keeps port 15443 of gateway {} from other networks", service->meta.name));
        break;
      }
    }
  }
}

void CutControlPlane(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const auto policies = mesh.List(*cluster, "NetworkPolicy.networking.k8s.io");
    std::set<std::string> told;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      const std::string& ns = pod->pod()->meta.ns;
      if (pod->app() == "istiod") {
        const Isolation in = IsolationOf(policies, *pod, PolicyDirection::kIngress);
        if (in.policy == nullptr) continue;
        for (const auto& [port, what] : {std::pair(15012, "proxies get no configuration and no certificates"),
                                         std::pair(15017, "the API server injects and validates nothing")}) {
          // The API server and proxies are of other namespaces, or of none.
          const bool open = std::any_of(in.rules.begin(), in.rules.end(), [&, p = port](const json* rule) {
            const json& peers = Items(At(*rule, "from"));
            const bool others = std::any_of(peers.begin(), peers.end(),
                                            [](const json& peer) { return !At(peer, "namespaceSelector").is_null(); });
            return (OpenToAll(*rule) || (p == 15012 && others)) && HasPort(*rule, p);
          });
          if (!open && told.insert(fmt::format("{}{}", NameOf(*in.policy), port)).second)
            findings.Add(*cluster, *in.policy, fmt::format("closes port {} of istiod: {}", port, what));
        }
      } else if (pod->bootstrap()) {
        const Isolation out = IsolationOf(policies, *pod, PolicyDirection::kEgress);
        if (out.policy == nullptr) continue;
        const bool open =
            std::any_of(out.rules.begin(), out.rules.end(), [](const json* rule) { return HasPort(*rule, 15012); });
        if (!open && told.insert(NameOf(*out.policy) + ns).second)
          findings.Add(*cluster, *out.policy,
                       fmt::format("keeps the proxy of {} from port 15012 of istiod", pod->name()));
      }
    }
  }
}

// Who comes from another network, comes from the gateway of this one.
void ForgottenGateway(const Mesh& mesh, Findings& findings) {
  if (!HasSeveralNetworks(mesh)) return;
  for (const auto& cluster : mesh.clusters()) {
    const auto policies = mesh.List(*cluster, "NetworkPolicy.networking.k8s.io");
    std::set<std::string> told;
    for (const kube::ObjectRef& gateway : NetworkGatewayServices(mesh, *cluster)) {
      const auto gateways = Behind(mesh, *cluster, *gateway);
      if (gateways.empty()) continue;
      const kube::Object& from = *gateways.front()->pod();
      const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", from.meta.ns);
      for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
        if (IsSystemNamespace(mesh, object->meta.ns)) continue;
        const kube::Service& service = kube::ParseService(*object);
        for (const sim::PodProcess* pod : Behind(mesh, *cluster, *object)) {
          if (!pod->bootstrap()) continue;  // without a proxy it is no endpoint of a gateway's
          const Isolation in = IsolationOf(policies, *pod, PolicyDirection::kIngress);
          if (in.policy == nullptr) continue;
          for (const kube::ServicePort& port : service.ports) {
            const int target = kube::TargetPortOf(port, kube::ParsePod(*pod->pod()));
            if (target == 0) continue;
            const bool open = std::any_of(in.rules.begin(), in.rules.end(), [&](const json* rule) {
              return HasPort(*rule, target) &&
                     HasPeer(At(*rule, "from"), *in.policy, ns.get(), from.meta.ns, from.meta.labels);
            });
            if (open || !told.insert(fmt::format("{} {}", NameOf(*in.policy), object->meta.name)).second) continue;
            findings.Add(
                *cluster, *in.policy,
                fmt::format("does not admit {}/{} to port {} of Service {}: requests from other networks come from "
                            "that gateway",
                            from.meta.ns, gateway->meta.name, target, object->meta.name));
          }
        }
      }
    }
  }
}

// The rule lets connections to that address and port out. A peer of pods or namespaces is no load balancer's address.
bool LetsOut(const json& rule, const std::string& address, int port) {
  if (!HasPort(rule, port)) return false;
  const json& peers = Items(At(rule, "to"));
  if (peers.empty()) return true;
  return std::any_of(peers.begin(), peers.end(), [&](const json& peer) {
    const json& block = At(peer, "ipBlock");
    if (block.is_null() || !AnyCovers(Text(block, "cidr"), address)) return false;
    const json& except = Items(At(block, "except"));
    return std::none_of(except.begin(), except.end(), [&](const json& e) { return AnyCovers(TextOf(e), address); });
  });
}

void ClosedWayOut(const Mesh& mesh, Findings& findings) {
  std::map<std::string, std::string> gateways;  // addresses, and whose each is
  std::map<std::string, std::string> networks;
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : NetworkGatewayServices(mesh, *cluster)) {
      const kube::Service& service = kube::ParseService(*object);
      for (const auto& ingress : service.ingress) {
        if (ingress.ip.empty()) continue;
        gateways[ingress.ip] = cluster->name;
        networks[ingress.ip] = cluster->network;
      }
    }
  }
  for (const auto& cluster : mesh.clusters()) {
    const auto policies = mesh.List(*cluster, "NetworkPolicy.networking.k8s.io");
    std::set<std::string> told;
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      if (!pod->bootstrap() || !IsApplication(*pod) || pod->router()) continue;
      const Isolation out = IsolationOf(policies, *pod, PolicyDirection::kEgress);
      if (out.policy == nullptr) continue;
      for (const auto& [address, of] : gateways) {
        if (networks[address] == cluster->network) continue;
        const bool open = std::any_of(out.rules.begin(), out.rules.end(),
                                      [&, to = &address](const json* rule) { return LetsOut(*rule, *to, 15443); });
        if (open || !told.insert(NameOf(*out.policy) + of).second) continue;
        findings.Add(*cluster, *out.policy,
                     fmt::format("keeps the proxy of {} from {}'s gateway {}:15443: its requests for pods there are "
                                 "dropped",
                                 pod->name(), of, address));
      }
    }
  }
}

bool LeadsOutOfCluster(const json& rule, int port) {
  const json& peers = Items(At(rule, "to"));
  const bool anywhere = peers.empty() || std::any_of(peers.begin(), peers.end(),
                                                     [](const json& peer) { return !At(peer, "ipBlock").is_null(); });
  return anywhere && HasPort(rule, port);
}

// What isolated pods need beside what they were isolated for: names (kube-dns, port 53), an istiod the API servers, a
// gateway the pods behind it.
void ForgottenNeeds(const Mesh& mesh, Findings& findings) {
  constexpr int kDns = 53;
  for (const auto& cluster : mesh.clusters()) {
    const auto policies = mesh.List(*cluster, "NetworkPolicy.networking.k8s.io");
    std::set<std::string> told;
    const auto tell = [&](const kube::Object& policy, const std::string& message, const char* remedy) {
      if (!told.insert(NameOf(policy) + remedy).second) return;
      findings.Add(*cluster, policy, message);
      findings.Explain({}, remedy);
    };
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      const Isolation out = IsolationOf(policies, *pod, PolicyDirection::kEgress);
      if (out.policy == nullptr) continue;
      const auto any = [&](const auto& test) {
        return std::any_of(out.rules.begin(), out.rules.end(), [&](const json* rule) { return test(*rule); });
      };
      // The network says whether a query passes; a policy that it does not enforce is judged by its ports.
      const kube::ObjectRef kept = mesh.world().commons().network->KeepsFromDns(pod->workload());
      if (!any([](const json& rule) { return HasPort(rule, kDns, "UDP"); })) {
        const bool tcp = any([](const json& rule) {
          return std::any_of(Items(At(rule, "ports")).begin(), Items(At(rule, "ports")).end(),
                             [](const json& p) { return Number(p, "port") == kDns; });
        });
        tell(*out.policy,
             fmt::format("keeps {} from {}port 53: no name resolves for it", pod->name(), tcp ? "UDP " : ""),
             tcp ? "write protocol: UDP beside port 53 (a port without protocol is TCP), and TCP in a rule of its own"
                 : "let the pods out to kube-dns, UDP and TCP port 53");
      } else if (kept != nullptr) {
        tell(*kept,
             kept->meta.ns == out.policy->meta.ns
                 ? fmt::format(
                       "keeps {} from DNS: none of its peers is kube-dns (pods k8s-app=kube-dns of kube-system), "
                       "so that no name resolves for it",
                       pod->name())
                 : fmt::format("keeps queries of {} from DNS, so that no name resolves for it", pod->name()),
             "name kube-dns by namespaceSelector kubernetes.io/metadata.name: kube-system and podSelector k8s-app: "
             "kube-dns");
      }
      if (pod->app() == "istiod" && !any([](const json& rule) { return LeadsOutOfCluster(rule, 6443); }) &&
          !any([](const json& rule) { return LeadsOutOfCluster(rule, 443); })) {
        tell(*out.policy,
             fmt::format("keeps istiod {} from API servers, its own and those of remote clusters: no pod has such an "
                         "address",
                         pod->name()),
             "let istiod out to the API servers' addresses (an ipBlock), ports 443 and 6443");
      }
      if (!pod->router()) continue;
      for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
        if (IsSystemNamespace(mesh, object->meta.ns)) continue;
        for (const sim::PodProcess* behind : Behind(mesh, *cluster, *object)) {
          const kube::Object& to = *behind->pod();
          const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", to.meta.ns);
          const bool open = any([&](const json& rule) {
            return HasPeer(At(rule, "to"), *out.policy, ns.get(), to.meta.ns, to.meta.labels);
          });
          if (open) continue;
          tell(*out.policy,
               fmt::format("keeps gateway {} from the pods of Service {}/{}, which it leads to", pod->name(),
                           object->meta.ns, object->meta.name),
               "let the gateway out to the applications' namespaces");
        }
      }
    }
  }
}

// "pods app=sleepy in namespaces name=web".
std::string PeerText(const json& peer, const std::string& own_ns) {
  const auto labels = [](const json& selector) {
    const kube::Labels of = LabelsIn(At(selector, "matchLabels"));
    return of.empty() ? std::string("of any label") : LabelText(of);
  };
  const json &in = At(peer, "namespaceSelector"), &pods = At(peer, "podSelector");
  std::string out = pods.is_null() ? std::string("pods") : "pods " + labels(pods);
  return out + (in.is_null() ? fmt::format(" in {}", own_ns) : " in namespaces " + labels(in));
}

// What it selects, whom it admits and at which ports. kubernetes: a policy holds for pods of its own namespace; a peer
// without namespaceSelector is of it, too; ports are the pods', by number or by the name that a container gives them.
// What was brought does not tell whether those namespaces have such pods: they have none here (kube-system), or the one
// of that name is not there and may be in the real cluster.
bool MayBeElsewhere(const Mesh& mesh, const MeshCluster& cluster, const json& namespaces) {
  if (namespaces.is_null()) return false;
  const std::string by_name = Text(At(namespaces, "matchLabels"), "kubernetes.io/metadata.name");
  if (!by_name.empty() && mesh.Get(cluster, "Namespace", "", by_name) == nullptr) return true;
  bool taken = false;
  for (const kube::ObjectRef& ns : mesh.List(cluster, "Namespace")) {
    if (!SelectorTakes(namespaces, ns->meta.labels).value_or(true)) continue;
    if (!mesh.List(cluster, "Pod", ns->meta.name).empty()) return false;
    taken = true;
  }
  return taken;
}

// Of the Services that select a pod: each port, and that of the pod where it leads.
std::vector<std::pair<int, int>> PortsOfServices(const Mesh& mesh, const MeshCluster& cluster,
                                                 const sim::PodProcess& pod) {
  std::vector<std::pair<int, int>> out;
  for (const kube::ObjectRef& object : mesh.List(cluster, "Service", pod.pod()->meta.ns)) {
    const kube::Service service = kube::ParseService(*object);
    if (!service.has_selector || !Selects(service.selector, pod.pod()->meta.labels)) continue;
    for (const kube::ServicePort& port : service.ports)
      out.emplace_back(port.port, kube::TargetPortOf(port, kube::ParsePod(*pod.pod())));
  }
  return out;
}

// The number of a Service whose own target is closed.
bool IsClosedServices(const std::vector<std::pair<int, int>>& services, int64_t number,
                      const std::function<bool(int)>& opens) {
  return std::any_of(services.begin(), services.end(), [&](const auto& each) {
    return each.first == number && each.second != number && each.second != 0 && !opens(each.second);
  });
}

void NamesNobody(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const auto pods = mesh.Pods(*cluster);
    for (const kube::ObjectRef& policy : mesh.List(*cluster, "NetworkPolicy.networking.k8s.io")) {
      const json& spec = At(policy->body, "spec");
      std::vector<const sim::PodProcess*> selected;
      bool any_there = false;
      for (const sim::PodProcess* pod : pods) {
        if (pod->pod()->meta.ns != policy->meta.ns) continue;
        any_there = true;
        if (SelectorTakes(At(spec, "podSelector"), pod->pod()->meta.labels).value_or(true)) selected.push_back(pod);
      }
      if (!any_there) continue;
      if (selected.empty()) {
        // Nobody runs now of a workload that it means: none is wanted, or it is a CronJob's.
        if (SomeTemplate(mesh, *cluster, policy->meta.ns, [&](const kube::Labels& labels) {
              return SelectorTakes(At(spec, "podSelector"), labels).value_or(true);
            }))
          continue;
        findings.Add(*cluster, *policy,
                     fmt::format("no pod of {} has the labels {}", policy->meta.ns,
                                 LabelText(LabelsIn(At(spec, {"podSelector", "matchLabels"})))));
        findings.Explain("a policy that selects nobody isolates nobody", "mend podSelector or the pods' labels");
        continue;
      }
      std::set<std::string> names;
      std::set<int> numbers;
      for (const sim::PodProcess* pod : selected) {
        for (const kube::ContainerPort& port : kube::ParsePod(*pod->pod()).ports) {
          if (port.name.starts_with("http-envoy-prom")) continue;  // the sidecar's
          names.insert(port.name);
          numbers.insert(port.container_port);
        }
      }
      const kube::Pod first = kube::ParsePod(*selected.front()->pod());
      const auto opens = [&](int number) {
        const json& rules = Items(At(spec, "ingress"));
        return std::any_of(rules.begin(), rules.end(), [&](const json& rule) {
          const json& ports = Items(At(rule, "ports"));
          return ports.empty() || std::any_of(ports.begin(), ports.end(), [&](const json& port) {
                   const json& value = At(port, "port");
                   if (value.is_null()) return true;
                   if (value.is_string()) {
                     return std::any_of(first.ports.begin(), first.ports.end(), [&](const kube::ContainerPort& each) {
                       return each.name == TextOf(value) && each.container_port == number;
                     });
                   }
                   const int64_t begin = NumberOf(value), end = Number(port, "endPort", begin);
                   return begin <= number && number <= end;
                 });
        });
      };
      const bool opens_some = std::any_of(numbers.begin(), numbers.end(), opens);
      const std::vector<std::pair<int, int>> services = PortsOfServices(mesh, *cluster, *selected.front());
      for (const auto& [list, peers] : {std::pair("ingress", "from"), std::pair("egress", "to")}) {
        for (const json& rule : Items(At(spec, list))) {
          std::vector<const json*> nobody;
          for (const json& peer : Items(At(rule, peers))) {
            if (!At(peer, "ipBlock").is_null()) continue;
            if (MayBeElsewhere(mesh, *cluster, At(peer, "namespaceSelector"))) continue;
            const bool somebody = std::any_of(pods.begin(), pods.end(), [&](const sim::PodProcess* pod) {
              const kube::Object& of = *pod->pod();
              const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", of.meta.ns);
              return HasPeer(json::array({peer}), *policy, ns.get(), of.meta.ns, of.meta.labels);
            });
            if (!somebody) nobody.push_back(&peer);
          }
          // Beside peers that are there, a label is one that clients to come may take (NAME-client: "true").
          if (nobody.size() == Items(At(rule, peers)).size()) {
            for (const json* peer : nobody) {
              findings.Add(
                  *cluster, *policy,
                  fmt::format("{}: no pod of {} is one of {}", list, cluster->name, PeerText(*peer, policy->meta.ns)));
            }
          }
          if (std::string_view(list) != "ingress") continue;
          for (const json& port : Items(At(rule, "ports"))) {
            const json& value = At(port, "port");
            constexpr int kSidecar = 15000, kSidecarEnd = 15100;
            const int64_t number = NumberOf(value), end = Number(port, "endPort", number);
            const bool of_sidecar = number >= kSidecar && number < kSidecarEnd;
            const bool open =
                std::any_of(numbers.begin(), numbers.end(), [&](int each) { return number <= each && each <= end; });
            if (value.is_string() ? names.contains(TextOf(value)) : (value.is_null() || open || of_sidecar)) continue;
            if (!value.is_string() && numbers.empty()) continue;  // pods that declare no ports may listen anywhere
            // What containers declare is not all that they listen on: a number is a mistake where the policy opens no
            // port that they do, or where it is a Service's, and the port that the Service leads to stays closed.
            if (!value.is_string() && opens_some && !IsClosedServices(services, number, opens)) continue;
            findings.Add(*cluster, *policy,
                         value.is_string()
                             ? fmt::format("ingress: no container of the pods that it selects has a port named '{}'",
                                           TextOf(value))
                             : fmt::format("ingress: port {} is none that the pods which it selects declare ({})",
                                           number, fmt::join(numbers, ", ")));
            findings.Explain("a NetworkPolicy sees the pods' ports, not the Service's, and names of container ports",
                             "write the port that the containers listen on");
          }
        }
      }
    }
  }
}

// kubernetes: pkg/apis/networking/types.go: a policy isolates in the directions of its policyTypes alone; what it says
// of the other is stored.
void RulesOfNoDirection(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& policy : mesh.List(*cluster, "NetworkPolicy.networking.k8s.io")) {
      const json& spec = At(policy->body, "spec");
      for (const auto& [field, direction, type] : {std::tuple("ingress", PolicyDirection::kIngress, "Ingress"),
                                                   std::tuple("egress", PolicyDirection::kEgress, "Egress")}) {
        if (Items(At(spec, field)).empty() || fakekube::IsOfDirection(spec, direction)) continue;
        findings.Add(
            *cluster, *policy,
            fmt::format("has rules of {}, and policyTypes leaves {} out: they keep nobody from anything", field, type));
        findings.Explain("a policy isolates pods in the directions of policyTypes alone",
                         fmt::format("add {} to policyTypes", type));
      }
    }
  }
}

// Isolated pods behind a Service that no application of their own cluster may call.
void ClosesApplications(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    const auto policies = mesh.List(*cluster, "NetworkPolicy.networking.k8s.io");
    const auto pods = mesh.Pods(*cluster);
    std::set<std::string> told;
    for (const kube::ObjectRef& object : policies.empty() ? policies : mesh.List(*cluster, "Service")) {
      if (IsSystemNamespace(mesh, object->meta.ns)) continue;
      const auto behind = Behind(mesh, *cluster, *object);
      for (const sim::PodProcess* pod : behind) {
        const Isolation in = IsolationOf(policies, *pod, PolicyDirection::kIngress);
        if (in.policy == nullptr) continue;
        for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
          const int target = kube::TargetPortOf(port, kube::ParsePod(*pod->pod()));
          if (target == 0) continue;
          bool client = false, admitted = false;
          for (const sim::PodProcess* other : pods) {
            if (!IsApplication(*other) || std::find(behind.begin(), behind.end(), other) != behind.end()) continue;
            const kube::Object& from = *other->pod();
            const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", from.meta.ns);
            client = true;
            admitted = admitted || std::any_of(in.rules.begin(), in.rules.end(), [&](const json* rule) {
                         return HasPort(*rule, target) &&
                                HasPeer(At(*rule, "from"), *in.policy, ns.get(), from.meta.ns, from.meta.labels);
                       });
          }
          if (!client || admitted || !told.insert(fmt::format("{} {}", NameOf(*in.policy), object->meta.name)).second)
            continue;
          findings.Add(*cluster, *in.policy,
                       fmt::format("admits no application of {} to port {} of Service {}", cluster->name, target,
                                   object->meta.name));
        }
      }
    }
  }
}

// What proxies hold as endpoints and a policy drops, where no rule before this one has told the policy.
void DropsEndpoints(const Mesh& mesh, Findings& findings) {
  struct Dropped {
    kube::ObjectRef policy;
    std::set<std::string> proxies;
    std::string first;
  };
  std::map<std::pair<std::string, std::string>, Dropped> out;  // by cluster and policy
  if (std::none_of(mesh.clusters().begin(), mesh.clusters().end(), [&](const auto& cluster) {
        return !mesh.List(*cluster, "NetworkPolicy.networking.k8s.io").empty();
      }))
    return;
  NetworkObstacles obstacles(mesh, sim::MeshNetwork::Heed::kAll);
  for (const auto& here : mesh.clusters()) {
    for (const sim::PodProcess* pod : mesh.Pods(*here)) {
      if (pod->envoy() == nullptr || !IsApplication(*pod)) continue;
      for (const auto& [address, obstacle, cluster] : obstacles.KeptFrom(*pod)) {
        if (obstacle->policy == nullptr || DropsOnPurpose(mesh, *here, *pod, *obstacle, address.port)) continue;
        Dropped& dropped = out[{obstacle->policy_cluster, NameOf(*obstacle->policy)}];
        dropped.policy = obstacle->policy;
        dropped.proxies.insert(pod->name());
        if (dropped.first.empty())
          dropped.first = fmt::format("{} sends to {} ({})", pod->name(), address.ToString(), cluster);
      }
    }
  }
  for (const auto& [where, dropped] : out) {
    const auto& [cluster, object] = where;
    const bool told = std::any_of(findings.before().begin(), findings.before().end(),
                                  [&, &of = cluster, &name = object](const Finding& f) {
                                    return f.cluster == of && f.object == name && f.rule->fails_requests;
                                  });
    if (told) continue;
    findings.Add(*mesh.Find(cluster), *dropped.policy,
                 fmt::format("drops what {} {} of applications send to endpoints that istiod told them: {}",
                             dropped.proxies.size(), dropped.proxies.size() == 1 ? "proxy" : "proxies", dropped.first));
  }
}

}  // namespace

bool DropsOnPurpose(const Mesh& mesh, const MeshCluster& here, const sim::PodProcess& client,
                    const sim::MeshNetwork::Obstacle& obstacle, int port) {
  const kube::Object& policy = *obstacle.policy;
  const json& spec = At(policy.body, "spec");
  const kube::Object& own = *client.pod();
  const json& types = Items(At(spec, "policyTypes"));
  const bool egress =
      types.empty() ? At(spec, "egress").is_array() : std::find(types.begin(), types.end(), "Egress") != types.end();
  if (egress && obstacle.policy_cluster == here.name && policy.meta.ns == own.meta.ns &&
      SelectorTakes(At(spec, "podSelector"), own.meta.labels).value_or(true))
    return false;
  const MeshCluster* const cluster = mesh.Find(obstacle.policy_cluster);
  if (cluster == nullptr) return false;
  const auto pods = mesh.Pods(*cluster);
  const json& rules = Items(At(spec, "ingress"));
  return std::any_of(pods.begin(), pods.end(), [&](const sim::PodProcess* other) {
    const kube::Object& from = *other->pod();
    if (!IsApplication(*other) ||
        (from.meta.ns == policy.meta.ns && SelectorTakes(At(spec, "podSelector"), from.meta.labels).value_or(true)))
      return false;
    const kube::ObjectRef ns = mesh.Get(*cluster, "Namespace", "", from.meta.ns);
    return std::any_of(rules.begin(), rules.end(), [&](const json& rule) {
      return HasPort(rule, port) && HasPeer(At(rule, "from"), policy, ns.get(), from.meta.ns, from.meta.labels);
    });
  });
}

const std::vector<Rule>& NetworkPolicyRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT121", "NetworkPolicyClosesGateway", Level::kError, "what no policy admits to an isolated pod is dropped",
       "admit everyone to port 15443 of the gateway: mesh TLS authenticates clients", "maistra/istio-operator#341",
       ClosedGateways},
      {"WT122", "NetworkPolicyCutsControlPlane", Level::kError, "what no policy admits is dropped",
       "admit every namespace to ports 15012 and 15017 of istiod, and proxies to 15012", "istio/istio#31717",
       CutControlPlane},
      {"WT123", "NetworkPolicyForgetsGateway", Level::kError,
       "an application's callers from other networks are a gateway",
       "admit the gateway's pods, by their namespace and labels", "alphagov/gsp#258", ForgottenGateway},
      {"WT130", "NetworkPolicyForgetsNeeds", Level::kError, "what no policy lets out of an isolated pod is dropped",
       "let the pods out to what they need", "istio/istio#14736, #32945", ForgottenNeeds},
      {"WT124", "NetworkPolicyClosesWayOut", Level::kError,
       "pods of another network are reached at its gateway's address, whatever the Service's",
       "let the pods out to the other networks' gateways, port 15443", "", ClosedWayOut},
      {"WT138", "NetworkPolicyDropsEndpoints", Level::kWarning,
       "istiod knows no NetworkPolicy, and proxies wait for their connect timeout and try elsewhere",
       "let the clients through; or keep their Sidecars from such Services; silence this if it is meant so", "",
       DropsEndpoints},
      {"WT134", "NetworkPolicyNamesNobody", Level::kWarning, "a peer that nobody is lets nobody through",
       "mend the labels: of the pods, and of their namespaces (kubernetes.io/metadata.name is a namespace's own name)",
       "kubernetes/kubernetes#47797", NamesNobody},
      {"WT139", "NetworkPolicyRulesUnheeded", Level::kWarning,
       "a policy isolates pods in the directions of policyTypes alone", "add the direction to policyTypes",
       "hashicorp/vault-helm#662", RulesOfNoDirection, false},
      {"WT135", "NetworkPolicyClosesApplication", Level::kWarning,
       "what no policy admits to an isolated pod is dropped", "admit its clients; silence this if nobody shall call it",
       "bitnami/charts#22741", ClosesApplications},
  };
  return *rules;
}

}  // namespace wavetank::check
