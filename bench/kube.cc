// The fake API servers as real clients use them. A user waits for the first when a mesh of thousands of pods is
// applied, for the second when controllers follow it, for the third when one of them starts.
#include <benchmark/benchmark.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "serve/grpc/session.h"
#include "serve/kube/kube_frontend.h"
#include "tests/fakes/kube/http/peer.h"
#include "tests/fakes/kube/http/served_cluster.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

std::string PodText(int i) {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-)" + std::to_string(i) +
         R"(","namespace":"default","labels":{"app":"web","version":"v1"}},)"
         R"("spec":{"containers":[{"name":"web","image":"example/web:1","ports":[{"containerPort":8080}],)"
         R"("resources":{"requests":{"cpu":"100m","memory":"128Mi"}}}]}})";
}

// A pod's controllers are not part of these measurements: nobody runs what they schedule.
struct QuietCluster {
  QuietCluster() : server(kernel.NewHost("cluster1", 0, nullptr), {.name = "cluster1"}), rest(server, {}) {
    server.Create({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "default"}}}}).IgnoreError();
  }
  Response Send(const char* method, const std::string& path, std::string body = "", std::string query = "") {
    Request request;
    request.method = method;
    request.path = path;
    request.query = std::move(query);
    request.content_type = "application/json";
    request.body = std::move(body);
    return rest.Handle(request);
  }
  void Fill(int pods) {
    for (int i = 0; i < pods; ++i) Send("POST", "/api/v1/namespaces/default/pods", PodText(i));
  }
  sim::Kernel kernel{1};
  ApiServer server;
  RestApi rest;
};

// Pods created, read from JSON, defaulted, validated, stored and answered, without a network. KWOK's published figure
// is 167 to 500 pods a second.
void CreatePods(benchmark::State& state) {
  auto cluster = std::make_unique<QuietCluster>();
  int i = 0;
  for (auto _ : state) {
    if (cluster->Send("POST", "/api/v1/namespaces/default/pods", PodText(i++)).code != 201) {
      state.SkipWithError("a pod was refused");
      return;
    }
    if (i % 50'000 == 0) cluster = std::make_unique<QuietCluster>();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(CreatePods);

// The same as users have it: `serve` with an event log, its clusters' kubelets and controllers at work, and HTTP over
// so many connections. Each sends its next request when it has the answer to the last, as a worker of kubectl does; one
// thread is all of them.
void CreatePodsOverHttp(benchmark::State& state) {
  const std::string log = (std::filesystem::temp_directory_path() / "bench_kube.wtlog").string();
  serve::SessionOptions options;
  options.scenario.name = "pods";
  options.scenario.clusters = {{.name = "cluster1", .network = "network1", .control_plane = "cluster1"}};
  options.log = log;
  auto session = serve::Session::Create(std::move(options));
  if (!session.ok()) return state.SkipWithError("the world does not start");
  (*session)->GoLive();
  auto frontend = serve::KubeFrontend::Start((*session)->loop(), {"cluster1"}, {.listen = "127.0.0.1:0"});
  if (!frontend.ok()) return state.SkipWithError("the server does not start");
  const std::string& url = (*frontend)->where().front().server;
  const auto port = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));

  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<pollfd> waits;
  int i = 0;
  const auto send = [&](Peer& peer) {
    const std::string body = PodText(i++);
    peer.Send(
        "POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Content-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body);
  };
  for (int64_t n = 0; n < state.range(0); ++n) {
    peers.push_back(std::make_unique<Peer>(port));
    waits.push_back({peers.back()->fd(), POLLIN, 0});
    send(*peers.back());
  }
  size_t next = 0;  // of those that have an answer, in turn
  for (auto _ : state) {
    while ((waits[next].revents & POLLIN) == 0) {
      if (++next < waits.size()) continue;
      next = 0;
      if (::poll(waits.data(), waits.size(), 10'000) < 1) return state.SkipWithError("no answer");
    }
    waits[next].revents = 0;
    if (peers[next]->Read("}\n").find("201 Created") == std::string::npos)
      return state.SkipWithError("a pod was refused");
    send(*peers[next]);
  }
  state.SetItemsProcessed(state.iterations());
  (*frontend)->Stop();
  (*session)->Finish().IgnoreError();
  std::filesystem::remove(log);
}
BENCHMARK(CreatePodsOverHttp)->Arg(1)->Arg(4)->Arg(16)->UseRealTime();

// One write, until each of so many watchers has its line. The slowest in a hundred decides how late a mesh is.
void WatchFanOut(benchmark::State& state) {
  const size_t watchers = static_cast<size_t>(state.range(0));
  ServedCluster served({});
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<pollfd> waits;
  const auto memory = [] {
    std::ifstream statm("/proc/self/statm");
    int64_t pages = 0, resident = 0;
    statm >> pages >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
  };
  const int64_t before = memory();
  for (size_t i = 0; i < watchers; ++i) {
    peers.push_back(std::make_unique<Peer>(*served.port()));
    peers.back()->Send("GET /api/v1/configmaps?watch=true HTTP/1.1\r\nHost: x\r\n\r\n");
    peers.back()->Read("\r\n\r\n");
    waits.push_back({peers.back()->fd(), POLLIN, 0});
  }
  const int64_t after = memory();
  int write = 0;
  std::vector<double> late;  // of all watchers and writes, in seconds
  for (auto _ : state) {
    const auto start = Clock::now();
    served.Call([&](Cluster& cluster) {
      return cluster.api()
          .Apply({{"apiVersion", "v1"},
                  {"kind", "ConfigMap"},
                  {"metadata", {{"name", "a"}, {"namespace", "default"}}},
                  {"data", {{"v", std::to_string(++write)}}}})
          .ok();
    });
    size_t missing = watchers;
    while (missing > 0) {
      ::poll(waits.data(), waits.size(), 10'000);
      for (size_t i = 0; i < watchers; ++i) {
        if ((waits[i].revents & POLLIN) == 0) continue;
        waits[i].revents = 0;
        peers[i]->Read("}\n");
        late.push_back(std::chrono::duration<double>(Clock::now() - start).count());
        --missing;
      }
    }
  }
  std::sort(late.begin(), late.end());
  state.counters["p50_ms"] = late[late.size() / 2] * 1e3;
  state.counters["p99_ms"] = late[late.size() * 99 / 100] * 1e3;
  // Later rounds find the memory of the first.
  static double bytes = 0;
  bytes = std::max(bytes, static_cast<double>(after - before) / static_cast<double>(watchers));
  state.counters["bytes_per_watch"] = bytes;
}
BENCHMARK(WatchFanOut)->Arg(1000)->UseRealTime()->Unit(benchmark::kMillisecond);

// A list of so many pods, whole or in pages of 500, rendered to its last byte.
void ListPods(benchmark::State& state) {
  static QuietCluster* const cluster = [] {
    auto* filled = new QuietCluster;
    filled->Fill(100'000);
    return filled;
  }();
  size_t bytes = 0, largest = 0;
  for (auto _ : state) {
    std::string next;
    do {
      Response response = cluster->Send("GET", "/api/v1/pods", "",
                                        state.range(0) == 0 ? "" : "limit=" + std::to_string(state.range(0)) + next);
      std::string piece, start;
      for (bool more = true; more;) {
        piece.clear();
        more = response.produce(&piece);
        if (start.size() < 1000) start += piece;
        bytes += piece.size();
        largest = std::max(largest, piece.size());
      }
      const size_t at = start.find("\"continue\":\"");
      next = at == std::string::npos ? "" : "&continue=" + start.substr(at + 12, start.find('"', at + 12) - at - 12);
    } while (!next.empty());
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.counters["largest_piece"] = static_cast<double>(largest);
}
BENCHMARK(ListPods)->Arg(0)->Arg(500)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace wavetank::fakekube::http
