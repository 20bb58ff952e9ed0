// Active health checks where a real Envoy has nothing to say or takes long: chance, ends of lives, times of warming.
// What it does say is in tests/oracles/envoy/cases/health_checks.json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

using ::testing::ElementsAre;

// Of cluster "c" with hosts 10.1.0.1 and 10.1.0.2. Requests to `kService`.
class HealthChecks : public ::testing::Test {
 protected:
  static constexpr std::string_view kService = "10.9.0.1:80";

  HealthChecks() { Begin(1); }
  void Begin(uint64_t seed) {
    lab = std::make_unique<Lab>(seed, Instant());
    client = &lab->AddProxy("client", "10.0.0.1");
    one = &lab->AddApp("one", "10.1.0.1", 80);
    two = &lab->AddApp("two", "10.1.0.2", 80);
  }
  void Start(std::string_view check, std::string_view more = "") {
    auto& world = client->ads->world;
    world[XdsType::kCds]["c"] = EdsCluster("c", Checked(check, more));
    world[XdsType::kEds]["c"] = Assignment("c", {{"10.1.0.1:80"}, {"10.1.0.2:80"}});
    world[XdsType::kLds]["l"] = HttpListenerTo("l", kService, "c", false);
    world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    client->ads->automatic = true;
    client->envoy->Start();
  }
  static std::string Checked(std::string_view check, std::string_view more = "") {
    return fmt::format(R"("common_lb_config": {{"healthy_panic_threshold": {{}}, "update_merge_window": "0s"}}, {}
      "health_checks": [{{"timeout": "1s", "unhealthy_threshold": 1, "healthy_threshold": 1,
                          "http_health_check": {{"path": "/health"}}, {}}}])",
                       more, check);
  }
  std::string FlagsOf(std::string_view address) {
    for (const EndpointStatus& e : client->envoy->Endpoints()) {
      if (e.cluster == "c" && e.address == address) return HealthFlags(e);
    }
    return "gone";
  }
  uint64_t Counter(const std::string& name) { return client->envoy->counter("cluster.c." + name); }

  std::unique_ptr<Lab> lab;
  Lab::Proxy* client = nullptr;
  EchoApp *one = nullptr, *two = nullptr;
};

TEST_F(HealthChecks, ListenersWaitForTheFirstRoundOfAllHosts) {
  lab->network.blackholed[*IpAddress::Parse("10.1.0.2")] = true;
  Start(R"("interval": "10s")");
  lab->RunFor(900ms);
  EXPECT_FALSE(client->envoy->live());
  lab->RunFor(200ms);
  EXPECT_TRUE(client->envoy->live());
  EXPECT_EQ(FlagsOf("10.1.0.1:80"), "");
  EXPECT_EQ(FlagsOf("10.1.0.2:80"), "/failed_active_hc/active_hc_timeout");
}

TEST_F(HealthChecks, JitterIsDrawnFromTheSeed) {
  const auto checks_of = [this](uint64_t seed) {
    Begin(seed);
    Start(R"("interval": "1s", "no_traffic_interval": "1s", "interval_jitter": "1s")");
    lab->RunFor(100s);
    return std::pair{one->served, two->served};
  };
  const auto first = checks_of(1);
  EXPECT_EQ(checks_of(1), first);
  EXPECT_NE(checks_of(2), first);
  EXPECT_GT(first.first, 55);  // every 1.5 s on average
  EXPECT_LT(first.first, 80);
}

TEST_F(HealthChecks, NobodyIsAskedAnyMoreWhenTheClusterIsGone) {
  Start(R"("interval": "1s", "no_traffic_interval": "1s")");
  lab->RunFor(5500ms);
  EXPECT_EQ(one->served, 6);
  client->ads->world[XdsType::kCds].erase("c");
  client->ads->Push(XdsType::kCds);
  lab->RunFor(5s);
  EXPECT_EQ(one->served, 6);
}

TEST_F(HealthChecks, NobodyIsAskedAnyMoreWhenTheProcessEndsAndAllAgainInItsNextLife) {
  Start(R"("interval": "1s", "no_traffic_interval": "1s")");
  lab->RunFor(1500ms);
  client->envoy->Stop(StopKind::kKill);
  EXPECT_EQ(one->served, 2);
  lab->RunFor(5s);
  EXPECT_EQ(one->served, 2);
  client->envoy->Start();
  lab->RunFor(500ms);
  EXPECT_EQ(one->served, 3);
  EXPECT_EQ(Counter("health_check.attempt"), 2u);
}

TEST_F(HealthChecks, AClusterThatGoesWhileItsHostsAreAskedIsForgotten) {
  lab->network.blackholed[*IpAddress::Parse("10.1.0.2")] = true;
  Start(R"("interval": "10s")");
  lab->RunFor(500ms);
  client->ads->world[XdsType::kCds].erase("c");
  client->ads->Push(XdsType::kCds);
  lab->RunFor(5s);
  EXPECT_TRUE(client->envoy->live());
  EXPECT_EQ(FlagsOf("10.1.0.1:80"), "gone");
}

TEST_F(HealthChecks, WhatTheyDoNotDoHereIsNotedByField) {
  Start(R"("interval": "10s", "event_log_path": "/dev/null")");
  lab->RunFor(500ms);
  const Extensions::Note note{"active health check", "envoy.config.core.v3.HealthCheck.event_log_path"};
  ASSERT_EQ(lab->plane.without_effect().size(), 1u);
  EXPECT_EQ(lab->plane.without_effect().begin()->first, note);
  EXPECT_THAT(lab->plane.without_effect().begin()->second, ElementsAre("client"));
}

}  // namespace
}  // namespace wavetank::envoysim::lab
