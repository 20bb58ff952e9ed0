#include "sim/invariants/look.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/istiod/istiod.h"
#include "core/kube/types.h"
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

void Disturbances::See(const World& world, const TraceEvent& event) {
  if (event.record.kind != TraceKind::kFaultStarted && event.record.kind != TraceKind::kFaultEnded) return;
  const std::string& subject = const_cast<World&>(world).kernel().names().Text(event.record.subject);
  const size_t slash = subject.find("/kube-apiserver");
  for (const WorldCluster& cluster : world.options().clusters) {  // a line's fault may concern all
    if (slash == std::string::npos || subject.compare(0, slash, cluster.name) == 0)
      until_[cluster.name] = world.Now() + kWatchIsBack;
  }
}

bool Disturbances::Recent(const World& world, const std::string& cluster) {
  World::Site* const site = world.FindSite(cluster);
  Time& until = until_[cluster];
  const auto& clusters = world.options().clusters;
  const bool cut = std::any_of(clusters.begin(), clusters.end(), [&](const WorldCluster& each) {
    return each.primary() && LineIsCut(world, each.name, cluster);
  });
  if (site != nullptr && (cut || !TellsClients(site->cluster().api()))) until = world.Now() + kWatchIsBack;
  return world.Now() < until;
}

bool Disturbances::AnyRecent(const World& world) {
  const std::vector<WorldCluster>& clusters = world.options().clusters;
  return std::any_of(clusters.begin(), clusters.end(), [&](const auto& each) { return Recent(world, each.name); });
}

std::pair<std::string, std::string> ServiceOf(std::string_view xds_cluster) {
  // outbound|5000||NAME.NAMESPACE.svc.cluster.local, outbound_.5000_._.NAME.NAMESPACE... (istiod: pilot/pkg/model,
  // BuildSubsetKey, BuildDNSSrvSubsetKey).
  size_t host = xds_cluster.rfind('|');
  host = host == std::string_view::npos ? xds_cluster.rfind("_.") : host;
  if (host == std::string_view::npos) return {};
  xds_cluster.remove_prefix(host + (xds_cluster[host] == '|' ? 1 : 2));
  const std::vector<std::string> names = absl::StrSplit(absl::string_view(xds_cluster.data(), xds_cluster.size()), '.');
  if (names.size() < 3 || names[2] != "svc") return {};
  return {names[1], names[0]};
}

bool Stands(const World& world, std::string_view xds_cluster, const IpAddress& ip) {
  const auto [ns, name] = ServiceOf(xds_cluster);
  if (name.empty()) return true;
  std::set<std::string> ready;  // networks with ready pods
  for (const WorldCluster& cluster : world.options().clusters) {
    for (const kube::ObjectRef& slice : world.FindSite(cluster.name)->cluster().api().List("EndpointSlice", ns)) {
      const auto label = slice->meta.labels.find("kubernetes.io/service-name");
      if (label == slice->meta.labels.end() || label->second != name) continue;
      for (const kube::EndpointSlice::Endpoint& e : kube::ParseEndpointSlice(*slice).endpoints) {
        if (!e.ready.value_or(true)) continue;
        ready.insert(cluster.mesh_network());
        if (std::find(e.addresses.begin(), e.addresses.end(), ip.ToString()) != e.addresses.end()) return true;
      }
    }
  }
  if (ready.empty() || IsPod(world, ip)) return false;
  for (const WorldCluster& cluster : world.options().clusters) {
    for (const kube::ObjectRef& object : world.FindSite(cluster.name)->cluster().api().List("Service")) {
      const auto label = object->meta.labels.find("topology.istio.io/network");
      if (label == object->meta.labels.end()) continue;
      for (const auto& ingress : kube::ParseService(*object).ingress) {
        if (ingress.ip == ip.ToString()) return ready.contains(label->second);
      }
    }
  }
  return true;  // a node's address, or one that a name stands for
}

std::vector<IpPrefix> PodRanges(const WorldCluster& cluster) {
  std::vector<IpPrefix> out;
  for (const absl::string_view range : absl::StrSplit(cluster.pod_cidr, ',')) {
    const absl::StatusOr<IpPrefix> prefix = IpPrefix::Parse(std::string(absl::StripAsciiWhitespace(range)));
    if (prefix.ok()) out.push_back(*prefix);
  }
  return out;
}

bool AnyContains(const std::vector<IpPrefix>& ranges, const IpAddress& ip) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const IpPrefix& range) { return range.Contains(ip); });
}

bool LineIsCut(const World& world, std::string_view a, std::string_view b) {
  World::Site* const here = world.FindSite(a);
  World::Site* const there = world.FindSite(b);
  if (here == nullptr || there == nullptr) return true;
  return world.commons().links->Between(here->place().site, there->place().site).quality().cut;
}

bool TellsClients(const fakekube::ApiServer& api) {
  if (api.VisibleVersion() != api.resource_version()) return false;
  for (const fakekube::ApiCall call :
       {fakekube::ApiCall::kRead, fakekube::ApiCall::kWatch, fakekube::ApiCall::kWatchEvent}) {
    const fakekube::CallFate fate = api.FateOf(call);
    if (!fate.answered || !fate.refusal.ok()) return false;
  }
  return true;
}

std::vector<const pilot::Registry*> LiveRegistries(const World& world, const ServingIstiod& istiod) {
  std::vector<const pilot::Registry*> out;
  const auto& registries = istiod.istiod->registries();
  const std::vector<pilot::SecretController::ClusterState> remotes = registries.secrets().Clusters();
  for (const pilot::Registry* registry : registries.aggregate().registries()) {
    World::Site* const site = world.FindSite(registry->cluster().str());
    if (registry->provider() != pilot::Provider::kKubernetes || site == nullptr) continue;
    const bool stopped = std::any_of(remotes.begin(), remotes.end(), [&](const auto& remote) {
      return remote.stopped && remote.id == registry->cluster();
    });
    if (!registry->HasSynced() || stopped || LineIsCut(world, istiod.cluster, registry->cluster().str()) ||
        !TellsClients(site->cluster().api()))
      continue;
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

bool Mends(const World& world, pilot::Change change) { return world.profile().Has(change); }

bool ForgetsNodePorts(const World& world, const std::string& cluster) {
  if (!Mends(world, pilot::Change::kNodePortAddressesForgotten) || world.FindSite(cluster) == nullptr) return false;
  const std::vector<kube::ObjectRef> services = world.FindSite(cluster)->cluster().api().List("Service");
  return std::any_of(services.begin(), services.end(), [](const kube::ObjectRef& service) {
    return service->meta.labels.contains("topology.istio.io/network") &&
           kube::ParseService(*service).type == "NodePort";
  });
}

bool LosesBySwap(const World& world) {
  return Mends(world, pilot::Change::kSwapLosesEndpoints) || Mends(world, pilot::Change::kSwapLosesGateways) ||
         Mends(world, pilot::Change::kSwapWaitsForItself);
}

}  // namespace wavetank::sim
