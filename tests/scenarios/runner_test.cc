#include "scenarios/runner.h"

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scenarios/mesh_survey.h"
#include "scenarios/scenario.h"
#include "scenarios/xds_snapshot.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

const std::string kManifests = WAVETANK_SOURCE_DIR "/scenarios/manifests/";

// One cluster with helloworld v1 and sleep; `rest` goes on where the steps are.
std::string OneCluster(const std::string& rest) {
  return fmt::format(R"(
name: one
clusters:
  - name: cluster1
    network: network1
    manifests: [{0}one-network.yaml, {0}istiod.yaml, {0}sample.yaml, {0}helloworld-service.yaml, {0}helloworld-v1.yaml, {0}sleep.yaml]
flows:
  - {{name: hello, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "helloworld.sample:5000", rate: 100/s}}
steps:
{1})",
                     kManifests, rest);
}

absl::StatusOr<RunResult> RunText(const std::string& text, const RunOptions& options = {}) {
  const absl::StatusOr<Scenario> scenario = ParseScenario("test.yaml", text);
  if (!scenario.ok()) return scenario.status();
  return Run(*scenario, options);
}

TEST(Runner, AnExpectationThatDoesNotHoldSaysWhatWasFound) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: at rest
    then: [{flow: hello, requests: 50}]
    expect:
      - split: {flow: hello, is: {v1: 50%, v2: 50%}}
      - requests: {failed: 0}
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->Passed());
  const auto& expectations = result->steps[0].expectations;
  EXPECT_FALSE(expectations[0].held);
  EXPECT_THAT(expectations[0].explanation, HasSubstr("v1 100 % (50)"));
  EXPECT_GT(expectations[0].line, 0);
  EXPECT_TRUE(expectations[1].held) << expectations[1].explanation;
}

TEST(Runner, AChangeIsFollowedToTheLastProxyStageByStage) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: scaled
    do: [{scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}}]
    expect: [{converged: {within: <= 5s}}]
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->Passed());
  const Convergence& c = result->steps[0].convergence;
  ASSERT_FALSE(c.proxies.empty());
  for (const ProxyConvergence& proxy : c.proxies) {
    Duration sum{};
    for (const Duration stage : proxy.stages) sum += stage;
    EXPECT_EQ(sum, proxy.total) << proxy.proxy;
  }
  // Debouncing waits for 100 ms of quiet.
  EXPECT_GE(c.proxies.front().stages[static_cast<size_t>(Stage::kDebounce)], 100ms);
}

// What faults of the API server do to convergence.
TEST(Runner, StaleReadsKeepAChangeFromProxiesUntilTheyEnd) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: stale
    do:
      - apiServer: {cluster: cluster1, fault: stale-reads}
      - scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}
    linger: 5s
    expect:
      - endpoints: {of_proxy: {cluster: cluster1, namespace: sample, app: sleep}, host: helloworld.sample.svc.cluster.local, port: 5000, count: 1}
  - name: over
    do: [{apiServer: {cluster: cluster1, fault: none}}]
    expect:
      - eventually: {within: 2s, endpoints: {of_proxy: {cluster: cluster1, namespace: sample, app: sleep}, host: helloworld.sample.svc.cluster.local, port: 5000, count: 2}}
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& step : result->steps) {
    for (const auto& e : step.expectations) EXPECT_TRUE(e.held) << step.name << ": " << e.text << ": " << e.explanation;
  }
}

TEST(Runner, TooManyRequestsAndAWrongClockLeaveRunningWatchesAlone) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: scaled in spite of both
    do:
      - apiServer: {cluster: cluster1, fault: too-many-requests, retryAfter: 10s}
      - apiServer: {cluster: cluster1, fault: clock-skew, skew: -10m}
      - scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}
    linger: 5s
    expect:
      - endpoints: {of_proxy: {cluster: cluster1, namespace: sample, app: sleep}, host: helloworld.sample.svc.cluster.local, port: 5000, count: 2}
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& e : result->steps[0].expectations) EXPECT_TRUE(e.held) << e.text << ": " << e.explanation;
}

TEST(Runner, RequestsToNobodyFailWithTheClientsWords) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: gone
    do: [{scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 0}}]
    then: [{flow: hello, requests: 20}]
    expect:
      - flags: {flow: hello, only: [UH]}
      - requests: {failed: 100%}
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& e : result->steps[0].expectations) EXPECT_TRUE(e.held) << e.text << ": " << e.explanation;
}

TEST(Runner, StopsBeforeAStepAndShowsWhatAProxyHolds) {
  XdsSnapshot sleep;
  RunOptions options;
  options.until_step = 0;
  options.on_world = [&](sim::World& world) {
    world.commons().on_xds = [&](const std::string& proxy, const pilot::DiscoveryResponse& response) {
      if (proxy.rfind("sleep-", 0) == 0) sleep.Apply(response);
    };
  };
  const absl::StatusOr<RunResult> result = RunText(OneCluster("  - {name: never}\n"), options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->steps.empty());
  EXPECT_EQ(sleep.of(pilot::XdsType::kCds).count("outbound|5000||helloworld.sample.svc.cluster.local"), 1u);
  EXPECT_EQ(sleep.of(pilot::XdsType::kEds).count("outbound|5000||helloworld.sample.svc.cluster.local"), 1u);
}

TEST(Runner, RefusesAnUnknownProfileWithTheKnownOnes) {
  RunOptions options;
  options.profile = "istio-1.18+no-such-switch";
  const absl::StatusOr<RunResult> result = RunText(OneCluster("  - {name: never}\n"), options);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("gateway-once-per-cla"));
}

TEST(Survey, TellsServicesEndpointsAndWhoReachesWhat) {
  SurveyOptions options;
  options.requests = 10;
  for (const char* number : {"1", "2"}) {
    const std::string n = number;
    options.clusters.push_back({"cluster" + n,
                                {kManifests + "eastwest-network" + n + ".yaml", kManifests + "expose-services.yaml",
                                 kManifests + "sample.yaml", kManifests + "helloworld-service.yaml",
                                 kManifests + "helloworld-v" + n + ".yaml", kManifests + "sleep.yaml"},
                                "",
                                ""});
  }
  const absl::StatusOr<Survey> survey = SurveyMesh(options);
  ASSERT_TRUE(survey.ok()) << survey.status();
  const auto row = std::find_if(survey->reachability.begin(), survey->reachability.end(), [](const auto& r) {
    return r.client_cluster == "cluster1" && r.client == "sleep.sample" && r.service == "helloworld.sample:5000";
  });
  ASSERT_NE(row, survey->reachability.end());
  EXPECT_TRUE(row->failed.empty());
  EXPECT_GT(row->answered_by.at("cluster1"), 0);
  EXPECT_GT(row->answered_by.at("cluster2"), 0);
  // cluster1 sees cluster2's pod behind its gateway.
  EXPECT_TRUE(std::any_of(survey->endpoints.begin(), survey->endpoints.end(), [](const auto& e) {
    return e.cluster == "cluster1" && e.upstream == "outbound|5000||helloworld.sample.svc.cluster.local" &&
           e.endpoint == "172.30.2.1:15443";
  }));
}

}  // namespace
}  // namespace wavetank::scenario
