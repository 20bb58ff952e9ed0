#include "library/session/truth.h"

#include <algorithm>
#include <set>

#include "core/base/ip.h"
#include "core/kube/types.h"
#include "fakes/envoy/envoy.h"
#include "fakes/kube/store/api_server.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::session {
namespace {

// Ready pods' "address:port" of one Service port, by the network that their cluster is attached to.
using Ready = std::map<std::string, std::set<std::string>>;

struct ServicePorts {
  std::string host;
  std::map<int, Ready> ready;  // by the Service's port
};

void AddReady(const kube::EndpointSlice& slice, const std::string& port_name, const std::string& network, Ready* out) {
  for (const kube::EndpointSlice::Port& port : slice.ports) {
    if (port.name.value_or("") != port_name || !port.port) continue;
    for (const kube::EndpointSlice::Endpoint& endpoint : slice.endpoints) {
      if (!endpoint.ready.value_or(true)) continue;
      for (const std::string& address : endpoint.addresses)
        (*out)[network].insert(fmt::format("{}:{}", address, *port.port));
    }
  }
}

// By host: a Service of one namespace and name is one, in whatever clusters it is.
std::map<std::string, ServicePorts> Services(sim::World& world) {
  std::map<std::string, ServicePorts> out;
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    const auto& api = world.cluster(cluster.name).api();
    for (const kube::ObjectRef& object : api.List("Service")) {
      const kube::Service& service = kube::ParseService(*object);
      const std::string& ns = object->meta.ns;
      if (!service.has_selector || ns == "istio-system" || ns == "kube-system" || service.cluster_ip == "None")
        continue;
      ServicePorts& ports = out[object->meta.name + "." + ns];
      ports.host = fmt::format("{}.{}.svc.cluster.local", object->meta.name, ns);
      for (const kube::ServicePort& port : service.ports) {
        Ready& ready = ports.ready[port.port];
        for (const kube::ObjectRef& slice : api.List("EndpointSlice", ns)) {
          const auto label = slice->meta.labels.find("kubernetes.io/service-name");
          if (label == slice->meta.labels.end() || label->second != object->meta.name) continue;
          AddReady(kube::ParseEndpointSlice(*slice), port.name, cluster.network, &ready);
        }
      }
    }
  }
  return out;
}

void Compare(const sim::PodProcess& pod, const std::string& network, const std::string& host, int port,
             const Ready& ready, const std::set<std::string>& held, const std::vector<IpPrefix>& pods,
             std::vector<Breach>* out) {
  const auto own = ready.find(network);
  const std::set<std::string> none, &want = own == ready.end() ? none : own->second;
  std::vector<std::string> missing, gone;
  std::set_difference(want.begin(), want.end(), held.begin(), held.end(), std::back_inserter(missing));
  bool far_ready = false, far_held = false;
  for (const auto& [where, addresses] : ready) far_ready = far_ready || (where != network && !addresses.empty());
  for (const std::string& address : held) {
    if (want.contains(address)) continue;
    const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address.substr(0, address.rfind(':')));
    const bool of_pod =
        ip.ok() && std::any_of(pods.begin(), pods.end(), [&](const IpPrefix& p) { return p.Contains(*ip); });
    (of_pod ? gone.push_back(address) : void(far_held = true));
  }
  const auto tell = [&](std::string what) {
    out->push_back({"endpoints-are-ready-pods", fmt::format("{}: {}:{}: {}", pod.name(), host, port, what)});
  };
  if (!missing.empty()) tell(fmt::format("ready, but not among the endpoints: {}", fmt::join(missing, ", ")));
  if (!gone.empty())
    tell(fmt::format("among the endpoints, but no ready pod of its network: {}", fmt::join(gone, ", ")));
  if (far_ready && !far_held) tell("pods of another network are ready, but no gateway is among the endpoints");
  if (far_held && !far_ready) tell("a gateway is among the endpoints, but no pod of another network is ready");
}

}  // namespace

const std::vector<Invariant>& Invariants() {
  static const auto* const all = new std::vector<Invariant>{
      {"nothing-is-refused", "no proxy refuses configuration (NACK), at any time"},
      {"the-right-pod-answers", "a request is answered by a pod that its Service selects, at any time"},
      {"comes-to-rest", "when faults have ended, the mesh settles within the bound"},
      {"pods-come-up", "when faults have ended, all pods run and are connected to an istiod"},
      {"endpoints-are-ready-pods", "at rest, endpoints of a Service are its ready pods, or the gateways before them"},
      {"requests-are-answered", "at rest, every request of every client to every Service is answered"},
      {"every-ready-pod-answers",
       "at rest, requests reach every ready pod of the client's network, and none that is not ready"},
      {"same-seed-same-digest", "a seed's run ends with the same digest when it is run again"},
  };
  return *all;
}

Watch::Watch(sim::World& world) {
  world.kernel().AddObserver([this, &world](const sim::TraceEvent& event) {
    if (event.record.kind != TraceKind::kXdsNack || breaches_.size() >= kMost) return;
    if (breaches_.empty()) first_ = event.time;
    const NameTable& names = world.kernel().names();
    breaches_.push_back({"nothing-is-refused", fmt::format("{} refused {}: {}", names.Text(event.record.subject),
                                                           names.Text(event.record.object), event.record.detail)});
  });
}

std::vector<Breach> CheckEndpoints(const LiveWorld& live) {
  std::vector<Breach> out;
  auto& world = const_cast<sim::World&>(live.world());
  const std::map<std::string, ServicePorts> services = Services(world);
  std::map<std::string, std::string> networks;
  std::vector<IpPrefix> pods;  // where pods have their addresses; any other is a gateway's
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    networks[cluster.name] = cluster.network;
    if (const auto cidr = IpPrefix::Parse(cluster.pod_cidr); cidr.ok()) pods.push_back(*cidr);
  }
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pod->envoy() == nullptr || pod->router()) continue;
    std::map<std::string, std::set<std::string>> held;  // by the Envoy cluster's name
    for (const envoysim::EndpointStatus& endpoint : pod->envoy()->Endpoints())
      held[endpoint.cluster].insert(endpoint.address);
    for (const auto& [name, service] : services) {
      for (const auto& [port, ready] : service.ready) {
        const auto it = held.find(fmt::format("outbound|{}||{}", port, service.host));
        Compare(*pod, networks[pod->site().name], service.host, port, ready,
                it == held.end() ? std::set<std::string>() : it->second, pods, &out);
      }
    }
  }
  return out;
}

}  // namespace wavetank::session
