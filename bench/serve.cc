// A push to real gRPC clients on loopback: one Service with 1,000 endpoints, of which one changes, and a thousand
// clients that watch it, each on a connection of its own. What is timed: from the moment the change is posted until a
// client has the response, debouncing (100 ms, PILOT_DEBOUNCE_AFTER) included, which is therefore shown apart. Clients
// and server share the machine.
//
// Other cases have hostile clients among them, a tenth: such that ask without pause and read nothing, and such that
// read what they asked for. The others' times and the server's memory say whether that matters.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "bench/serve_clients.h"
#include "fmt/format.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/start.h"
#include "serve/server.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::serve {
namespace {

using nlohmann::json;

constexpr int kEndpoints = 1000;
constexpr Duration kDebounce = 100ms;

// Resident bytes of this process, which is the server alone.
int64_t Resident() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * 4096;
}

// `turn` moves the last endpoint.
sim::Input Slices(int turn) {
  json endpoints = json::array();
  for (int i = 0; i < kEndpoints; ++i) {
    const int last = i + 1 < kEndpoints ? i : kEndpoints + turn % 1000;
    endpoints.push_back({{"addresses", {fmt::format("10.200.{}.{}", last / 250, last % 250 + 1)}},
                         {"conditions", {{"ready", true}}},
                         {"nodeName", "cluster1-node1"}});
  }
  return sim::inputs::ApplyObject{
      "cluster1",
      {{"apiVersion", "discovery.k8s.io/v1"},
       {"kind", "EndpointSlice"},
       {"metadata",
        {{"namespace", "sample"}, {"name", "many-1"}, {"labels", {{"kubernetes.io/service-name", "many"}}}}},
       {"addressType", "IPv4"},
       {"ports", {{{"name", "http"}, {"port", 8080}, {"protocol", "TCP"}}}},
       {"endpoints", endpoints}}};
}

std::unique_ptr<Server> Start() {
  SessionOptions session;
  session.scenario =
      *scenario::LoadScenario(std::string(WAVETANK_SOURCE_DIR) + "/scenarios/multi-primary-multi-network");
  session.start = *scenario::MakeStart(session.scenario);
  session.timing = {{"istiod.connections_per_second", "0"}};
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.secure_listen.clear();
  options.limits.unread_bytes = 4 << 20;
  auto made = Session::Create(std::move(session));
  if (!made.ok()) return nullptr;
  auto server = Server::Start(*std::move(made), options);
  return server.ok() ? *std::move(server) : nullptr;
}

// Arguments: clients, of which how many percent are hostile, and how (BenchKind).
void PushToRealClients(benchmark::State& state) {
  AllowManyFiles();
  const auto count = static_cast<int>(state.range(0));
  const int hostile_count = count * static_cast<int>(state.range(1)) / 100;
  const std::unique_ptr<Server> server = Start();
  if (server == nullptr) return state.SkipWithError("the server does not start");
  const auto node = *server->loop().Call([](sim::World& world) {
    world
        .Do(sim::inputs::ApplyObject{"cluster1",
                                     {{"apiVersion", "v1"},
                                      {"kind", "Service"},
                                      {"metadata", {{"namespace", "sample"}, {"name", "many"}}},
                                      {"spec", {{"ports", {{{"name", "http"}, {"port", 80}, {"targetPort", 8080}}}}}}}})
        .IgnoreError();
    world.Do(Slices(0)).IgnoreError();
    const auto bootstrap = *pilot::ReadProxyBootstrap(world.Pods("cluster1", "", "sleep").front()->pod()->body);
    pilot::Node plain;
    plain.id = bootstrap.node_id;
    plain.metadata = bootstrap.metadata;
    envoy::config::core::v3::Node out;
    pilot::ToProto(plain, &out);
    return out;
  });
  std::this_thread::sleep_for(1s);

  const std::string& address = server->ListenersOf("cluster1")->plaintext;
  const int64_t before = Resident();
  const auto readers = static_cast<size_t>(count - hostile_count);
  ClientProcess fair(address, node, count - hostile_count, BenchKind::kFair);
  if (fair.Await(readers).size() < readers) return state.SkipWithError("not all clients were answered");
  std::optional<ClientProcess> hostile;
  if (hostile_count > 0) hostile.emplace(address, node, hostile_count, static_cast<BenchKind>(state.range(2)));
  std::this_thread::sleep_for(1s);

  std::vector<double> times;
  double first_push = 0;
  int64_t most = 0;
  int turn = 0;
  for (auto _ : state) {
    const int64_t posted = RealNow();
    server->loop().Post([input = Slices(++turn)](sim::World& world) { world.Do(input).IgnoreError(); });
    const std::vector<int64_t> arrivals = fair.Await(readers);
    if (arrivals.size() < readers) {
      state.SkipWithError("a push did not reach everybody");
      break;
    }
    int64_t last = posted;
    for (const int64_t at : arrivals) {
      times.push_back(static_cast<double>(at - posted - kDebounce.count()) / 1e6);
      last = std::max(last, at);
    }
    if (turn == 1) first_push = static_cast<double>(last - posted - kDebounce.count()) / 1e6;
    most = std::max(most, Resident());
    state.SetIterationTime(static_cast<double>(last - posted) / 1e9);
  }
  std::sort(times.begin(), times.end());
  if (!times.empty()) {
    state.counters["p50_ms"] = times[times.size() / 2];
    state.counters["p99_ms"] = times[times.size() * 99 / 100];
    state.counters["max_ms"] = times.back();
  }
  state.counters["first_ms"] = first_push;
  state.counters["debounce_ms"] = 100;
  state.counters["server_MiB"] = static_cast<double>(most - before) / (1 << 20);
  state.counters["streams"] = static_cast<double>(server->frontend().streams());
  hostile.reset();
  server->Stop().IgnoreError();
}
BENCHMARK(PushToRealClients)
    ->Args({100, 0, 0})
    ->Args({1000, 0, 0})
    ->Args({1000, 10, static_cast<int>(BenchKind::kDeaf)})
    ->Args({1000, 10, static_cast<int>(BenchKind::kGreedy)})
    ->ArgNames({"clients", "hostile_percent", "kind"})
    ->Iterations(30)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace wavetank::serve

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--clients") {
    return wavetank::serve::RunClients(argv[2], std::stoi(argv[3]),
                                       static_cast<wavetank::serve::BenchKind>(std::stoi(argv[4])));
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
