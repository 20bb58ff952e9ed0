// Generators remember what they generated for one proxy, for the next one. Against generators that begin anew every
// time, over generated sequences of changes and requests: the same resources, the same costs, and the same cache.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/gen/cds/cds.h"
#include "core/gen/eds/eds.h"
#include "core/gen/lds/lds.h"
#include "core/xds/cache.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

class History {
 public:
  explicit History(uint32_t seed) : random_(seed) {
    for (int i = 0; i < kServices; ++i) {
      const auto service = world_.AddService(Name(i));
      if (i == 0) service->resolution = Resolution::kDnsLb;  // its cluster comes and goes with its endpoints
    }
    // Its clusters are never shared while the cache does not have them.
    config::DestinationRule rule;
    rule.host = GenWorld::Host(Name(1));
    config::Subset subset;
    subset.name = "v2";
    subset.labels = {{"version", "v2"}};
    rule.subsets.push_back(subset);
    rule.traffic_policy.emplace().outlier_detection.emplace();  // localities count
    world_.AddRule("rule", rule);
    world_.AddGateway("c2", "9.9.9.9");
    std::vector<std::string> names;
    for (int i = 0; i < kServices; ++i) names.push_back("outbound|80||" + GenWorld::Host(Name(i)));
    names.push_back("outbound|80|v2|" + GenWorld::Host(Name(1)));
    names.push_back("outbound|80||unknown.shop.svc.cluster.local");
    watched_.resource_names = std::move(names);
    StartPush();
  }

  void Step() {
    ++now_;
    switch (Roll(10)) {
      case 0:
      case 1:
      case 2:
        return SetEndpoints();
      case 3:
        if (Roll(3) == 0) StartPush();
        return;
      case 4:
        if (Roll(4) == 0) ClearRarely();
        return;
      default:
        return Ask();
    }
  }

 private:
  static constexpr int kServices = 7;
  static std::string Name(int i) { return "service" + std::to_string(i); }
  int Roll(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  Time Now() const { return Time(now_ * 1s); }

  void Clear(const std::set<ConfigKey>& configs) {
    remembering_.cache.Clear(configs, Now());
    anew_.Clear(configs, Now());
  }
  void SetEndpoints() {
    const int service = Roll(kServices);
    const std::string cluster = Roll(2) == 0 ? "c1" : "c2";
    EndpointList list;
    for (int i = Roll(3); i > 0; --i) {
      EndpointProfile profile = GenWorld::Workload(cluster, "r/z" + std::to_string(Roll(2)));
      profile.labels["version"] = Roll(2) == 0 ? "v1" : "v2";
      list.push_back(GenWorld::Endpoint("10.0.0." + std::to_string(Roll(200)), std::move(profile)));
    }
    world_.SetEndpoints(cluster, Name(service), std::move(list));
    Clear({{ConfigKind::kServiceEntry, GenWorld::Host(Name(service)), "shop"}});
  }
  void ClearRarely() {
    switch (Roll(3)) {
      case 0:
        return Clear({{ConfigKind::kPeerAuthentication, "default", "shop"}});
      case 1:
        return Clear({{ConfigKind::kDestinationRule, "rule", "shop"}});
      default:
        remembering_.cache.ClearAll(Now());
        anew_.ClearAll(Now());
    }
  }
  // As a discovery server starts a full push.
  void StartPush() {
    Clear({{ConfigKind::kServiceEntry, GenWorld::Host(Name(Roll(kServices))), "shop"}});
    push_ = world_.Push();
    push_start_ = Now();
    proxies_.clear();
    for (int i = 0; i < 6; ++i) {
      Proxy proxy =
          GenWorld::Connect(*push_, i == 4 ? "c2" : "c1", i == 5 ? NodeType::kRouter : NodeType::kSidecarProxy,
                            {{"app", "client" + std::to_string(i)}});
      if (i >= 2) proxy.locality = {"r", "z" + std::to_string(i % 2), ""};
      proxies_.push_back(std::move(proxy));
    }
  }

  void Ask() {
    const Proxy& proxy = proxies_[static_cast<size_t>(Roll(static_cast<int>(proxies_.size())))];
    PushRequest request = GenWorld::Request(push_);
    // A proxy that has just connected, one that was pushed to, one whose push begins.
    const Time starts[] = {Time{}, push_start_, Now()};
    request.start = starts[Roll(3)];
    const bool clusters = Roll(2) == 0;
    if (!clusters && Roll(3) == 0) {
      request.full = Roll(2) == 0;
      request.configs_updated.insert({ConfigKind::kServiceEntry, GenWorld::Host(Name(Roll(kServices))), "shop"});
    }
    const auto reference = clusters ? MakeCdsGenerator({&anew_}) : MakeEdsGenerator({&anew_});
    Generator& generator = clusters ? *remembering_.cds : *remembering_.eds;
    const GeneratedResources want = reference->Generate(proxy, watched_, request);
    const GeneratedResources got = generator.Generate(proxy, watched_, request);
    ASSERT_EQ(got.resources.list(), want.resources.list()) << (clusters ? "clusters" : "endpoints");
    ASSERT_EQ(got.cached, want.cached);
    ASSERT_EQ(got.endpoints, want.endpoints);
    ASSERT_EQ(got.send, want.send);
    ASSERT_EQ(got.incremental, want.incremental);
    ASSERT_EQ(remembering_.cache.hits(), anew_.hits());
    ASSERT_EQ(remembering_.cache.size(), anew_.size());
  }

  struct Remembering {
    XdsCache cache;
    std::unique_ptr<Generator> cds = MakeCdsGenerator({&cache}), eds = MakeEdsGenerator({&cache});
  };

  std::mt19937 random_;
  int64_t now_ = 1;
  GenWorld world_;
  PushContextRef push_;
  Time push_start_{};
  std::vector<Proxy> proxies_;
  WatchedResource watched_;
  Remembering remembering_;
  XdsCache anew_;
};

// Sidecars of a few Deployments ask for listeners, while services and policies change.
class ListenerHistory {
 public:
  explicit ListenerHistory(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) ChangeService(i);
    Push(ConfigKind::kServiceEntry);
  }

  void Step() {
    switch (Roll(24)) {
      case 0:
        ChangeService(Roll(5));
        return Push(ConfigKind::kServiceEntry);
      case 1:
        Require();
        return Push(ConfigKind::kPeerAuthentication);
      case 2:
        Allow();
        return Push(ConfigKind::kAuthorizationPolicy);
      case 3:
      case 4:
        return Push(ConfigKind::kServiceEntry);  // nothing of it has changed
      case 5:
        if (Roll(8) == 0) {
          world_.AddRequestAuthentication({});
          Push(ConfigKind::kRequestAuthentication);
        }
        return;
      case 6:
        if (Roll(8) == 0) {  // a listener per instance, not for the proxy itself
          const auto headless = world_.AddService("headless", "shop", {"tcp", 9000, Protocol::kTcp});
          headless->resolution = Resolution::kPassthrough;
          headless->default_address = std::string(kUnspecifiedIp);
          for (int i = 0; i < 4; ++i) {
            IstioEndpoint endpoint = GenWorld::Endpoint("10.0.0." + std::to_string(i), GenWorld::Workload("c1"));
            world_.discovery.instances.push_back({headless, headless->ports[0], endpoint});
          }
          Push(ConfigKind::kServiceEntry);
        }
        return;
      default:
        return Ask();
    }
  }

  int shared() const { return shared_; }

 private:
  int Roll(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  // A service is never changed: what holds it must go on to see what it was.
  void ChangeService(int i) {
    std::erase_if(world_.discovery.services,
                  [&](const auto& service) { return service->hostname == GenWorld::Host("s" + std::to_string(i)); });
    const Protocol protocol = Roll(2) == 0 ? Protocol::kHttp : Protocol::kTcp;
    const auto service = world_.AddService("s" + std::to_string(i), "shop", {"p", 80 + Roll(2), protocol});
    service->default_address = "240.0.0." + std::to_string(i + 1);
  }
  Labels Selector() {
    return Roll(2) == 0 ? Labels{{"app", "s" + std::to_string(Roll(3))}} : Labels{{"track", "canary"}};
  }
  void Require() {
    config::PeerAuthentication policy;
    policy.mtls = Roll(2) == 0 ? config::PeerAuthentication::Mode::kStrict : config::PeerAuthentication::Mode::kDisable;
    if (Roll(2) == 0) policy.selector = Selector();
    world_.AddPeerAuthentication(policy, "shop", "policy" + std::to_string(Roll(2)));
  }
  void Allow() {
    config::AuthorizationPolicy policy;
    if (Roll(2) == 0) policy.selector = Selector();
    world_.AddAuthorizationPolicy(policy, "shop", "policy" + std::to_string(Roll(2)));
  }
  void Push(ConfigKind kind) {
    Environment env = world_.Env();
    env.mesh = mesh_;
    PushRequest request;
    request.full = true;
    request.configs_updated.insert({kind, "some", "shop"});
    old_ = push_;
    push_ = PushContext::Create(env, push_.get(), request, std::to_string(++pushes_));
  }

  void Ask() {
    // Some are still asked for of the push before.
    const PushContextRef push = old_ != nullptr && Roll(4) == 0 ? old_ : push_;
    const int app = Roll(3), pod = Roll(20);
    Proxy proxy = GenWorld::Connect(*push, "c1", NodeType::kSidecarProxy, {{"app", "s" + std::to_string(app)}});
    proxy.labels["service.istio.io/canonical-name"] = "s" + std::to_string(app);
    proxy.labels["pod"] = std::to_string(pod);
    proxy.labels["track"] = pod % 2 == 0 ? "stable" : "canary";
    proxy.ip_addresses = {"10.0.0." + std::to_string(pod)};
    nlohmann::json metadata = {{"NAME", pod}, {"INSTANCE_IPS", proxy.ip_addresses[0]}, {"MESH_ID", "mesh"}};
    if (Roll(4) == 0) metadata["HTTP_PROXY_PORT"] = 3128;
    proxy.metadata.raw = std::move(metadata);
    for (const ServiceRef& service : world_.discovery.services) {
      if (service->attributes.name != "s" + std::to_string(app)) continue;
      IstioEndpoint endpoint = GenWorld::Endpoint(proxy.ip_addresses[0], GenWorld::Workload("c1"));
      proxy.service_instances.push_back({service, service->ports[0], endpoint});
    }
    const PushRequest request = GenWorld::Request(push);
    const GeneratedResources want = MakeLdsGenerator()->Generate(proxy, {}, request);
    const GeneratedResources got = remembering_->Generate(proxy, {}, request);
    ASSERT_EQ(got.resources.list(), want.resources.list());
    ASSERT_FALSE(got.resources.empty());
    shared_ += seen_.insert(&got.resources.list()).second ? 0 : 1;
    kept_.push_back(got.resources);
  }

  std::mt19937 random_;
  GenWorld world_;
  const std::shared_ptr<const config::MeshConfig> mesh_ = config::DefaultMeshConfig();
  PushContextRef push_, old_;
  int pushes_ = 0;
  std::unique_ptr<Generator> remembering_ = MakeLdsGenerator();
  std::set<const void*> seen_;
  std::vector<ResourceList> kept_;  // so that an address stands for one list
  int shared_ = 0;
};

TEST(SharedAnswers, ListenersAreThoseOfAGeneratorThatRemembersNothing) {
  int shared = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    ListenerHistory history(seed);
    for (int step = 0; step < 300; ++step) {
      SCOPED_TRACE(step);
      history.Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    shared += history.shared();
  }
  EXPECT_GT(shared, 1000);
}

TEST(SharedAnswers, AreThoseOfAGeneratorThatRemembersNothing) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    for (int step = 0; step < 400; ++step) {
      SCOPED_TRACE(step);
      history.Step();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace wavetank::pilot
