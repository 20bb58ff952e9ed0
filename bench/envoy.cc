// Cost of simulated Envoys: cold start of a mesh, pushes, requests end to end, memory of an idle Envoy.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

#define WAVETANK_BENCH_BYTES
#include "bench/allocations.h"
#include "envoy/config/core/v3/base.pb.h"
#include "envoy/service/discovery/v3/discovery.pb.h"
#include "fakes/envoy/config/config_store.h"
#include "fmt/format.h"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim {
namespace {

using lab::Bytes;

// Answers every first request of a type with one prepared response, at once; keeps nothing.
class BenchAds final : public AdsTransport {
 public:
  struct World {
    std::shared_ptr<const DiscoveryResponse> responses[kXdsTypes];
  };
  BenchAds(Host& host, const World& world) : host_(host), world_(world) {}

  std::unique_ptr<AdsStream> Open(Protocol, AdsStreamObserver* observer) override {
    observer_ = observer;
    return std::make_unique<Stream>(*this);
  }
  void Push(XdsType type, const std::shared_ptr<const DiscoveryResponse>& response) {
    (void)type;
    observer_->OnResponse(response);
  }

 private:
  class Stream final : public AdsStream {
   public:
    explicit Stream(BenchAds& ads) : ads_(ads) {}
    void Send(DiscoveryRequest request) override {
      if (!request.response_nonce().empty()) return;
      const XdsType type = *XdsTypeOf(request.type_url());
      BenchAds& ads = ads_;
      ads.host_.Post([&ads, type] { ads.observer_->OnResponse(ads.world_.responses[static_cast<int>(type)]); });
    }
    void SendDelta(DeltaDiscoveryRequest) override {}

   private:
    BenchAds& ads_;
  };
  Host& host_;
  const World& world_;
  AdsStreamObserver* observer_ = nullptr;
};

class BenchPod final : public EnvoyContext {
 public:
  BenchPod(Host& host, SecretProvider& secrets, DnsResolver& dns, const BenchAds::World& world)
      : host_(host), secrets_(secrets), dns_(dns), ads_(host, world) {}
  Host& host() override { return host_; }
  AdsTransport& ads() override { return ads_; }
  SecretProvider& secrets() override { return secrets_; }
  DnsResolver& dns() override { return dns_; }
  void FillNode(envoy::config::core::v3::Node* node) override {
    node->set_id("sidecar~10.0.0.1~x.y~y.svc.cluster.local");
  }
  BenchAds& transport() { return ads_; }

 private:
  Host& host_;
  SecretProvider& secrets_;
  DnsResolver& dns_;
  BenchAds ads_;
};

std::shared_ptr<const DiscoveryResponse> Response(XdsType type, const std::vector<std::string>& resources,
                                                  std::string_view version) {
  auto r = std::make_shared<DiscoveryResponse>();
  r->set_type_url(std::string(XdsTypeUrl(type)));
  r->set_version_info(std::string(version));
  r->set_nonce(fmt::format("{}-{}", XdsTypeName(type), version));
  for (const std::string& bytes : resources) {
    auto* any = r->add_resources();
    any->set_type_url(std::string(XdsTypeUrl(type)));
    any->set_value(bytes);
  }
  return r;
}

std::string ServiceName(int i) { return fmt::format("outbound|80||svc-{}.ns-{}.svc.cluster.local", i, i % 10); }

std::string Endpoints(int service, int count, int generation = 0) {
  std::vector<lab::EndpointSpec> endpoints;
  for (int e = 0; e < count; ++e) {
    endpoints.push_back({fmt::format("10.{}.{}.{}:8080", 10 + generation, service % 250, e + 1), 1, "", true});
  }
  return lab::Assignment(ServiceName(service), endpoints);
}

// What a sidecar in a mesh of `services` services is told: a cluster, ten endpoints, a virtual host for each; one HTTP
// listener with RDS, a TCP listener for every tenth, inbound and outbound.
BenchAds::World MakeWorld(int services) {
  std::vector<std::string> clusters, endpoints, listeners, routes;
  std::string hosts;
  for (int i = 0; i < services; ++i) {
    const std::string name = ServiceName(i);
    clusters.push_back(lab::EdsCluster(
        name, lab::SocketMatches(fmt::format("outbound_.80_._.svc-{}.ns-{}.svc.cluster.local", i, i % 10),
                                 fmt::format("spiffe://cluster.local/ns/ns-{}/sa/svc-{}", i % 10, i)) +
                  R"(, "lb_policy": "LEAST_REQUEST", "common_lb_config": {"healthy_panic_threshold": {}})"));
    endpoints.push_back(Endpoints(i, 10));
    if (i % 10 == 0)
      listeners.push_back(
          lab::TcpListenerTo(fmt::format("tcp-{}", i), fmt::format("10.96.{}.{}:3306", i / 250, i % 250), name));
    hosts += fmt::format(
        R"({}{{"name": "svc-{}", "domains": ["svc-{}.ns-{}.svc.cluster.local", "svc-{}.ns-{}"], "routes": [{{"name": "default",
          "match": {{"prefix": "/"}}, "route": {{"cluster": "{}", "timeout": "0s", "retry_policy": {}}}}}]}})",
        i == 0 ? "" : ",", i, i, i % 10, i, i % 10, name, lab::kIstioRetry);
  }
  clusters.push_back(lab::OriginalDstCluster("inbound|8080||", "127.0.0.6"));
  clusters.push_back(lab::OriginalDstCluster("PassthroughCluster"));
  clusters.push_back(lab::StaticCluster("BlackHoleCluster", std::vector<lab::EndpointSpec>{}));
  listeners.push_back(lab::HttpListener("0.0.0.0_80", "0.0.0.0:80", "80"));
  listeners.push_back(lab::VirtualOutbound());
  listeners.push_back(lab::VirtualInbound(8080, "inbound|8080||"));
  routes.push_back(Bytes("RouteConfiguration", fmt::format(R"({{"name": "80", "virtual_hosts": [{}]}})", hosts)));
  BenchAds::World world;
  world.responses[static_cast<int>(XdsType::kCds)] = Response(XdsType::kCds, clusters, "1");
  world.responses[static_cast<int>(XdsType::kEds)] = Response(XdsType::kEds, endpoints, "1");
  world.responses[static_cast<int>(XdsType::kLds)] = Response(XdsType::kLds, listeners, "1");
  world.responses[static_cast<int>(XdsType::kRds)] = Response(XdsType::kRds, routes, "1");
  return world;
}

struct Fleet {
  Fleet(int n, const BenchAds::World& world)
      : kernel(1), host(kernel.NewHost("bench", 0, nullptr)), plane(host, network, {}), dns(host), ca("bench") {
    secrets.Set("default", ca.Identity("spiffe://cluster.local/ns/ns-0/sa/svc-0"));
    secrets.Set("ROOTCA", ca.Root());
    pods.reserve(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
      pods.push_back(std::make_unique<BenchPod>(host, secrets, dns, world));
      EnvoyOptions options;
      options.name = fmt::format("p{}", i);
      options.workload = WorkloadId{static_cast<uint32_t>(i + 1)};
      options.ip =
          IpAddress::V4(10, static_cast<uint8_t>(i >> 16), static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i));
      envoys.push_back(std::make_unique<Envoy>(plane, *pods.back(), options));
    }
  }
  void Start() {
    for (const auto& e : envoys) e->Start();
    kernel.RunUntil(kernel.Now() + 10s);
    for (const auto& e : envoys) {
      if (!e->live()) std::abort();
    }
  }
  sim::Kernel kernel;
  Host& host;
  lab::LabNetwork network;
  DataPlane plane;
  lab::LabDns dns;
  lab::LabCa ca;
  lab::LabSecrets secrets;
  std::vector<std::unique_ptr<BenchPod>> pods;
  std::vector<std::unique_ptr<Envoy>> envoys;
};

double Allocated() { return static_cast<double>(bench::live_bytes); }

// The first configuration of `envoys` sidecars that all see the same `services`.
void BM_ColdStart(benchmark::State& state) {
  const int envoys = static_cast<int>(state.range(0));
  const BenchAds::World world = MakeWorld(static_cast<int>(state.range(1)));
  double per_envoy = 0, shared = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const double before = Allocated();
    auto one = std::make_unique<Fleet>(1, world);
    one->Start();
    shared = Allocated() - before;
    one.reset();
    auto fleet = std::make_unique<Fleet>(envoys, world);
    const double empty = Allocated();
    state.ResumeTiming();
    fleet->Start();
    state.PauseTiming();
    per_envoy = (Allocated() - empty - shared) / (envoys - 1);  // beyond what they share
    fleet.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * envoys);
  state.counters["B/envoy"] = per_envoy;
  state.counters["first_envoy_B"] = shared;
}
BENCHMARK(BM_ColdStart)
    ->Args({1000, 100})
    ->Args({1000, 1000})
    ->Args({100000, 10})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(2);

// One changed ClusterLoadAssignment reaches every Envoy.
void BM_EdsPush(benchmark::State& state) {
  const BenchAds::World world = MakeWorld(100);
  Fleet fleet(static_cast<int>(state.range(0)), world);
  fleet.Start();
  int generation = 0;
  for (auto _ : state) {
    const auto response =
        Response(XdsType::kEds, {Endpoints(7, 10, ++generation % 100)}, fmt::format("push-{}", generation));
    for (const auto& pod : fleet.pods) pod->transport().Push(XdsType::kEds, response);
    fleet.kernel.RunUntil(fleet.kernel.Now() + 100ms);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_EdsPush)->Arg(1000)->Unit(benchmark::kMillisecond);

// Everything is sent again, changed in nothing: what a full push without news costs an Envoy.
void BM_FullPushUnchanged(benchmark::State& state) {
  const BenchAds::World world = MakeWorld(static_cast<int>(state.range(1)));
  Fleet fleet(static_cast<int>(state.range(0)), world);
  fleet.Start();
  for (auto _ : state) {
    for (XdsType type : {XdsType::kCds, XdsType::kEds, XdsType::kLds, XdsType::kRds}) {
      for (const auto& pod : fleet.pods) pod->transport().Push(type, world.responses[static_cast<int>(type)]);
    }
    fleet.kernel.RunUntil(fleet.kernel.Now() + 1s);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_FullPushUnchanged)->Args({1000, 100})->Unit(benchmark::kMillisecond);

// Sequential keep-alive requests, client sidecar -> (gateway ->) server sidecar -> application.
void BM_Requests(benchmark::State& state) {
  lab::Mesh::Options options;
  options.with_v1 = state.range(0) != 1;
  options.plane.trace_requests = options.plane.trace_connections = state.range(1) != 0;
  lab::Mesh mesh(options);
  mesh.Start();
  if (state.range(0) == 2) mesh.Push({lab::Mesh::Local()});
  const SocketAddress vip = *SocketAddress::Parse(std::string(lab::kVip));
  const int parallel = 100;
  uint64_t done = 0, ok = 0;
  struct Loop {
    lab::Mesh& mesh;
    const SocketAddress& vip;
    uint64_t& done;
    uint64_t& ok;
    void Next() {
      mesh.sleep->client->Send(vip, mesh.spec, {}, [this](const RequestRecord& r) {
        ++done;
        ok += r.code == 200;
        Next();
      });
    }
  };
  Loop loop{mesh, vip, done, ok};
  for (int i = 0; i < parallel; ++i) loop.Next();
  for (auto _ : state) {
    const uint64_t target = done + 1000;
    while (done < target) mesh.lab.kernel.Step();
  }
  if (ok != done) state.SkipWithError("a request failed");
  state.SetItemsProcessed(static_cast<int64_t>(done));
}
BENCHMARK(BM_Requests)->ArgNames({"way", "trace"})->Args({0, 0})->Args({1, 0})->Args({2, 0})->Args({0, 1});

}  // namespace
}  // namespace wavetank::envoysim
