// I3 and I13: what an istiod knows of a cluster, held against what that cluster's API server says.
#include <fmt/format.h>

#include <set>

#include "core/config/mesh/mesh_config.h"
#include "core/istiod/istiod.h"
#include "core/kube/types.h"
#include "core/registry/multicluster/registries.h"
#include "core/registry/service_conversion.h"
#include "core/xds/discovery_server.h"
#include "sim/invariants/checkers.h"
#include "sim/invariants/look.h"

namespace wavetank::sim {
namespace {

// A change on its way is no difference; no watch is as late as this.
constexpr Duration kPatience = kWatchIsBack;

// Which namespaces of which clusters have changed since they were looked at; "" stands for all of a cluster's.
class Changes {
 public:
  void See(const World& world, const TraceEvent& event, std::initializer_list<std::string_view> kinds) {
    const NameTable& names = const_cast<World&>(world).kernel().names();
    if (event.record.kind == TraceKind::kClusterAdded && event.record.a == 1 && LosesBySwap(world))
      swapped_.insert(names.Text(event.record.object));
    switch (event.record.kind) {
      case TraceKind::kObjectApplied:
      case TraceKind::kObjectDeleted: {
        const ObjectName object = ReadObjectName(names.Text(event.record.object));
        for (const std::string_view kind : kinds) {
          if (object.kind == kind) changed_[names.Text(event.record.subject)][std::string(object.ns)] = event.cause;
        }
        break;
      }
      case TraceKind::kClusterAdded:
      case TraceKind::kClusterRemoved:
      case TraceKind::kClusterSynced:
      case TraceKind::kClusterRejected:
        for (const WorldCluster& cluster : world.options().clusters) changed_[cluster.name][""] = event.cause;
        break;
      default:
        break;
    }
  }
  using ByCluster = std::map<std::string, std::map<std::string, CauseId>>;
  ByCluster Take() { return std::exchange(changed_, {}); }
  // The bug by which what is known of a cluster may be less than what is there; empty: there is none.
  std::string_view WhyLess(const std::string& cluster) const { return swapped_.contains(cluster) ? kSwapBug : ""; }

 private:
  ByCluster changed_;
  std::set<std::string> swapped_;  // whose remote Secret was changed
};

class TrueEndpoints final : public Checker {
  void OnTrace(const TraceEvent& event) override { changes_.See(world(), event, {"EndpointSlice", "Service", "Pod"}); }

  void AtRest() override {
    Changes::ByCluster look = changes_.Take();
    for (const auto& [cluster, ns, cause] : doubtful_) look[cluster].emplace(ns, cause);
    doubtful_.clear();
    if (look.empty()) return;
    for (const ServingIstiod& istiod : ServingIstiods(world())) {
      // Which namespaces it reads is another rule.
      if (!istiod.istiod->mesh_config().discovery_selectors.empty()) continue;
      for (const pilot::Registry* registry : LiveRegistries(world(), istiod)) {
        const auto changed = look.find(registry->cluster().str());
        if (changed == look.end()) continue;
        std::map<std::string, CauseId> spaces = changed->second;
        if (const auto all = spaces.find(""); all != spaces.end()) {
          for (const kube::ObjectRef& ns : Api(*registry).List("Namespace")) spaces.emplace(ns->meta.name, all->second);
          spaces.erase("");
        }
        for (const auto& [ns, cause] : spaces) Compare(istiod, *registry, ns, cause);
      }
    }
  }

  fakekube::ApiServer& Api(const pilot::Registry& registry) const {
    return world().cluster(registry.cluster().str()).api();
  }

  void Compare(const ServingIstiod& istiod, const pilot::Registry& registry, const std::string& ns, CauseId cause) {
    fakekube::ApiServer& api = Api(registry);
    std::map<std::string, std::set<std::string>> truth;  // by Service
    for (const kube::ObjectRef& service : api.List("Service", ns)) {
      if (kube::ParseService(*service).type != "ExternalName") truth[service->meta.name];
    }
    for (const kube::ObjectRef& object : api.List("EndpointSlice", ns)) {
      const auto label = object->meta.labels.find("kubernetes.io/service-name");
      if (label == object->meta.labels.end() || !truth.contains(label->second)) continue;
      for (const auto& endpoint : kube::ParseEndpointSlice(*object).endpoints) {
        if (endpoint.ready && !*endpoint.ready) continue;
        if (endpoint.has_target && endpoint.target_kind == "Pod" &&
            api.Get("Pod", {endpoint.target_namespace, endpoint.target_name}) == nullptr)
          continue;
        truth[label->second].insert(endpoint.addresses.begin(), endpoint.addresses.end());
      }
    }
    const bool entries = !api.List("WorkloadEntry.networking.istio.io", ns).empty();
    std::vector<Breach> breaches;
    for (const auto& [service, addresses] : truth) {
      const std::string host = pilot::ServiceHostname(service, ns, "cluster.local");
      std::set<std::string> known;
      if (const pilot::EndpointShards* shards = istiod.istiod->discovery().endpoints().Find(host, ns)) {
        const auto shard = shards->shards.find({registry.cluster(), pilot::Provider::kKubernetes});
        if (shard != shards->shards.end()) {
          for (const pilot::IstioEndpoint& endpoint : *shard->second) known.insert(endpoint.address);
        }
      }
      if (known == addresses) continue;
      Breach breach;
      breach.key = host;
      breach.subject = istiod.name;
      breach.cause = cause;
      for (const std::string& address : addresses) {
        if (known.contains(address)) continue;
        breach.what = fmt::format("does not know {} of {} in {}", address, host, registry.cluster().str());
        breach.known = changes_.WhyLess(registry.cluster().str());
      }
      for (const std::string& address : known) {
        if (breach.what.empty() && !entries && !addresses.contains(address))
          breach.what = fmt::format("knows {} of {} in {}, which is none of its endpoints", address, host,
                                    registry.cluster().str());
      }
      if (!breach.what.empty()) breaches.push_back(std::move(breach));
    }
    if (!breaches.empty()) doubtful_.insert({registry.cluster().str(), ns, cause});
    Tell(istiod.name + " " + registry.cluster().str() + " " + ns, std::move(breaches), kPatience);
  }

  Changes changes_;
  std::set<std::tuple<std::string, std::string, CauseId>> doubtful_;
};

class TrueGateways final : public Checker {
  void OnTrace(const TraceEvent& event) override { changes_.See(world(), event, {"Service", "Namespace"}); }

  void AtRest() override {
    if (changes_.Take().empty() && !doubt_) return;
    doubt_ = false;
    for (const ServingIstiod& istiod : ServingIstiods(world())) {
      for (const pilot::Registry* registry : LiveRegistries(world(), istiod)) Compare(istiod, *registry);
    }
  }

  // Of labelled load balancers with an IP address; host names, node ports and meshNetworks have rules of their own.
  void Compare(const ServingIstiod& istiod, const pilot::Registry& registry) {
    std::set<std::pair<std::string, std::string>> truth, known;
    std::set<std::string> bereft;  // networks with a gateway Service that has no address
    bool others = false;
    for (const kube::ObjectRef& object : world().cluster(registry.cluster().str()).api().List("Service")) {
      const auto label = object->meta.labels.find("topology.istio.io/network");
      if (label == object->meta.labels.end() || label->second.empty()) continue;
      const kube::Service& service = kube::ParseService(*object);
      others = others || service.type != "LoadBalancer" || !service.external_ips.empty();
      if (service.ingress.empty()) bereft.insert(label->second);
      for (const auto& ingress : service.ingress) {
        others = others || ingress.ip.empty();
        if (!ingress.ip.empty()) truth.emplace(label->second, ingress.ip);
      }
    }
    for (const pilot::NetworkGateway& gateway : registry.Gateways()) known.emplace(gateway.network.str(), gateway.addr);
    std::vector<Breach> breaches;
    const auto differ = [&](const auto& from, const auto& in, std::string_view what) {
      for (const auto& [network, address] : from) {
        if (in.contains({network, address})) continue;
        Breach breach;
        breach.key = network + " " + address;
        breach.subject = istiod.name;
        breach.what = fmt::format("{} {} of network {} in {}", what, address, network, registry.cluster().str());
        if (&from == &known && bereft.contains(network)) breach.known = "kept-address";
        if (&from == &truth) breach.known = changes_.WhyLess(registry.cluster().str());
        breaches.push_back(std::move(breach));
      }
    };
    differ(truth, known, "does not know the gateway");
    if (!others) differ(known, truth, "holds a gateway that no Service has:");
    doubt_ = doubt_ || !breaches.empty();
    Tell(istiod.name + " " + registry.cluster().str(), std::move(breaches), kPatience);
  }

  Changes changes_;
  bool doubt_ = false;
};

}  // namespace

std::unique_ptr<Checker> MakeTrueEndpoints() { return std::make_unique<TrueEndpoints>(); }
std::unique_ptr<Checker> MakeTrueGateways() { return std::make_unique<TrueGateways>(); }

}  // namespace wavetank::sim
