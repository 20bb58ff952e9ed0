// I2 and I8: what istiods know of clusters, held against each other and against the clusters that are gone.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/json_text.h"
#include "core/debug/registry.h"
#include "core/istiod/istiod.h"
#include "core/kube/types.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"
#include "sim/invariants/checkers.h"
#include "sim/invariants/look.h"

namespace wavetank::sim {
namespace {

class Replicas final : public Checker {
  void OnTrace(const TraceEvent& event) override {
    disturbances_.See(world(), event);
    if (event.record.kind == TraceKind::kClusterAdded && event.record.a == 1) swapped_ = LosesBySwap(world());
  }

  void AtRest() override {
    std::map<std::string, std::vector<ServingIstiod>> by_cluster;
    for (ServingIstiod& istiod : ServingIstiods(world())) by_cluster[istiod.cluster].push_back(std::move(istiod));
    // A watch that broke comes back when an API server answers.
    const bool told = !disturbances_.AnyRecent(world());
    for (const auto& [cluster, replicas] : by_cluster) {
      std::vector<Breach> breaches;
      for (size_t i = 1; i < replicas.size() && told; ++i) {
        const auto [differs, known] = Difference(*replicas[0].istiod, *replicas[i].istiod);
        if (differs.empty()) continue;
        Breach breach;
        breach.key = replicas[i].name + differs;
        breach.subject = replicas[i].name;
        breach.what = fmt::format("knows {} than {}", differs, replicas[0].name);
        breach.known = known.empty() && swapped_ ? kSwapBug : known;
        breaches.push_back(std::move(breach));
      }
      // One may hear of a change before the other.
      Tell(cluster, std::move(breaches), 30s);
    }
  }

  // What differs, and the bug that explains it.
  std::pair<std::string, std::string_view> Difference(const pilot::Istiod& a, const pilot::Istiod& b) const {
    if (debug::Clusterz(a) != debug::Clusterz(b)) return {"other clusters", "L6"};
    if (const auto of_a = debug::Networkz(a), of_b = debug::Networkz(b); of_a != of_b) {
      if (Unordered(of_a) == Unordered(of_b)) return {"its gateways in another order", "L8"};
      const auto& clusters = world().options().clusters;
      const bool forgets = std::any_of(clusters.begin(), clusters.end(),
                                       [&](const auto& each) { return ForgetsNodePorts(world(), each.name); });
      return {"other gateways", forgets ? kNodePortBug : NoServiceHas(of_a, of_b) ? "kept-address" : ""};
    }
    const auto of_a = WithEndpoints(debug::EndpointShardz(a)), of_b = WithEndpoints(debug::EndpointShardz(b));
    if (of_a != of_b) return {"other endpoints", DifferInPlaces(of_a, of_b) ? "early-pod" : ""};
    return {"", ""};
  }

  // An endpoint whose slice was read before its pod had a node stays without a place: the pod is found by its name, so
  // nothing waits for more of it (istiod: pilot/pkg/serviceregistry/kube/controller/endpointcontroller.go, getPod).
  static bool DifferInPlaces(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b) {
    size_t nowhere_a = 0, nowhere_b = 0;
    return WithoutPlaces(a, &nowhere_a) == WithoutPlaces(b, &nowhere_b) && nowhere_a != nowhere_b;
  }
  // `nowhere` counts those that have none.
  static nlohmann::ordered_json WithoutPlaces(nlohmann::ordered_json shards, size_t* nowhere) {
    for (auto& [host, spaces] : shards.items()) {
      for (auto& [ns, of] : spaces.items()) {
        for (auto& [key, endpoints] : of["Shards"].items()) {
          for (nlohmann::ordered_json& endpoint : endpoints) {
            *nowhere += endpoint["Locality"]["Label"] == "" ? 1 : 0;
            endpoint["Locality"].erase("Label");
            endpoint.erase("NodeName");
            for (const char* label : {"kubernetes.io/hostname", "topology.kubernetes.io/region",
                                      "topology.kubernetes.io/zone", "topology.istio.io/subzone"}) {
              endpoint["Labels"].erase(label);
            }
          }
        }
      }
    }
    return shards;
  }

  // An istiod that has seen endpoints of a Service keeps its name when there are none any more (istiod:
  // pilot/pkg/model/endpointshards.go, DeleteServiceShard with preserveKeys); one that started later does not know it.
  static nlohmann::ordered_json WithEndpoints(const nlohmann::ordered_json& shards) {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    for (const auto& [host, spaces] : shards.items()) {
      for (const auto& [ns, of] : spaces.items()) {
        if (!of["Shards"].empty()) out[host][ns] = of;
      }
    }
    return out;
  }

  // Whether each address that only one of them knows is no Service's any more (docs/istiod-oddities.md).
  bool NoServiceHas(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b) const {
    std::set<std::string> had, differ;
    for (const WorldCluster& cluster : world().options().clusters) {
      for (const kube::ObjectRef& object : world().cluster(cluster.name).api().List("Service")) {
        for (const auto& ingress : kube::ParseService(*object).ingress) had.insert(ingress.ip);
      }
    }
    const std::multiset<std::string> of_a = Unordered(a), of_b = Unordered(b);
    const auto take = [&](const nlohmann::ordered_json& from, const std::multiset<std::string>& other) {
      for (const nlohmann::ordered_json& gateway : from) {
        if (!other.contains(JsonText(gateway))) differ.insert(gateway["Addr"].get<std::string>());
      }
    };
    take(a, of_b);
    take(b, of_a);
    return std::none_of(differ.begin(), differ.end(),
                        [&](const std::string& address) { return had.contains(address); });
  }

  static std::multiset<std::string> Unordered(const nlohmann::ordered_json& gateways) {
    std::multiset<std::string> out;
    for (const nlohmann::ordered_json& gateway : gateways) out.insert(JsonText(gateway));
    return out;
  }

  Disturbances disturbances_;
  bool swapped_ = false;  // a remote Secret was changed, in a release that loses endpoints by that
};

class Removals final : public Checker {
  void OnTrace(const TraceEvent& event) override {
    const TraceKind kind = event.record.kind;
    if (kind != TraceKind::kClusterRemoved && kind != TraceKind::kClusterAdded) return;
    const NameTable& names = world().kernel().names();
    std::set<std::string>& gone = gone_[names.Text(event.record.subject)];
    if (kind == TraceKind::kClusterRemoved) {
      gone.insert(names.Text(event.record.object));
    } else {
      gone.erase(names.Text(event.record.object));
    }
  }

  void AtRest() override {
    for (const ServingIstiod& istiod : ServingIstiods(world())) {
      // Traces name istiods' Secret controllers by the istiod, or by its cluster.
      std::set<std::string> gone;
      for (const std::string& name : {istiod.name, istiod.cluster}) {
        if (const auto it = gone_.find(name); it != gone_.end()) gone.insert(it->second.begin(), it->second.end());
      }
      for (const pilot::SecretController::ClusterState& cluster : istiod.istiod->registries().secrets().Clusters())
        gone.erase(cluster.id.str());
      Tell(istiod.name, gone.empty() ? std::vector<Breach>() : Traces(istiod, gone));
    }
  }

  static std::vector<Breach> Traces(const ServingIstiod& istiod, const std::set<std::string>& gone) {
    std::map<std::string, Breach> found;
    const auto add = [&](const std::string& cluster, std::string where, std::string_view known) {
      Breach& breach = found[cluster + where];
      breach.key = cluster + where;
      breach.subject = istiod.name;
      breach.what = fmt::format("still holds {} of {}, whose Secret has gone", where, cluster);
      breach.known = known;
    };
    for (const auto& [service, shards] : istiod.istiod->discovery().endpoints().Sorted()) {
      for (const auto& [key, endpoints] : shards->shards) {
        if (gone.contains(key.cluster.str()) && !endpoints->empty())
          add(key.cluster.str(), "a shard of " + service, "");
        for (const pilot::IstioEndpoint& endpoint : *endpoints) {
          const std::string& cluster = endpoint.p().locality.cluster.str();
          if (gone.contains(cluster) && cluster != key.cluster.str())
            add(cluster, "an endpoint of " + service, key.provider == pilot::Provider::kExternal ? "L4" : "");
        }
      }
    }
    for (const pilot::NetworkGateway& gateway : istiod.istiod->registries().networks().Gateways()->All()) {
      if (gone.contains(gateway.cluster.str()))
        add(gateway.cluster.str(), "the gateway " + gateway.addr, "stale-gateway");
    }
    std::vector<Breach> out;
    for (auto& [key, breach] : found) out.push_back(std::move(breach));
    return out;
  }

  std::map<std::string, std::set<std::string>> gone_;
};

}  // namespace

std::unique_ptr<Checker> MakeReplicas() { return std::make_unique<Replicas>(); }
std::unique_ptr<Checker> MakeRemovals() { return std::make_unique<Removals>(); }

}  // namespace wavetank::sim
