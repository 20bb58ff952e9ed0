#include "capacity/recorded/fleet_of_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_split.h"
#include "capacity/recorded/churn_counter.h"
#include "capacity/recorded/fit_endpoints.h"
#include "core/base/duration.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/quantity.h"
#include "core/kube/types.h"
#include "replay/event_log.h"
#include "replay/world_target.h"
#include "sim/mending/installation.h"
#include "sim/pod_process.h"
#include "sim/world.h"

namespace wavetank::capacity {
namespace {

using Status = absl::Status;

// A mesh has come up when it was at rest for so long; one that never rests, after so long.
constexpr int kRestSeconds = 3;
constexpr Duration kComesUp = 5min;

// Namespaces of Kubernetes and of Istio, whose Services are none of the mesh's own.
class SystemNamespaces {
 public:
  explicit SystemNamespaces(sim::World& world) {
    for (const sim::WorldCluster& cluster : world.options().clusters)
      of_control_planes_.insert(sim::SystemNamespaceOf(world.cluster(cluster.name).api()));
  }
  bool Has(const std::string& ns) const {
    return of_control_planes_.contains(ns) || ns == "istio-system" || ns.starts_with("kube-") || ns == "istio-operator";
  }

 private:
  std::set<std::string> of_control_planes_;
};

int64_t Mean(int64_t sum, size_t of) {
  return of == 0 ? 0 : static_cast<int64_t>(std::llround(static_cast<double>(sum) / static_cast<double>(of)));
}

int64_t Ppm(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : std::min<int64_t>(1'000'000, part * 1'000'000 / whole);
}

// A mesh in numbers at one instant.
struct Shape {
  size_t clusters = 0, primaries = 0;
  std::set<std::string> networks;
  int64_t namespaces = 0, nodes = 0, zones = 0, services = 0, proxies = 0, gateways = 0, istiods = 0;  // sums
  int64_t shared = 0;                                                                                  // names
  int64_t virtual_services = 0, destination_rules = 0, authorization_policies = 0;
  double seen = 0;  // Services, by a sidecar on average
  std::vector<int64_t> endpoints;
  std::vector<std::string> remotes;
  int64_t Endpoints() const {
    int64_t sum = 0;
    for (const int64_t n : endpoints) sum += n;
    return sum;
  }
};

// Of a Service: the pods that its slices name, ready or not.
std::map<std::string, int64_t> EndpointsOf(const fakekube::ApiServer& api) {
  std::map<std::string, std::set<std::string>> addresses;
  for (const kube::ObjectRef& object : api.List("EndpointSlice")) {
    const auto owner = object->meta.labels.find("kubernetes.io/service-name");
    if (owner == object->meta.labels.end()) continue;
    std::set<std::string>& own = addresses[object->meta.ns + "/" + owner->second];
    for (const kube::EndpointSlice::Endpoint& endpoint : kube::ParseEndpointSlice(*object).endpoints) {
      own.insert(endpoint.addresses.begin(), endpoint.addresses.end());
    }
  }
  std::map<std::string, int64_t> out;
  for (const auto& [name, own] : addresses) out[name] = static_cast<int64_t>(own.size());
  return out;
}

void LookAtCluster(sim::World& world, const sim::WorldCluster& cluster, const SystemNamespaces& system, Shape* out,
                   std::map<std::string, size_t>* clusters_of_service) {
  const fakekube::ApiServer& api = world.cluster(cluster.name).api();
  out->networks.insert(cluster.mesh_network());
  if (cluster.primary()) {
    ++out->primaries;
  } else {
    out->remotes.push_back(cluster.name);
  }
  const std::map<std::string, int64_t> endpoints = EndpointsOf(api);
  std::set<std::string> namespaces;
  for (const kube::ObjectRef& service : api.List("Service")) {
    // The API server's own is everywhere, and nobody's workload.
    if (system.Has(service->meta.ns) || (service->meta.ns == "default" && service->meta.name == "kubernetes")) continue;
    namespaces.insert(service->meta.ns);
    ++out->services;
    const std::string name = service->meta.ns + "/" + service->meta.name;
    ++(*clusters_of_service)[name];
    const auto own = endpoints.find(name);
    out->endpoints.push_back(own == endpoints.end() ? 0 : own->second);
  }
  out->namespaces += static_cast<int64_t>(namespaces.size());
  std::set<std::string> zones;
  for (const kube::ObjectRef& node : api.List("Node")) {
    ++out->nodes;
    const auto zone = node->meta.labels.find("topology.kubernetes.io/zone");
    if (zone != node->meta.labels.end()) zones.insert(zone->second);
  }
  out->zones += static_cast<int64_t>(zones.size());
  const auto count = [&](std::string_view kind) { return static_cast<int64_t>(api.List(kind).size()); };
  out->virtual_services += count("VirtualService.networking.istio.io");
  out->destination_rules += count("DestinationRule.networking.istio.io");
  out->authorization_policies += count("AuthorizationPolicy.security.istio.io");
}

Shape Look(sim::World& world) {
  Shape out;
  const SystemNamespaces system(world);
  std::map<std::string, size_t> clusters_of_service;
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    ++out.clusters;
    LookAtCluster(world, cluster, system, &out, &clusters_of_service);
  }
  for (const auto& [name, clusters] : clusters_of_service) out.shared += clusters > 1 ? 1 : 0;
  out.istiods = static_cast<int64_t>(world.Istiods().size());
  int64_t sidecars = 0, seen = 0;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (!pod->bootstrap()) continue;
    ++(pod->router() ? out.gateways : out.proxies);
    if (pod->router() || pod->envoy() == nullptr) continue;
    std::set<std::string> hosts;
    for (const std::string& cluster : pod->envoy()->ClusterNames()) {
      // outbound|PORT|SUBSET|HOST (istiod: pilot/pkg/model, BuildSubsetKey).
      const std::vector<std::string> parts = absl::StrSplit(cluster, '|');
      if (parts.size() != 4 || parts[0] != "outbound") continue;
      const std::vector<std::string> name = absl::StrSplit(parts[3], '.');
      if (name.size() < 2 || !system.Has(name[1])) hosts.insert(parts[3]);
    }
    ++sidecars;
    seen += static_cast<int64_t>(hosts.size());
  }
  if (sidecars > 0) out.seen = static_cast<double>(seen) / static_cast<double>(sidecars);
  return out;
}

// Requests and limits of the container `discovery`, where a Deployment says them.
void TakeResources(sim::World& world, IstiodSpec* out) {
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    const fakekube::ApiServer& api = world.cluster(cluster.name).api();
    for (const kube::ObjectRef& object : api.List("Deployment.apps", sim::SystemNamespaceOf(api))) {
      const nlohmann::json& pod = At(object->body, {"spec", "template", "spec"});
      for (const nlohmann::json& container : Items(At(pod, "containers"))) {
        if (Text(container, "name") != "discovery") continue;
        const nlohmann::json& limits = At(container, {"resources", "limits"});
        const auto amount = [&](std::string_view what) {
          const auto nanos = kube::QuantityNanos(At(limits, what));
          return nanos ? static_cast<double>(*nanos) / static_cast<double>(kube::kNanosPerUnit) : 0;
        };
        if (const double cpus = amount("cpu"); cpus >= 0.01 && cpus <= 256) out->cpus = cpus;
        if (const double bytes = amount("memory"); bytes >= 1 << 20) out->memory_mb = bytes / (1 << 20);
      }
    }
  }
}

Fleet FleetOf(const Shape& shape, sim::World& world) {
  Fleet out;
  out.seed = world.options().seed;
  out.clusters = static_cast<int64_t>(shape.clusters);
  out.one_network = shape.networks.size() == 1;
  out.namespaces = std::max<int64_t>(1, Mean(shape.namespaces, shape.clusters));
  out.nodes = std::max<int64_t>(1, Mean(shape.nodes, shape.clusters));
  out.zones = std::clamp<int64_t>(Mean(shape.zones, shape.clusters), 1, std::min<int64_t>(26, out.nodes));
  out.services = std::max<int64_t>(1, Mean(shape.services, shape.clusters));
  out.shared_ppm = Ppm(shape.shared, out.services);
  out.endpoints = FitEndpoints(shape.endpoints, shape.clusters);
  out.proxies = Mean(shape.proxies, shape.clusters);
  out.gateways = Mean(shape.gateways, shape.clusters);
  out.virtual_services_ppm = Ppm(shape.virtual_services, shape.services);
  out.destination_rules_ppm = Ppm(shape.destination_rules, shape.services);
  out.authorization_policies_ppm = Ppm(shape.authorization_policies, shape.services);
  const auto shared = static_cast<double>(out.services) * static_cast<double>(out.shared_ppm) / 1e6;
  const double all = shared + (static_cast<double>(out.services) - shared) * static_cast<double>(out.clusters);
  // Less by a tenth and more: somebody scopes.
  if (shape.seen > 0 && shape.seen < 0.9 * all) out.scope = std::max<int64_t>(1, std::llround(shape.seen));
  out.istiod.replicas = std::max<int64_t>(1, Mean(shape.istiods, std::max<size_t>(1, shape.primaries)));
  const sim::Timing& timing = world.timing();
  out.istiod.debounce_after = timing.debounce_after;
  out.istiod.debounce_max = timing.debounce_max;
  out.istiod.push_throttle = timing.push_throttle;
  out.istiod.requests_per_second = timing.connections_per_second;
  TakeResources(world, &out.istiod);
  return out;
}

// A run of the log under eyes that count.
class Watched {
 public:
  Watched(replay::LogReader& log, replay::SecretSource secrets) : log_(log), target_(std::move(secrets)) {}

  Status Run() {
    const absl::StatusOr<replay::LogReader::Summary> summary = VerifyUsable(log_);
    if (!summary.ok()) return summary.status();
    end_ = summary->end;
    if (Status status = target_.Start(log_.header(), [](const replay::LoggedEvent&) {}); !status.ok()) return status;
    look_at_ = target_.world()->options().start;
    for (const sim::WorldCluster& cluster : target_.world()->options().clusters) Observe(cluster.name);
    while (true) {
      const absl::StatusOr<replay::LogReader::Item> item = log_.Next();
      if (!item.ok()) return item.status();
      if (*item == replay::LogReader::Item::kEnd) break;
      if (*item != replay::LogReader::Item::kInput) continue;
      const replay::LogInput& input = log_.input();
      traffic_ = traffic_ || input.kind == "traffic";
      AdvanceTo(input.at);
      if (Status status = target_.Do(input); !status.ok()) {
        return Status(status.code(), fmt::format("{}: {}: {}", log_.path(), Describe(input, log_.header().Beginning()),
                                                 Message(status)));
      }
    }
    AdvanceTo(end_);
    if (!begun_) Begin(end_);
    return absl::OkStatus();
  }

  sim::World& world() { return *target_.world(); }
  const ChurnCounter& churn() const { return churn_; }
  const Shape& at_first() const { return at_first_; }
  bool traffic() const { return traffic_; }  // somebody asked somebody
  Time end() const { return end_; }
  Duration counted() const { return end_ - *begun_; }

 private:
  void Observe(const std::string& cluster) {
    fakekube::ApiServer& api = world().cluster(cluster).api();
    for (const std::string& kind : ChurnCounter::Kinds()) {
      subscriptions_.Add(api.Observe(
          kind, [this, cluster](const fakekube::Change& change) { churn_.OnChange(cluster, world().Now(), change); }));
    }
  }
  // Once a second it looks whether the mesh is up: at rest, with somebody in it. (A mesh is built in several steps, and
  // between them it rests for a moment.)
  void AdvanceTo(Time time) {
    for (; !begun_ && look_at_ <= time; look_at_ += 1s) {
      target_.AdvanceTo(look_at_);
      const bool rests = world().Settled() && !world().Istiods().empty() && !world().Pods().empty();
      rested_ = rests ? rested_ + 1 : 0;
      if (rested_ > kRestSeconds || look_at_ - world().options().start >= kComesUp) Begin(look_at_);
    }
    target_.AdvanceTo(time);
  }
  void Begin(Time at) {
    begun_ = at;
    churn_.Begin(at);
    at_first_ = Look(world());
  }

  bool traffic_ = false;
  replay::LogReader& log_;
  replay::WorldTarget target_;
  Subscriptions subscriptions_;
  ChurnCounter churn_;
  Shape at_first_;
  std::optional<Time> begun_;
  int rested_ = 0;  // seconds
  Time look_at_{}, end_{};
};

std::vector<std::string> Notes(const Shape& shape, const Fleet& fleet, const Watched& run) {
  std::vector<std::string> out;
  if (!shape.remotes.empty()) {
    out.push_back(fmt::format("{} {} no istiod of {} own; a fleet's clusters all have one",
                              fmt::join(shape.remotes, ", "), shape.remotes.size() == 1 ? "has" : "have",
                              shape.remotes.size() == 1 ? "its" : "their"));
  }
  if (shape.networks.size() > 1 && shape.networks.size() < shape.clusters) {
    out.push_back(fmt::format("{} clusters are on {} networks; in the fleet each is on its own", shape.clusters,
                              shape.networks.size()));
  }
  int64_t fitted = 0;
  for (int64_t cluster = 0; cluster < fleet.clusters; ++cluster) {
    for (const int64_t n : DrawEndpoints(fleet, cluster)) fitted += n;
  }
  if (const int64_t is = shape.Endpoints(); std::abs(fitted - is) * 10 > is) {
    out.push_back(fmt::format("{} endpoints became {}: they fit none of fixed, range and zipf well", is, fitted));
  }
  for (const auto& [what, times] : run.churn().others()) out.push_back(fmt::format("{}: {}, left out", what, times));
  if (run.traffic()) out.push_back("traffic between services is left out");
  return out;
}

}  // namespace

absl::StatusOr<RecordedFleet> FleetOfLog(const std::string& path, replay::SecretSource secrets,
                                         const std::function<void(std::string_view)>& progress) {
  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(path);
  if (!log.ok()) return log.status();
  if (progress) progress("runs the log");
  Watched run(**log, std::move(secrets));
  if (Status status = run.Run(); !status.ok()) return status;
  // What broke during an incident is no shape, nor is what had not come yet.
  const Shape last = Look(run.world());
  const Shape& shape = last.Endpoints() >= run.at_first().Endpoints() ? last : run.at_first();
  if (shape.services == 0) {
    return absl::FailedPreconditionError(
        fmt::format("{}: its clusters have no Services outside of system namespaces; a fleet needs some", path));
  }
  if (run.counted() < 1s) {
    return absl::FailedPreconditionError(
        fmt::format("{}: it ends {} after its mesh came up; a longer one tells how often things change", path,
                    FormatDuration(run.counted())));
  }
  RecordedFleet out;
  out.fleet = FleetOf(shape, run.world());
  out.fleet.name = (*log)->header().scenario_name.empty() ? "Like " + path.substr(path.find_last_of('/') + 1)
                                                          : "Like " + (*log)->header().scenario_name;
  out.fleet.duration = std::min<Duration>(run.counted(), 48h);
  out.fleet.churn = run.churn().Spec(run.end());
  out.notes = Notes(shape, out.fleet, run);
  return out;
}

}  // namespace wavetank::capacity
