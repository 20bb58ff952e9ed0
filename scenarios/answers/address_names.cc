#include "scenarios/answers/address_names.h"

#include <set>

#include "core/kube/types.h"
#include "core/model/labels.h"
#include "core/model/service.h"
#include "fakes/envoy/envoy.h"
#include "fakes/envoy/lb/endpoint_table.h"
#include "fmt/format.h"
#include "sim/invariants/look.h"
#include "sim/world.h"

namespace wavetank::scenario {

void AddressNames::Learn() {
  for (const sim::PodProcess* pod : world_.Pods()) {
    const kube::Pod& typed = kube::ParsePod(*pod->pod());
    const Owner owner{pod->name(), pod->site().name, pod->name()};
    if (!typed.ip.empty()) owners_[typed.ip] = owner;
    for (const std::string& ip : typed.ips) owners_[ip] = owner;
  }
  for (const sim::WorldCluster& cluster : world_.options().clusters) {
    for (const kube::ObjectRef& object : world_.cluster(cluster.name).api().List("Service")) {
      const kube::Service& service = kube::ParseService(*object);
      for (const auto& ingress : service.ingress) {
        if (ingress.ip.empty()) continue;
        owners_[ingress.ip] = {fmt::format("{}'s gateway {}", cluster.name, object->meta.name), cluster.name, "",
                               object->meta.ns, object->meta.name};
      }
    }
  }
}

std::string AddressNames::Of(const envoysim::SocketAddress& address) const {
  const auto owner = owners_.find(address.ip.ToString());
  return owner == owners_.end() ? address.ToString() : fmt::format("{} {}", owner->second.name, address.ToString());
}

const AddressNames::Owner* AddressNames::OwnerOf(const envoysim::SocketAddress& address) const {
  const auto owner = owners_.find(address.ip.ToString());
  return owner == owners_.end() ? nullptr : &owner->second;
}

std::string AddressNames::Obstacle(const std::string& pod, const envoysim::SocketAddress& address,
                                   std::string_view cluster) const {
  const sim::PodProcess* const from = world_.FindPod(pod);
  if (from == nullptr || address.ip.empty()) return {};
  std::string why =
      world_.commons().network->WhyNot({from->workload(), envoysim::Origin::Who::kProxy, {}}, address).why;
  const Owner* const owner = OwnerOf(address);
  if (owner != nullptr && !owner->pod.empty() && world_.FindPod(owner->pod) == nullptr) return "its pod has ended";
  if (!why.empty() || owner == nullptr) return why;
  if (sim::LineIsCut(world_, from->site().name, owner->cluster))
    return fmt::format("the line between {} and {} is cut", from->site().name, owner->cluster);
  if (owner->service.empty()) return {};
  why = NobodyBehind(*owner);
  return why.empty() ? KeptFromGateway(*owner, cluster) : why;
}

std::string AddressNames::KeptFromGateway(const Owner& owner, std::string_view cluster) const {
  const auto key = pilot::ParseSubsetKey(cluster);
  if (!key) return {};
  Asked& asked = asked_[fmt::format("{} {}", owner.name, cluster)];
  if (asked.at == world_.Now()) return asked.answer;
  asked = {world_.Now(), {}};
  const std::string sni =
      pilot::BuildDnsSrvSubsetKey(pilot::TrafficDirection::kOutbound, key->subset, key->hostname, key->port);
  std::string first;
  for (const sim::PodProcess* gateway : world_.Pods()) {
    if (gateway->site().name != owner.cluster || gateway->envoy() == nullptr || !gateway->router()) continue;
    for (const envoysim::EndpointsInUse& each : gateway->envoy()->EndpointTables()) {
      if (each.cluster != sni || each.table == nullptr) continue;
      for (const envoysim::LbEndpoint& endpoint : each.table->endpoints) {
        std::string why =
            world_.commons()
                .network->WhyNot({gateway->workload(), envoysim::Origin::Who::kProxy, {}}, endpoint.address)
                .why;
        if (why.empty()) return {};  // one is reached
        if (first.empty()) first = std::move(why);
      }
    }
  }
  if (!first.empty()) asked.answer = "behind it: " + first;
  return asked.answer;
}

std::string AddressNames::NobodyBehind(const Owner& owner) const {
  // A failed way fails for many requests at once.
  Asked& asked = asked_[owner.name];
  if (asked.at == world_.Now()) return asked.answer;
  asked = {world_.Now(), {}};
  std::set<std::string> running;
  for (const sim::PodProcess* pod : world_.Pods()) {
    if (pod->site().name == owner.cluster) running.insert(kube::ParsePod(*pod->pod()).ip);
  }
  int ready = 0, alive = 0;
  for (const kube::ObjectRef& object : world_.cluster(owner.cluster).api().List("EndpointSlice", owner.ns)) {
    const auto of = object->meta.labels.find(pilot::kServiceNameLabel);
    if (of == object->meta.labels.end() || of->second != owner.service) continue;
    for (const kube::EndpointSlice::Endpoint& each : kube::ParseEndpointSlice(*object).endpoints) {
      if (!each.ready.value_or(true)) continue;
      ++ready;
      for (const std::string& ip : each.addresses) alive += running.contains(ip) ? 1 : 0;
    }
  }
  if (ready == 0) {
    asked.answer = fmt::format("no pod of Service {}/{} in {} is ready", owner.ns, owner.service, owner.cluster);
  } else if (alive == 0) {
    asked.answer =
        fmt::format("the {} behind Service {}/{} in {} {} gone, and Kubernetes has not noticed yet",
                    ready == 1 ? "pod" : "pods", owner.ns, owner.service, owner.cluster, ready == 1 ? "is" : "are");
  }
  return asked.answer;
}

std::string AddressNames::Named(const std::string& address) const {
  const auto owner = owners_.find(address.substr(0, address.rfind(':')));
  return owner == owners_.end() ? address : fmt::format("{} {}", owner->second.name, address);
}

}  // namespace wavetank::scenario
