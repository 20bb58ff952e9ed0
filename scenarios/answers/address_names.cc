#include "scenarios/answers/address_names.h"

#include "core/kube/types.h"
#include "fmt/format.h"
#include "sim/world.h"

namespace wavetank::scenario {

void AddressNames::Learn() {
  for (const sim::PodProcess* pod : world_.Pods()) {
    const auto status = pod->pod()->body.find("status");
    if (status == pod->pod()->body.end() || !status->is_object()) continue;
    const auto ip = status->find("podIP");
    if (ip != status->end() && ip->is_string())
      owners_[ip->get<std::string>()] = {pod->name(), pod->site().name, pod->name()};
  }
  for (const sim::WorldCluster& cluster : world_.options().clusters) {
    for (const kube::ObjectRef& object : world_.cluster(cluster.name).api().List("Service")) {
      const kube::Service& service = kube::ParseService(*object);
      for (const auto& ingress : service.ingress) {
        if (ingress.ip.empty()) continue;
        owners_[ingress.ip] = {fmt::format("{}'s gateway {}", cluster.name, object->meta.name), cluster.name, ""};
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

std::string AddressNames::Obstacle(const std::string& pod, const envoysim::SocketAddress& address) const {
  const sim::PodProcess* const from = world_.FindPod(pod);
  if (from == nullptr || address.ip.empty()) return {};
  return world_.commons().network->WhyNot({from->workload(), envoysim::Origin::Who::kProxy, {}}, address).why;
}

std::string AddressNames::Named(const std::string& address) const {
  const auto owner = owners_.find(address.substr(0, address.rfind(':')));
  return owner == owners_.end() ? address : fmt::format("{} {}", owner->second.name, address);
}

}  // namespace wavetank::scenario
