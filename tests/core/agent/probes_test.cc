#include "core/agent/probes.h"

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::agent {
namespace {

using ::testing::HasSubstr;

std::string Updates(int cds, int cds_rejected, int lds, int lds_rejected) {
  return "cluster_manager.cds.update_rejected: " + std::to_string(cds_rejected) +
         "\ncluster_manager.cds.update_success: " + std::to_string(cds) +
         "\nlistener_manager.lds.update_rejected: " + std::to_string(lds_rejected) +
         "\nlistener_manager.lds.update_success: " + std::to_string(lds) + "\n";
}

TEST(ReadyProbe, WithoutAnyConfigurationItAsksWhetherIstiodRuns) {
  EXPECT_EQ(Message(ReadyProbe().OnUpdates(Updates(0, 0, 0, 0))),
            "config not received from XDS server (is Istiod running?): cds updates: 0 successful, 0 rejected; lds "
            "updates: 0 successful, 0 rejected");
}

TEST(ReadyProbe, SaysWhetherWhatIsMissingWasRefused) {
  EXPECT_THAT(std::string(Message(ReadyProbe().OnUpdates(Updates(1, 0, 0, 0)))),
              HasSubstr("config not fully received from XDS server"));
  EXPECT_THAT(std::string(Message(ReadyProbe().OnUpdates(Updates(1, 0, 0, 2)))),
              HasSubstr("config received from XDS server, but was rejected"));
}

TEST(ReadyProbe, WhatWasOnceSeenIsNotAskedForAgain) {
  ReadyProbe probe;
  EXPECT_TRUE(probe.OnUpdates(Updates(1, 0, 1, 0)).ok());
  EXPECT_FALSE(probe.needs_updates());
  EXPECT_TRUE(probe.OnUpdates(absl::UnavailableError("connection refused")).ok());
}

TEST(ReadyProbe, AnEnvoyThatInitializesIsNotReady) {
  ReadyProbe probe;
  EXPECT_EQ(Message(probe.OnState(std::string("listener_manager.workers_started: 0\nserver.state: 2\n"))),
            "server is not live, current state is: PRE_INITIALIZING");
  EXPECT_EQ(Message(probe.OnState(std::string("listener_manager.workers_started: 0\nserver.state: 0\n"))),
            "workers have not yet started");
  EXPECT_THAT(std::string(Message(probe.OnState(std::string("server.state: 0\n")))),
              HasSubstr("listener_manager.workers_started is not yet updated"));
  EXPECT_TRUE(probe.OnState(std::string("listener_manager.workers_started: 1\nserver.state: 0\n")).ok());
}

TEST(AppProbers, ThreeKindsAreRead) {
  const auto probers = ParseAppProbers(
      R"({"/app-health/web/readyz":{"httpGet":{"path":"ready","port":8080,"scheme":"HTTPS","host":"h",
          "httpHeaders":[{"name":"A","value":"b"}]},"timeoutSeconds":2},
          "/app-health/db/livez":{"tcpSocket":{"port":5432}},
          "/app-health/rpc/startupz":{"grpc":{"port":9090,"service":"s"}}})");
  ASSERT_TRUE(probers.ok()) << probers.status();
  const AppProber& web = probers->at("/app-health/web/readyz");
  EXPECT_EQ(web.path, "/ready");
  EXPECT_TRUE(web.https);
  EXPECT_EQ(web.timeout, 2s);
  EXPECT_EQ(web.headers.at("A"), "b");
  EXPECT_EQ(probers->at("/app-health/db/livez").kind, AppProber::Kind::kTcp);
  EXPECT_EQ(probers->at("/app-health/rpc/startupz").service, "s");
}

TEST(AppProbers, WhatIsNoneIsRefusedWithAReason) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(nonsense)", "failed to decode app prober"},
      {R"({"/other/web/readyz":{"tcpSocket":{"port":1}}})", "invalid path"},
      {R"({"/app-health/web/health":{"tcpSocket":{"port":1}}})", "invalid path"},
      {R"({"/app-health/web/livez":{}})", "invalid prober type"},
      {R"({"/app-health/web/livez":{"tcpSocket":{"port":1},"grpc":{"port":2}}})", "invalid prober type"},
      {R"({"/app-health/web/livez":{"tcpSocket":{"port":"http"}}})", "the port must be int type"},
      {R"({"/app-health/web/livez":[1]})", "invalid prober type"},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_THAT(std::string(Message(ParseAppProbers(text).status())), HasSubstr(why)) << text;
  }
}

TEST(AppProbers, ARedirectIsASuccessAndSilenceIsNone) {
  EXPECT_EQ(AppProbeStatus(302), 200);
  EXPECT_EQ(AppProbeStatus(503), 503);
  EXPECT_EQ(AppProbeStatus(0), 500);
}

TEST(HealthTally, TellsChangesOnlyAndAfterTheThreshold) {
  HealthTally tally(2, 3);
  std::vector<int> told;
  const auto probe = [&](bool healthy) {
    if (const auto change = tally.OnProbe(healthy)) told.push_back(*change);
  };
  probe(true);
  EXPECT_TRUE(told.empty());
  for (int i = 0; i < 5; ++i) probe(true);
  EXPECT_THAT(told, ::testing::ElementsAre(1));
  probe(false);
  probe(false);
  probe(true);  // not three in a row
  probe(false);
  probe(false);
  EXPECT_EQ(told.size(), 1u);
  probe(false);
  EXPECT_THAT(told, ::testing::ElementsAre(1, 0));
}

}  // namespace
}  // namespace wavetank::agent
