// A push to real gRPC clients on loopback: one Service with 1,000 endpoints, of which one changes, and a thousand
// clients that watch it, each on a connection of its own. What is timed: from the moment the change is posted until a
// client has the response, debouncing (100 ms, PILOT_DEBOUNCE_AFTER) included, which is therefore shown apart. Clients
// and server share the machine.
//
// The second case adds slow readers: every tenth client asks and never reads. The others' times and the memory say
// whether that matters.
#include <benchmark/benchmark.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <thread>

#include "core/xds/proto_adapter.h"
#include "envoy/service/discovery/v3/ads.grpc.pb.h"
#include "fmt/format.h"
#include "scenarios/inputs.h"
#include "serve/server.h"

namespace wavetank::serve {
namespace {

namespace discovery = envoy::service::discovery::v3;
using RealClock = std::chrono::steady_clock;
using nlohmann::json;

constexpr int kEndpoints = 1000;
constexpr char kWatched[] = "outbound|80||many.sample.svc.cluster.local";
constexpr Duration kDebounce = 100ms;

// Resident bytes of this process: server and clients.
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
  return {"apply",
          {{"cluster", "cluster1"},
           {"object",
            {{"apiVersion", "discovery.k8s.io/v1"},
             {"kind", "EndpointSlice"},
             {"metadata",
              {{"namespace", "sample"}, {"name", "many-1"}, {"labels", {{"kubernetes.io/service-name", "many"}}}}},
             {"addressType", "IPv4"},
             {"ports", {{{"name", "http"}, {"port", 8080}, {"protocol", "TCP"}}}},
             {"endpoints", endpoints}}}}};
}

// Counts who has a push.
struct Arrivals {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<RealClock::time_point> at;
  void Add() {
    const std::lock_guard<std::mutex> lock(mutex);
    at.push_back(RealClock::now());
    changed.notify_one();
  }
  bool Await(size_t count) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return at.size() >= count; });
  }
};

class Client final : public grpc::ClientBidiReactor<discovery::DiscoveryRequest, discovery::DiscoveryResponse> {
 public:
  Client(const std::string& address, const envoy::config::core::v3::Node& node, int number, Arrivals* arrivals)
      : arrivals_(arrivals) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("wavetank.client", number);
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = discovery::AggregatedDiscoveryService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    request_.set_type_url(std::string(pilot::TypeUrl(pilot::XdsType::kEds)));
    request_.add_resource_names(kWatched);
    *request_.mutable_node() = node;
    stub_->async()->StreamAggregatedResources(&context_, this);
    // Null: one who never reads, but keeps asking.
    if (arrivals_ != nullptr) StartRead(&response_);
    StartWrite(&request_);
    StartCall();
  }
  void Stop() {
    context_.TryCancel();
    std::unique_lock<std::mutex> lock(mutex_);
    over_.wait(lock, [this] { return done_; });
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    arrivals_->Add();
    ack_.set_type_url(response_.type_url());
    ack_.set_version_info(response_.version_info());
    ack_.set_response_nonce(response_.nonce());
    if (ack_.resource_names_size() == 0) ack_.add_resource_names(kWatched);
    StartWrite(&ack_);
    StartRead(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok || arrivals_ != nullptr) return;
    request_.clear_node();
    StartWrite(&request_);
  }
  void OnDone(const grpc::Status&) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
    over_.notify_one();
  }

 private:
  Arrivals* arrivals_;
  std::unique_ptr<discovery::AggregatedDiscoveryService::Stub> stub_;
  grpc::ClientContext context_;
  discovery::DiscoveryRequest request_, ack_;
  discovery::DiscoveryResponse response_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
};

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

// Arguments: clients, of which how many percent read nothing.
void PushToRealClients(benchmark::State& state) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const auto count = static_cast<int>(state.range(0));
  const int slow_count = count * static_cast<int>(state.range(1)) / 100;
  const std::unique_ptr<Server> server = Start();
  if (server == nullptr) return state.SkipWithError("the server does not start");
  const auto node = *server->loop().Call([](sim::World& world) {
    world
        .Do({"apply",
             {{"cluster", "cluster1"},
              {"object",
               {{"apiVersion", "v1"},
                {"kind", "Service"},
                {"metadata", {{"namespace", "sample"}, {"name", "many"}}},
                {"spec", {{"ports", {{{"name", "http"}, {"port", 80}, {"targetPort", 8080}}}}}}}}}})
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

  Arrivals arrivals;
  std::vector<std::unique_ptr<Client>> clients;
  const std::string& address = server->ListenersOf("cluster1")->plaintext;
  const int64_t before = Resident();
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<Client>(address, node, i, i < slow_count ? nullptr : &arrivals));
  }
  const auto readers = static_cast<size_t>(count - slow_count);
  if (!arrivals.Await(readers)) return state.SkipWithError("not all clients were answered");
  std::this_thread::sleep_for(1s);

  std::vector<double> times;
  int turn = 0;
  for (auto _ : state) {
    {
      const std::lock_guard<std::mutex> lock(arrivals.mutex);
      arrivals.at.clear();
    }
    const auto posted = RealClock::now();
    server->loop().Post([input = Slices(++turn)](sim::World& world) { world.Do(input).IgnoreError(); });
    if (!arrivals.Await(readers)) {
      state.SkipWithError("a push did not reach everybody");
      break;
    }
    RealClock::time_point last = posted;
    for (const auto at : arrivals.at) {
      times.push_back(std::chrono::duration<double, std::milli>(at - posted - kDebounce).count());
      last = std::max(last, at);
    }
    state.SetIterationTime(std::chrono::duration<double>(last - posted).count());
  }
  const int64_t after = Resident();
  std::sort(times.begin(), times.end());
  if (!times.empty()) {
    state.counters["p50_ms"] = times[times.size() / 2];
    state.counters["p99_ms"] = times[times.size() * 99 / 100];
  }
  state.counters["debounce_ms"] = 100;
  state.counters["MiB_per_1k_clients"] = static_cast<double>(after - before) / count * 1000 / (1 << 20);
  state.counters["streams"] = static_cast<double>(server->frontend().streams());
  for (const auto& client : clients) client->Stop();
  server->Stop().IgnoreError();
}
BENCHMARK(PushToRealClients)
    ->Args({100, 0})
    ->Args({1000, 0})
    ->Args({1000, 10})
    ->ArgNames({"clients", "slow_percent"})
    ->Iterations(10)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace wavetank::serve
