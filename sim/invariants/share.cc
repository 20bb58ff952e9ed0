// I5 and I6: whether gateways get the load of what stands behind them, and know it by its SNI.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "core/istiod/istiod.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"
#include "sim/invariants/checkers.h"
#include "sim/invariants/held.h"
#include "sim/invariants/look.h"

namespace wavetank::sim {
namespace {

// Assignments that have come since the last look, with a proxy for each cluster of proxies that got them.
class News {
 public:
  void Add(const std::string& proxy, const Assignment& now) {
    const SubsetName name = ReadSubsetName(now.cluster);
    if (name.direction == "outbound") news_[{std::string(ClusterOf(proxy)), now.cluster, router(proxy)}] = proxy;
  }
  std::set<std::pair<std::string, std::string>> Take() {
    std::set<std::pair<std::string, std::string>> out;  // proxy, cluster
    for (const auto& [key, proxy] : news_) out.emplace(proxy, std::get<1>(key));
    news_.clear();
    return out;
  }

 private:
  // Workloads of one app see the same, mostly; a name tells them apart well enough.
  static std::string router(const std::string& proxy) { return proxy.substr(0, proxy.find('-')); }
  std::map<std::tuple<std::string, std::string, std::string>, std::string> news_;
};

const Assignment* Find(const Held& held, const std::string& proxy, const std::string& cluster) {
  const Held::Proxy* const there = held.Find(proxy);
  if (there == nullptr) return nullptr;
  const auto it = there->assignments.find(cluster);
  return it == there->assignments.end() ? nullptr : it->second.get();
}

struct Served {
  const ServingIstiod* istiod = nullptr;
  const pilot::Connection* connection = nullptr;
};
std::map<std::string, Served> ByProxy(const std::vector<ServingIstiod>& istiods) {
  std::map<std::string, Served> out;
  for (const ServingIstiod& istiod : istiods) {
    for (const auto& [name, connection] : Connections(istiod)) out[name] = {&istiod, connection};
  }
  return out;
}

// The network whose gateway has the address.
std::map<std::string, std::string> Gateways(const pilot::Istiod& istiod) {
  std::map<std::string, std::string> out;
  for (const pilot::NetworkGateway& gateway : istiod.registries().networks().Gateways()->All())
    out[gateway.addr] = gateway.network.str();
  return out;
}

class LoadShares final : public Checker {
  void OnAssignment(const std::string& proxy, const Assignment& now, const Assignment*) override {
    news_.Add(proxy, now);
  }

  void AtRest() override {
    const auto news = news_.Take();
    if (news.empty()) return;
    const std::vector<ServingIstiod> istiods = ServingIstiods(world());
    const std::map<std::string, Served> served = ByProxy(istiods);
    for (const auto& [proxy, cluster] : news) {
      const auto by = served.find(proxy);
      const Assignment* const now = Find(held(), proxy, cluster);
      if (by == served.end() || now == nullptr) continue;
      Tell(proxy + " " + cluster, Compare(*by->second.istiod->istiod, by->second.connection->proxy(), proxy, *now));
    }
  }

  std::vector<Breach> Compare(const pilot::Istiod& istiod, const pilot::Proxy& proxy, const std::string& name,
                              const Assignment& now) const {
    const SubsetName subset = ReadSubsetName(now.cluster);
    if (!subset.subset.empty() || now.weighted) return {};
    std::map<std::string, int64_t> capacity = Capacity(istiod, proxy, subset), load;
    const std::map<std::string, std::string> gateways = Gateways(istiod);
    absl::flat_hash_set<SocketAddress> seen;
    for (const Assignment::Endpoint& e : now.endpoints) {
      if (e.priority > 0) return {};
      if (!seen.insert(e.address).second) continue;  // Envoy keeps the first
      const auto gateway = gateways.find(e.address.ip.ToString());
      const bool away = gateway != gateways.end() && !proxy.InNetwork(pilot::NetworkId(gateway->second));
      load[away ? gateway->second : ""] += e.weight;
    }
    // What gets none at all is another invariant's.
    int64_t all_load = 0, all_capacity = 0;
    for (const auto& [network, weight] : load) {
      const auto there = capacity.find(network);
      if (there == capacity.end() || there->second == 0) return {};
      all_load += weight;
      all_capacity += there->second;
    }
    if (load.size() < 2) return {};
    for (const auto& [network, weight] : load) {
      // A hundredth of its share more or less is rounding.
      const int64_t share = weight * all_capacity, fair = capacity[network] * all_load;
      if (std::abs(share - fair) * 100 > fair) {
        Breach breach;
        breach.key = "share";
        breach.subject = name;
        breach.what = fmt::format("{}: {} has {} % of the endpoints and gets {} % of the load", now.cluster,
                                  network.empty() ? "its own network" : "network " + network,
                                  capacity[network] * 100 / all_capacity, weight * 100 / all_load);
        if (!now.twice.empty() && !Mends(world(), pilot::Change::kGatewayOncePerCla)) breach.known = "A01";
        return {std::move(breach)};
      }
    }
    return {};
  }

  // Endpoints of the port by network, those that only the proxy's own network has apart.
  static std::map<std::string, int64_t> Capacity(const pilot::Istiod& istiod, const pilot::Proxy& proxy,
                                                 const SubsetName& subset) {
    std::map<std::string, int64_t> out;
    const pilot::ServiceRef service = istiod.registries().aggregate().GetService(subset.host);
    int port = 0;
    std::from_chars(subset.port.data(), subset.port.data() + subset.port.size(), port);
    if (service == nullptr) return out;
    std::string port_name;
    for (const pilot::Port& each : service->ports) {
      if (each.port == port) port_name = each.name;
    }
    const pilot::EndpointShards* const shards =
        istiod.discovery().endpoints().Find(subset.host, service->attributes.ns);
    if (shards == nullptr) return out;
    for (const auto& [key, endpoints] : shards->shards) {
      for (const pilot::IstioEndpoint& endpoint : *endpoints) {
        const pilot::EndpointProfile& profile = endpoint.p();
        const bool here = proxy.InNetwork(profile.network);
        if (profile.service_port_name != port_name || profile.discoverable_in_same_cluster_only) continue;
        // Nobody is sent what ends, and whom it drains takes nothing new.
        const pilot::HealthStatus health = endpoint.health;
        if (health != pilot::HealthStatus::kHealthy && health != pilot::HealthStatus::kUnknown) continue;
        if (!here && profile.tls_mode == pilot::kDisabledTlsMode) continue;
        out[here ? "" : profile.network.str()] += endpoint.lb_weight == 0 ? 1 : endpoint.lb_weight;
      }
    }
    return out;
  }

  News news_;
};

class SniClosure final : public Checker {
  void OnAssignment(const std::string& proxy, const Assignment& now, const Assignment*) override {
    news_.Add(proxy, now);
  }

  void AtRest() override {
    auto news = news_.Take();
    news.insert(doubtful_.begin(), doubtful_.end());
    doubtful_.clear();
    if (news.empty()) return;
    const std::vector<ServingIstiod> istiods = ServingIstiods(world());
    const std::map<std::string, Served> served = ByProxy(istiods);
    std::map<const envoysim::Acceptor*, const PodProcess*> gateways;
    for (const PodProcess* pod : world().Pods()) {
      if (pod->router() && pod->envoy() != nullptr) gateways[&const_cast<PodProcess*>(pod)->envoy()->direct()] = pod;
    }
    std::map<const PodProcess*, absl::flat_hash_set<std::string>> clusters;
    for (const auto& [proxy, cluster] : news) {
      const auto by = served.find(proxy);
      const Assignment* const now = Find(held(), proxy, cluster);
      const PodProcess* const pod = world().FindPod(proxy);
      if (by == served.end() || now == nullptr || pod == nullptr) continue;
      const std::map<std::string, std::string> known = Gateways(*by->second.istiod->istiod);
      const SubsetName name = ReadSubsetName(cluster);
      const std::string sni = fmt::format("outbound_.{}_.{}_.{}", name.port, name.subset, name.host);
      std::vector<Breach> breaches;
      for (const Assignment::Endpoint& e : now->endpoints) {
        const auto gateway = known.find(e.address.ip.ToString());
        if (gateway == known.end() || by->second.connection->proxy().InNetwork(pilot::NetworkId(gateway->second)))
          continue;
        const envoysim::Route route =
            world().commons().network->Resolve({pod->workload(), envoysim::Origin::Who::kProxy, {}}, e.address, 0);
        const auto there = gateways.find(route.acceptor);
        if (there == gateways.end()) continue;  // nothing answers there, or no proxy
        auto& names = clusters[there->second];
        if (names.empty()) {
          for (std::string& each : there->second->envoy()->ClusterNames()) names.insert(std::move(each));
        }
        if (names.contains(sni)) continue;
        Breach breach;
        breach.key = e.address.ToString();
        breach.subject = proxy;
        breach.what =
            fmt::format("{} leads to {}, where {} knows no {}", cluster, breach.key, there->second->name(), sni);
        breaches.push_back(std::move(breach));
      }
      if (!breaches.empty()) doubtful_.emplace(proxy, cluster);
      // The gateway may hear of the service after its clients do.
      Tell(proxy + " " + cluster, std::move(breaches), 30s);
    }
  }

  News news_;
  std::set<std::pair<std::string, std::string>> doubtful_;
};

}  // namespace

std::unique_ptr<Checker> MakeLoadShares() { return std::make_unique<LoadShares>(); }
std::unique_ptr<Checker> MakeSniClosure() { return std::make_unique<SniClosure>(); }

}  // namespace wavetank::sim
