#include "scenarios/answers/endpoint_oddities.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/istiod/explain_host.h"
#include "core/istiod/istiod.h"
#include "core/kube/types.h"
#include "core/registry/multicluster/registries.h"
#include "core/registry/multicluster/secret_controller.h"
#include "core/xds/discovery_server.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/answers/address_names.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

using pilot::EndpointDecision;
using pilot::EndpointFilter;
using pilot::HostExplanation;

using Lines = std::vector<std::string>;

std::string Counted(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Endpoints of another network that are sent as they are.
void AddAstray(const HostExplanation::Cluster& cluster, Lines* out) {
  std::map<std::string, size_t> astray;
  for (const EndpointDecision& d : cluster.assignment.endpoints) {
    if (d.refused_by == EndpointFilter::kPassed && !d.own_network && !d.through_gateways)
      ++astray[d.endpoint->p().network.str()];
  }
  for (const auto& [network, count] : astray) {
    out->push_back(
        fmt::format("{} of {} sent by pod address: no gateway to it is known", Counted(count, "endpoint"), network));
  }
}

// Shards of which nothing passes, by what refuses them. That endpoints are of another subset is usual, as long as some
// are of this one; and one of another port.
void AddRefused(const HostExplanation::Cluster& cluster, Lines* out) {
  std::map<std::string, std::map<std::string, size_t>> refused;  // by shard
  std::set<std::string> passing;
  for (const EndpointDecision& d : cluster.assignment.endpoints) {
    const std::string shard = d.shard.cluster.str();
    if (d.refused_by == EndpointFilter::kPassed) {
      passing.insert(shard);
      continue;
    }
    std::string why(pilot::FilterName(d.refused_by));
    if (d.refused_by == EndpointFilter::kMtls && d.mtls) why += fmt::format(" ({})", pilot::VerdictText(*d.mtls));
    if (d.refused_by == EndpointFilter::kPort) why += fmt::format(" (theirs is {})", d.endpoint->p().service_port_name);
    ++refused[shard][why];
  }
  for (const auto& [shard, reasons] : refused) {
    if (passing.contains(shard)) continue;
    for (const auto& [why, count] : reasons) {
      if (!passing.empty() && why == pilot::FilterName(EndpointFilter::kSubset)) continue;
      out->push_back(fmt::format("{} of {} left out by {}", Counted(count, "endpoint"), shard, why));
    }
  }
}

// Clusters whose pods of the service are ready, and of which istiod knows none.
void AddUnknown(const HostExplanation& host, const pilot::Istiod& istiod, const std::string& istiod_name,
                sim::World& world, Lines* out) {
  if (host.candidates.empty()) return;
  const auto& service = *host.candidates.front().service;
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    const auto known = [&](const auto& shard) { return shard.first.cluster.str() == cluster.name && shard.second > 0; };
    const auto& shards = host.candidates.front().shards;
    if (std::any_of(shards.begin(), shards.end(), known)) continue;
    size_t ready = 0;
    for (const kube::ObjectRef& slice : world.cluster(cluster.name).api().List("EndpointSlice")) {
      const auto of = slice->meta.labels.find("kubernetes.io/service-name");
      if (slice->meta.ns != service.attributes.ns || of == slice->meta.labels.end() ||
          of->second != service.attributes.name)
        continue;
      for (const auto& endpoint : kube::ParseEndpointSlice(*slice).endpoints) ready += endpoint.ready.value_or(true);
    }
    if (ready == 0) continue;
    const auto remotes = istiod.registries().secrets().Clusters();
    const bool read =
        std::any_of(remotes.begin(), remotes.end(), [&](const auto& state) { return state.id.str() == cluster.name; });
    out->push_back(fmt::format("{} of {} in {} unknown to {}: {}", Counted(ready, "ready pod"), host.host, cluster.name,
                               istiod_name,
                               read ? "it has not read that cluster" : "no remote Secret of that cluster is in use"));
  }
}

// Envoy keeps the first of several endpoints of one address (updateLocalityEndpoints).
void AddDoubled(const HostExplanation::Cluster& cluster, Lines* out) {
  std::map<std::string, std::vector<std::pair<std::string, uint32_t>>> gateways;  // address: localities with weights
  for (const EndpointDecision& d : cluster.assignment.endpoints) {
    for (const pilot::EndpointRoute& r : d.routes) {
      if (!r.gateway) continue;
      auto& localities = gateways[fmt::format("{}:{}", r.address, r.port)];
      const std::pair<std::string, uint32_t> locality(r.locality, r.weight);
      if (std::find(localities.begin(), localities.end(), locality) == localities.end()) localities.push_back(locality);
    }
  }
  for (auto& [address, localities] : gateways) {
    if (localities.size() < 2) continue;
    std::sort(localities.begin(), localities.end());
    uint32_t sum = 0;
    for (const auto& [name, weight] : localities) sum += weight;
    out->push_back(fmt::format("{} stands in {} localities, and Envoy keeps the first: weight {} of {}", address,
                               localities.size(), localities.front().second, sum));
  }
}

// Pods' addresses that belong to no pod any more.
void AddStale(const HostExplanation::Cluster& cluster, sim::World& world, Lines* out) {
  AddressNames names(world);
  names.Learn();
  std::map<std::string, size_t> stale;
  for (const EndpointDecision& d : cluster.assignment.endpoints) {
    if (d.refused_by != EndpointFilter::kPassed || d.endpoint->p().workload_name.empty()) continue;
    if (names.Named(d.endpoint->address + ":0") == d.endpoint->address + ":0") ++stale[d.shard.cluster.str()];
  }
  for (const auto& [shard, count] : stale)
    out->push_back(fmt::format("{} of {} stale: of pods that are gone", Counted(count, "endpoint"), shard));
}

std::string RegionOf(std::string_view locality) { return std::string(locality.substr(0, locality.find('/'))); }

// What decides between localities, where endpoints are in several regions.
void AddLocality(const HostExplanation& host, const HostExplanation::Cluster& cluster, Lines* out) {
  const pilot::AssignmentExplanation& a = cluster.assignment;
  std::set<std::string> regions;
  size_t last = 0;
  for (const EndpointDecision& d : a.endpoints) {
    if (d.refused_by != EndpointFilter::kPassed) continue;
    const std::string region = RegionOf(d.endpoint->p().locality.label);
    regions.insert(region);
    if (d.through_gateways && !d.routes.empty() && d.routes.front().priority > 0 && region == RegionOf(host.locality))
      ++last;
  }
  if (a.locality_lb == pilot::LocalityLbMode::kFailoverPriority && last > 0) {
    out->push_back(fmt::format("{} of the client's own region used last: gateways have no topology labels to compare",
                               Counted(last, "endpoint")));
  }
  if (a.locality_lb == pilot::LocalityLbMode::kOff && !a.rule.empty() && !a.outlier_detection && regions.size() > 1) {
    out->push_back(fmt::format("{} regions have one priority: DestinationRule {} has no outlierDetection",
                               regions.size(), a.rule));
  }
}

void AddOfCluster(const HostExplanation::Cluster& cluster, sim::World& world, Lines* out) {
  if (cluster.assignment.refusal == pilot::AssignmentRefusal::kNotEds) return;
  if (cluster.assignment.refusal != pilot::AssignmentRefusal::kNone) {
    out->push_back(fmt::format("{}: no endpoints: {}", cluster.name, pilot::RefusalText(cluster.assignment.refusal)));
    return;
  }
  AddAstray(cluster, out);
  AddStale(cluster, world, out);
  AddDoubled(cluster, out);
  AddRefused(cluster, out);
}

// As the client's resolver completes it.
HostExplanation Explain(const pilot::Proxy& proxy, const pilot::PushContext& push, const ServiceQuestion& q) {
  HostExplanation out;
  for (const std::string& suffix :
       {std::string(), std::string(".svc.cluster.local"), "." + q.ns + ".svc.cluster.local"}) {
    out = pilot::ExplainHost(proxy, push, q.host + suffix);
    if (!out.candidates.empty()) return out;
  }
  return out;
}

// What the client's Envoy holds is not what istiod would send now.
void AddBehind(const HostExplanation& host, const ServiceQuestion& q, const sim::PodProcess& client, Lines* out) {
  if (client.envoy() == nullptr) return;
  std::set<std::string> sent, held;
  for (const HostExplanation::Cluster& cluster : host.clusters) {
    const auto key = pilot::ParseSubsetKey(cluster.name);
    if (!key || key->port != q.port || !cluster.watched) continue;
    for (const EndpointDecision& d : cluster.assignment.endpoints) {
      for (const pilot::EndpointRoute& r : d.routes) {
        const bool six = r.address.find(':') != std::string::npos;
        sent.insert((six ? "[" + r.address + "]" : r.address) + fmt::format(":{}", r.port));
      }
    }
    for (const envoysim::EndpointStatus& e : client.envoy()->Endpoints()) {
      if (e.cluster == cluster.name) held.insert(e.address);
    }
  }
  size_t lacks = 0, keeps = 0;
  for (const std::string& address : sent) lacks += held.contains(address) ? 0 : 1;
  for (const std::string& address : held) keeps += sent.contains(address) ? 0 : 1;
  if (lacks + keeps == 0) return;
  out->push_back(fmt::format("{} is behind what its istiod knows: it lacks {} and still has {} too many", client.name(),
                             Counted(lacks, "endpoint"), keeps));
}

// A client of an istiod.
struct Asked {
  const pilot::Istiod& istiod;
  const pilot::Proxy& proxy;
  const sim::PodProcess& client;
};

void AddOf(const Asked& asked, const std::string& istiod_name, const ServiceQuestion& q, sim::World& world,
           Lines* out) {
  const HostExplanation host = Explain(asked.proxy, *asked.istiod.discovery().last_push_context(), q);
  for (const auto& state : asked.istiod.registries().secrets().Clusters()) {
    if (!state.stopped) continue;
    out->push_back(fmt::format("{} is watched no more: its Secret {} could not be used", state.id.str(), state.secret));
  }
  if (host.candidates.empty()) out->push_back(fmt::format("no registry has a service {}", q.host));
  AddUnknown(host, asked.istiod, istiod_name, world, out);
  for (const HostExplanation::Cluster& cluster : host.clusters) {
    const auto key = pilot::ParseSubsetKey(cluster.name);
    if (key && key->port != q.port) continue;
    AddOfCluster(cluster, world, out);
    AddLocality(host, cluster, out);
  }
  AddBehind(host, q, asked.client, out);
}

}  // namespace

Lines EndpointOddities(sim::World& world, const ServiceQuestion& q) {
  std::map<std::string, const sim::PodProcess*> clients;
  for (const sim::PodProcess* pod : world.Pods(q.cluster, q.ns, q.app)) {
    if (pod->envoy() != nullptr) clients[pod->name()] = pod;
  }
  // One client of each istiod: those of an app are alike.
  std::vector<Asked> asked;
  for (const sim::IstiodProcess* process : world.Istiods()) {
    const pilot::Istiod& istiod = process->istiod();
    if (istiod.discovery().last_push_context() == nullptr) continue;
    for (const pilot::Connection* connection : istiod.discovery().Clients()) {
      const pilot::Proxy& proxy = connection->proxy();
      const auto client = clients.find(proxy.id + "@" + proxy.cluster().str());
      if (client == clients.end()) continue;
      asked.push_back({istiod, proxy, *client->second});
      break;
    }
  }
  Lines out;
  if (asked.empty() && !clients.empty())
    out.push_back(fmt::format("{} is connected with no istiod", clients.begin()->first));
  for (const Asked& each : asked) {
    AddOf(each, (asked.size() > 1 ? "one of " : "") + q.cluster + (asked.size() > 1 ? "'s istiods" : "'s istiod"), q,
          world, &out);
  }
  return out;
}

}  // namespace wavetank::scenario
