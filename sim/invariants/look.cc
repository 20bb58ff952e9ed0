#include "sim/invariants/look.h"

#include <algorithm>

#include "core/istiod/istiod.h"
#include "core/profile/profile.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"
#include "sim/world_site.h"

namespace wavetank::sim {

std::string_view ClusterOf(std::string_view proxy) {
  const size_t at = proxy.rfind('@');
  return at == std::string_view::npos ? std::string_view() : proxy.substr(at + 1);
}

std::vector<std::pair<NetworkIndex, std::string>> NetworksOf(const World& world) {
  std::vector<std::pair<NetworkIndex, std::string>> out;
  for (const WorldCluster& cluster : world.options().clusters) {
    const NetworkIndex network = world.FindSite(cluster.name)->place().network;
    if (std::none_of(out.begin(), out.end(), [&](const auto& known) { return known.first == network; }))
      out.emplace_back(network, cluster.name);
  }
  return out;
}

std::optional<NetworkIndex> NetworkOf(const World& world, std::string_view proxy) {
  World::Site* const site = world.FindSite(ClusterOf(proxy));
  return site == nullptr ? std::nullopt : std::optional(site->place().network);
}

bool IsPod(const World& world, const IpAddress& ip) {
  const std::vector<std::pair<NetworkIndex, std::string>> networks = NetworksOf(world);
  return std::any_of(networks.begin(), networks.end(),
                     [&](const auto& network) { return world.commons().network->Find(network.first, ip) != nullptr; });
}

std::vector<ServingIstiod> ServingIstiods(const World& world) {
  std::vector<ServingIstiod> out;
  for (const IstiodProcess* process : world.Istiods()) {
    const pilot::Istiod& istiod = process->istiod();
    if (!process->failure().ok() || !istiod.Ready() || istiod.discovery().last_push_context() == nullptr) continue;
    const auto& registries = istiod.registries().aggregate().registries();
    if (registries.empty()) continue;
    out.push_back({istiod.discovery().options().name, registries.front()->cluster().str(), &istiod});
  }
  return out;
}

std::vector<const pilot::Registry*> LiveRegistries(const World& world, const ServingIstiod& istiod) {
  std::vector<const pilot::Registry*> out;
  const auto& registries = istiod.istiod->registries();
  const std::vector<pilot::SecretController::ClusterState> remotes = registries.secrets().Clusters();
  World::Site* const home = world.FindSite(istiod.cluster);
  for (const pilot::Registry* registry : registries.aggregate().registries()) {
    World::Site* const site = world.FindSite(registry->cluster().str());
    if (registry->provider() != pilot::Provider::kKubernetes || site == nullptr || home == nullptr) continue;
    const bool stopped = std::any_of(remotes.begin(), remotes.end(), [&](const auto& remote) {
      return remote.stopped && remote.id == registry->cluster();
    });
    const fakekube::CallFate fate = site->cluster().api().FateOf(fakekube::ApiCall::kWatchEvent);
    const bool cut = world.commons().links->Between(home->place().site, site->place().site).quality().cut;
    if (!registry->HasSynced() || stopped || cut || !fate.answered || !fate.refusal.ok()) continue;
    out.push_back(registry);
  }
  return out;
}

std::map<std::string, const pilot::Connection*> Connections(const ServingIstiod& istiod) {
  std::map<std::string, const pilot::Connection*> out;
  for (const pilot::Connection* connection : istiod.istiod->discovery().Clients()) {
    const pilot::Proxy& proxy = connection->proxy();
    out[proxy.id + "@" + proxy.cluster().str()] = connection;
  }
  return out;
}

ObjectName ReadObjectName(std::string_view text) {
  const size_t first = text.find('/'), last = text.rfind('/');
  if (first == std::string_view::npos) return {text, {}, {}};
  if (first == last) return {text.substr(0, first), {}, text.substr(first + 1)};
  return {text.substr(0, first), text.substr(first + 1, last - first - 1), text.substr(last + 1)};
}

bool Mends(const World& world, pilot::Change change) {
  const absl::StatusOr<pilot::Profile> profile = pilot::ParseProfile(world.options().profile);
  return profile.ok() && profile->Has(change);
}

}  // namespace wavetank::sim
