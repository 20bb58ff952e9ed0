#include "check/upgrade/held.h"

#include <array>
#include <utility>

#include "core/base/json_access.h"
#include "core/model/proxy.h"
#include "core/xds/connection.h"
#include "core/xds/discovery_server.h"
#include "fakes/kube/control/owned.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

constexpr std::array<std::pair<pilot::XdsType, const char*>, 4> kTypes = {{{pilot::XdsType::kCds, "cds"},
                                                                           {pilot::XdsType::kEds, "eds"},
                                                                           {pilot::XdsType::kLds, "lds"},
                                                                           {pilot::XdsType::kRds, "rds"}}};

// FNV-1a: two encodings are held against each other, nothing more.
uint64_t HashOf(std::string_view bytes) {
  uint64_t out = 14695981039346656037ULL;
  for (const char c : bytes) out = (out ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return out;
}

// The Deployment of a pod whose ReplicaSet is named after it and its template; else what owns the pod, or the pod.
std::string WorkloadNameOf(const kube::Object& pod) {
  const kube::OwnerReference* const owner = fakekube::ControllerOf(pod);
  if (owner == nullptr) return pod.meta.name;
  const auto hash = pod.meta.labels.find("pod-template-hash");
  const std::string tail = hash == pod.meta.labels.end() ? std::string() : "-" + hash->second;
  std::string_view name = owner->name;
  if (name.size() > tail.size() && name.ends_with(tail)) name.remove_suffix(tail.size());
  return std::string(name);
}

}  // namespace

void Held::Watch(sim::World& world, std::map<std::string, ResourceHashes> before) {
  before_ = std::move(before);
  for (const sim::PodProcess* pod : world.Pods()) known_.insert(pod->name());
  responses_ = world.commons().OnEitherXds(
      [this](const std::string& proxy, const auto& response) { proxies_[proxy].Apply(response); });
}

std::string GroupOf(const sim::PodProcess& pod) {
  return fmt::format("{}.{}@{}", pod.app().empty() ? WorkloadNameOf(*pod.pod()) : pod.app(), pod.pod()->meta.ns,
                     pod.site().name);
}

std::string ReleaseOf(const sim::PodProcess& pod) {
  return pod.envoy() == nullptr ? std::string() : Text(pod.node().metadata, "ISTIO_VERSION");
}

std::map<std::string, ServedBy> IstiodsOfProxies(const sim::World& world) {
  // istiod knows a proxy by its cluster's ID and its pod.
  std::map<std::pair<std::string, std::string>, ServedBy> by_id;
  for (const sim::IstiodProcess* process : world.Istiods()) {
    if (!process->istiod().Ready()) continue;
    const std::string profile = process->istiod().options().profile.Name();
    for (const pilot::Connection* connection : process->istiod().discovery().Clients()) {
      const pilot::Proxy& proxy = connection->proxy();
      by_id[{proxy.metadata.cluster_id.str(), proxy.id}] = {profile, connection->connected_at()};
    }
  }
  std::map<std::string, ServedBy> out;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pod->envoy() == nullptr) continue;
    const auto found = by_id.find(
        {Text(pod->node().metadata, "CLUSTER_ID"), fmt::format("{}.{}", pod->pod()->meta.name, pod->pod()->meta.ns)});
    if (found != by_id.end()) out[pod->name()] = found->second;
  }
  return out;
}

std::map<std::string, ProxyGroup> Held::Groups(const sim::World& world) const {
  std::map<std::string, ProxyGroup> out;
  const std::map<std::string, ServedBy> istiods = IstiodsOfProxies(world);
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pod->envoy() == nullptr) continue;
    ProxyGroup& group = out[GroupOf(*pod)];
    group.releases.insert(ReleaseOf(*pod));
    if (const auto of = istiods.find(pod->name()); of != istiods.end()) group.istiods.insert(of->second.profile);
    if (group.proxies++ > 0) continue;
    group.gateway = pod->router();
    // One that was there already is sent what changes, until it comes to another istiod, which sends everything.
    if (const auto was = before_.find(GroupOf(*pod)); was != before_.end() && known_.contains(pod->name())) {
      group.resources = was->second;
    }
    const auto held = proxies_.find(pod->name());
    if (held == proxies_.end()) continue;
    for (const auto& [type, name] : kTypes) {
      for (const auto& [resource, bytes] : held->second.of(type)) {
        group.resources[{name, resource}] = bytes == nullptr ? 0 : HashOf(*bytes);
      }
    }
  }
  return out;
}

}  // namespace wavetank::check
