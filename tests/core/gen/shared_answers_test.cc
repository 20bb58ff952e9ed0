// Generators remember what they generated for one proxy, for the next one. Against generators that begin anew every
// time, over generated sequences of changes and requests: the same resources, the same costs, and the same cache.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/gen/cds.h"
#include "core/gen/eds.h"
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
