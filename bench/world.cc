// Whole worlds: the main scenario, and a mesh of 1,000 sidecars that starts cold.
//
// What a user waits for, and what a world keeps in memory. The mesh has two primary clusters on two networks with an
// east-west gateway and a remote Secret each; every service has the same number of pods in both, so every sidecar has
// endpoints of its own cluster and the other's gateway for each of them.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "fakes/envoy/envoy.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "scenarios/runner/start.h"
#include "sim/inputs/kinds/install.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/inputs/kinds/remote_secret.h"
#include "sim/world.h"

namespace wavetank {
namespace {

using nlohmann::json;
using sim::Input;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "bench_world: %s\n", why.c_str());
  std::abort();
}

// The process's memory in MB now, and at its peak since ResetPeak().
int64_t StatusMegabytes(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0) return std::atoll(line.c_str() + std::string(field).size() + 1) / 1024;
  }
  return 0;
}
void ResetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

void MainScenario(benchmark::State& state) {
  const absl::StatusOr<scenario::Scenario> main =
      scenario::LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network/scenario.yaml");
  if (!main.ok()) Fail(main.status().ToString());
  double virtual_seconds = 0, records = 0;
  for (auto _ : state) {
    const absl::StatusOr<scenario::RunResult> result = scenario::Run(*main, {});
    if (!result.ok()) Fail(result.status().ToString());
    virtual_seconds += static_cast<double>((result->end - Time{}).count()) / 1e9;
    records += static_cast<double>(result->trace_records);
  }
  state.counters["virtual s per s"] = benchmark::Counter(virtual_seconds, benchmark::Counter::kIsRate);
  state.counters["records/s"] = benchmark::Counter(records, benchmark::Counter::kIsRate);
}
BENCHMARK(MainScenario)->Unit(benchmark::kMillisecond);

class Mesh {
 public:
  Mesh(int sidecars, int services) {
    for (int c = 1; c <= 2; ++c) {
      const std::string name = fmt::format("cluster{}", c);
      sim::WorldCluster cluster{name,
                                fmt::format("network{}", c),
                                name,
                                fmt::format("10.{}.0.0/16", c * 10),
                                fmt::format("10.{}.0.0/16", 100 + c * 10),
                                fmt::format("172.16.{}.0/24", c),
                                false,
                                {}};
      for (int n = 0; n < 4; ++n) {
        cluster.nodes.push_back({fmt::format("node{}", n), fmt::format("region{}", c), fmt::format("zone{}", n)});
      }
      AddCluster(cluster, sidecars / 2, services);
      options_.clusters.push_back(std::move(cluster));
    }
    Add(1, sim::inputs::SetRemoteSecret{"cluster2", "cluster1", "present"});
    Add(1, sim::inputs::SetRemoteSecret{"cluster1", "cluster2", "present"});
  }

  std::unique_ptr<sim::World> Start() const {
    absl::StatusOr<std::unique_ptr<sim::World>> world = sim::World::Create(options_);
    if (!world.ok()) Fail(world.status().ToString());
    for (const auto& phase : start_.phases) {
      for (const Input& input : phase) {
        if (const absl::Status status = (*world)->Do(input); !status.ok()) Fail(status.ToString());
      }
      if (!(*world)->RunUntilSettled((*world)->Now() + 10min)) Fail("the mesh has not settled");
    }
    return *std::move(world);
  }

 private:
  void Add(int phase, Input input) { start_.phases[phase].push_back(std::move(input)); }
  void Apply(int phase, const std::string& cluster, json object) {
    Add(phase, sim::inputs::ApplyObject{cluster, std::move(object)});
  }
  static json Object(const char* api, const char* kind, const std::string& ns, const std::string& name) {
    return {{"apiVersion", api}, {"kind", kind}, {"metadata", {{"name", name}, {"namespace", ns}}}};
  }
  static json Deployment(const std::string& ns, const std::string& name, int replicas, const json& labels, json spec) {
    json out = Object("apps/v1", "Deployment", ns, name);
    out["spec"] = {{"replicas", replicas},
                   {"selector", {{"matchLabels", {{"app", name}}}}},
                   {"template", {{"metadata", {{"labels", labels}}}, {"spec", std::move(spec)}}}};
    return out;
  }

  void AddCluster(const sim::WorldCluster& cluster, int sidecars, int services) {
    json system = {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "istio-system"}}}};
    system["metadata"]["labels"] = {{"topology.istio.io/network", cluster.network}};
    Apply(0, cluster.name, std::move(system));
    Add(0, sim::inputs::PlugInCa{cluster.name, "root"});
    Add(0, sim::inputs::Install{cluster.name});
    AddGateway(cluster);

    Apply(2, cluster.name,
          {{"apiVersion", "v1"},
           {"kind", "Namespace"},
           {"metadata", {{"name", "shop"}, {"labels", {{"istio-injection", "enabled"}}}}}});
    Apply(2, cluster.name, Object("v1", "ServiceAccount", "shop", "shop"));
    for (int i = 0; i < services; ++i) {
      const std::string name = fmt::format("service{}", i);
      json service = Object("v1", "Service", "shop", name);
      service["spec"] = {{"selector", {{"app", name}}},
                         {"ports", json::array({{{"name", "http"}, {"port", 8000}, {"targetPort", 8000}}})}};
      Apply(2, cluster.name, std::move(service));
      // The first services have the rest.
      const int replicas = sidecars / services + (i < sidecars % services ? 1 : 0);
      Apply(2, cluster.name,
            Deployment("shop", name, replicas, {{"app", name}, {"version", "v1"}},
                       {{"serviceAccountName", "shop"},
                        {"containers", json::array({{{"name", "app"},
                                                     {"image", "example/app"},
                                                     {"ports", json::array({{{"containerPort", 8000}}})}}})}}));
    }
  }

  void AddGateway(const sim::WorldCluster& cluster) {
    const std::string name = "istio-eastwestgateway";
    const json labels = {{"app", name}, {"istio", "eastwestgateway"}, {"topology.istio.io/network", cluster.network}};
    json pod_labels = labels;
    pod_labels["sidecar.istio.io/inject"] = "true";
    json deployment = Deployment(
        "istio-system", name, 1, pod_labels,
        {{"containers",
          json::array(
              {{{"name", "istio-proxy"},
                {"image", "auto"},
                {"env", json::array({{{"name", "ISTIO_META_REQUESTED_NETWORK_VIEW"}, {"value", cluster.network}}})},
                {"ports", json::array({{{"containerPort", 15021}}, {{"containerPort", 15443}}})}}})}});
    deployment["spec"]["template"]["metadata"]["annotations"] = {{"inject.istio.io/templates", "gateway"}};
    Apply(1, cluster.name, std::move(deployment));
    json service = Object("v1", "Service", "istio-system", name);
    service["metadata"]["labels"] = labels;
    service["spec"] = {{"type", "LoadBalancer"},
                       {"selector", {{"istio", "eastwestgateway"}}},
                       {"ports", json::array({{{"name", "status-port"}, {"port", 15021}, {"targetPort", 15021}},
                                              {{"name", "tls"}, {"port", 15443}, {"targetPort", 15443}}})}};
    Apply(1, cluster.name, std::move(service));
    json gateway = Object("networking.istio.io/v1alpha3", "Gateway", "istio-system", "cross-network-gateway");
    gateway["spec"] = {{"selector", {{"istio", "eastwestgateway"}}},
                       {"servers", json::array({{{"port", {{"number", 15443}, {"name", "tls"}, {"protocol", "TLS"}}},
                                                 {"tls", {{"mode", "AUTO_PASSTHROUGH"}}},
                                                 {"hosts", json::array({"*.local"})}}})}};
    Apply(1, cluster.name, std::move(gateway));
  }

  sim::WorldOptions options_;
  scenario::StartPhases start_;
};

// Every sidecar and gateway has to be connected, with endpoints of its own network and behind the other's gateway.
void Check(const sim::World& world, size_t sidecars, size_t services) {
  for (const std::string& complaint : world.Complaints()) Fail(complaint);
  size_t connected = 0;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pod->envoy() == nullptr) continue;
    if (!pod->envoy()->ads_connected()) Fail(pod->name() + " is not connected");
    ++connected;
    if (pod->router()) continue;
    size_t endpoints = 0;
    for (const envoysim::EndpointStatus& endpoint : pod->envoy()->Endpoints()) {
      if (absl::StartsWith(endpoint.cluster, "outbound|8000||service")) ++endpoints;
    }
    if (endpoints != sidecars / 2 + std::min(services, sidecars / 2))
      Fail(fmt::format("{} knows {} endpoints", pod->name(), endpoints));
  }
  if (connected != sidecars + 2) Fail(fmt::format("{} proxies instead of {}", connected, sidecars + 2));
}

void ColdStart(benchmark::State& state) {
  const Mesh mesh(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  double virtual_seconds = 0, records = 0, events = 0;
  int64_t peak = 0;
  for (auto _ : state) {
    ResetPeak();
    std::unique_ptr<sim::World> world = mesh.Start();
    state.SetLabel(fmt::format("digest {}", world->kernel().digest().Hex()));
    records = static_cast<double>(world->kernel().digest().records());
    events = static_cast<double>(world->kernel().dispatched());
    virtual_seconds += static_cast<double>((world->Now() - Time{}).count()) / 1e9;
    peak = std::max(peak, StatusMegabytes("VmHWM"));
    state.PauseTiming();  // the end of a world is nobody's wait
    Check(*world, static_cast<size_t>(state.range(0)), static_cast<size_t>(state.range(1)));
    world.reset();
    state.ResumeTiming();
  }
  state.counters["virtual s per s"] = benchmark::Counter(virtual_seconds, benchmark::Counter::kIsRate);
  state.counters["peak MB"] = static_cast<double>(peak);
  state.counters["events"] = events;
  state.counters["records"] = records;
}
BENCHMARK(ColdStart)
    ->ArgNames({"sidecars", "services"})
    ->Args({100, 100})
    ->Args({1000, 100})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace wavetank
