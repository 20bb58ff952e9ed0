#include "core/agent/health_checker.h"

#include <string>
#include <vector>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HealthCheckerTest : public ::testing::Test {
 protected:
  void Begin(const nlohmann::json& readiness_probe) {
    const auto probe = ParseHealthProbe(readiness_probe, "10.0.0.7");
    ASSERT_TRUE(probe.ok()) << probe.status();
    checker = std::make_unique<HealthChecker>(
        host, *probe,
        [this](const HealthProbe&, absl::AnyInvocable<void(absl::Status)> done) {
          ++probes;
          if (answers) done(healthy ? absl::OkStatus() : absl::UnavailableError("refused"));
        },
        [this](bool is, const std::string& why) { told.push_back(is ? "healthy" : why); });
    checker->Start();
  }
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("vm", 0, nullptr);
  std::unique_ptr<HealthChecker> checker;
  bool healthy = true, answers = true;
  int probes = 0;
  std::vector<std::string> told;
};

TEST_F(HealthCheckerTest, TheFirstStateIsToldAndThenOnlyChanges) {
  Begin({{"periodSeconds", 5}, {"httpGet", {{"port", 8080}}}});
  Run(60s);
  EXPECT_THAT(told, ElementsAre("healthy"));
  EXPECT_EQ(probes, 13);
  healthy = false;
  Run(60s);
  EXPECT_THAT(told, ElementsAre("healthy", "refused"));
}

TEST_F(HealthCheckerTest, ThresholdsCountProbesInARow) {
  Begin({{"periodSeconds", 1}, {"successThreshold", 2}, {"failureThreshold", 3}, {"tcpSocket", {{"port", 1}}}});
  Run(500ms);
  EXPECT_THAT(told, testing::IsEmpty());
  Run(1s);
  EXPECT_THAT(told, ElementsAre("healthy"));
  healthy = false;
  Run(2s);
  EXPECT_THAT(told, ElementsAre("healthy"));
  Run(1s);
  EXPECT_THAT(told, ElementsAre("healthy", "refused"));
}

TEST_F(HealthCheckerTest, ItBeginsAfterTheInitialDelay) {
  Begin({{"initialDelaySeconds", 30}, {"exec", {{"command", {"true"}}}}});
  Run(29s);
  EXPECT_EQ(probes, 0);
  Run(2s);
  EXPECT_EQ(probes, 1);
}

TEST_F(HealthCheckerTest, AProbeThatHangsIsTheOnlyOne) {
  answers = false;
  Begin({{"periodSeconds", 1}, {"httpGet", {{"port", 8080}}}});
  Run(10s);
  EXPECT_EQ(probes, 1);
}

TEST(HealthProbeTest, AnHttpProbeWithoutAHostGoesToTheProxysAddress) {
  const auto probe = ParseHealthProbe(
      {{"httpGet", {{"port", 8443}, {"scheme", "HTTPS"}, {"httpHeaders", {{{"name", "a"}, {"value", "b"}}}}}}},
      "10.0.0.7");
  ASSERT_TRUE(probe.ok()) << probe.status();
  EXPECT_EQ(probe->host, "10.0.0.7");
  EXPECT_EQ(probe->path, "/");
  EXPECT_EQ(probe->scheme, "https");
  EXPECT_EQ(probe->headers.at("a"), "b");
  EXPECT_EQ(ParseHealthProbe({{"tcpSocket", {{"port", 1}}}}, "10.0.0.7")->host, "localhost");
}

TEST(HealthProbeTest, WhatProbesNothingIsRefused) {
  for (const nlohmann::json& bad : {nlohmann::json::object(), nlohmann::json{{"httpGet", {{"port", 0}}}},
                                    nlohmann::json{{"exec", nlohmann::json::object()}}}) {
    const auto probe = ParseHealthProbe(bad, "10.0.0.7");
    EXPECT_FALSE(probe.ok()) << bad;
    EXPECT_THAT(std::string(Message(probe.status())), HasSubstr("readinessProbe: "));
  }
}

}  // namespace
}  // namespace wavetank::agent
