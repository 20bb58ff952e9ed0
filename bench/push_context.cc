// Cost of push contexts: from nothing, after one change, and the scopes that proxies ask of them.
//
// Args: services, namespaces. One service in ten has a DestinationRule, one in twenty a VirtualService.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "core/config/store/store.h"
#include "core/push/push_context.h"
#include "tests/core/config/yaml_config.h"
#include "tests/core/push/fake_discovery.h"

namespace wavetank::pilot {
namespace {

struct Mesh {
  Mesh(int64_t services, int64_t namespaces, bool sidecars) {
    env.discovery = &discovery;
    env.configs = &configs;
    env.endpoints = &endpoints;
    env.mesh = config::DefaultMeshConfig();
    for (int64_t i = 0; i < services; ++i) {
      const std::string ns = fmt::format("ns-{}", i % namespaces), name = fmt::format("service-{}", i);
      auto service = std::make_shared<Service>();
      service->hostname = fmt::format("{}.{}.svc.cluster.local", name, ns);
      service->ports = {{"http", 80, Protocol::kHttp}, {"grpc", 9000, Protocol::kGrpc}};
      service->creation_unix_seconds = i;
      service->attributes.name = name;
      service->attributes.ns = ns;
      discovery.services.push_back(service);
      if (i % 10 == 0) {
        Put("DestinationRule", ns, name, fmt::format("host: {}\nsubsets: [{{name: v1, labels: {{v: v1}}}}]", name));
      }
      if (i % 20 == 0) {
        Put("VirtualService", ns, name,
            fmt::format("hosts: [{0}]\nhttp: [{{route: [{{destination: {{host: {0}, subset: v1}}}}]}}]", name));
      }
    }
    for (int64_t i = 0; sidecars && i < namespaces; ++i) {
      Put("Sidecar", fmt::format("ns-{}", i), "default", "egress: [{hosts: [\"./*\", \"ns-0/*\"]}]");
    }
  }
  void Put(std::string_view kind, std::string_view ns, std::string_view name, std::string_view spec) {
    configs.Put(config::ParseYaml(config::ConfigYaml(kind, ns, name, spec)));
  }

  FakeDiscovery discovery;
  config::ConfigStore configs;
  EndpointIndex endpoints;
  Environment env;
};

void FromNothing(benchmark::State& state) {
  const Mesh mesh(state.range(0), state.range(1), false);
  for (auto _ : state) benchmark::DoNotOptimize(PushContext::Create(mesh.env, nullptr, {}, "v"));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void AfterOneDestinationRule(benchmark::State& state) {
  const Mesh mesh(state.range(0), state.range(1), false);
  PushContextRef push = PushContext::Create(mesh.env, nullptr, {}, "v");
  PushRequest request;
  request.configs_updated.insert({ConfigKind::kDestinationRule, "service-0", "ns-0"});
  for (auto _ : state) push = PushContext::Create(mesh.env, push.get(), request, "v");
}

void Scopes(benchmark::State& state, bool sidecars) {
  const Mesh mesh(state.range(0), state.range(1), sidecars);
  Proxy proxy;
  for (auto _ : state) {
    const PushContextRef push = PushContext::Create(mesh.env, nullptr, {}, "v");
    for (int64_t i = 0; i < state.range(1); ++i) {
      proxy.config_namespace = fmt::format("ns-{}", i);
      benchmark::DoNotOptimize(push->GetSidecarScope(proxy, {}));
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(1));
}
void DefaultScopeOfEveryNamespace(benchmark::State& state) { Scopes(state, false); }
void SidecarScopeOfEveryNamespace(benchmark::State& state) { Scopes(state, true); }

BENCHMARK(FromNothing)->Args({1000, 20})->Args({10000, 200})->Unit(benchmark::kMillisecond);
BENCHMARK(AfterOneDestinationRule)->Args({1000, 20})->Args({10000, 200})->Unit(benchmark::kMillisecond);
BENCHMARK(DefaultScopeOfEveryNamespace)->Args({1000, 20})->Args({10000, 200})->Unit(benchmark::kMillisecond);
BENCHMARK(SidecarScopeOfEveryNamespace)->Args({1000, 20})->Args({10000, 200})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace wavetank::pilot
