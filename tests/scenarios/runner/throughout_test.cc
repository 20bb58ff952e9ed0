// Traffic that goes on beside all steps of a scenario.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFlow =
    "flows: [{name: f, from: {cluster: cluster1, namespace: sample, app: sleep}, to: 'helloworld.sample:5000', rate: "
    "50/s}]\n";

// The mesh of two networks; paths of its manifests count from the repository.
absl::StatusOr<Scenario> ThroughoutScenario(const std::string& rest) {
  absl::StatusOr<Scenario> scenario =
      ParseScenario(WAVETANK_SOURCE_DIR "/throughout.yaml",
                    "name: n\nextends: scenarios/multi-primary-multi-network/scenario.yaml\n" + (kFlow + rest));
  if (!scenario.ok()) return scenario;
  for (ClusterSpec& cluster : scenario->clusters) {
    for (ManifestSpec& manifest : cluster.manifests) manifest.path = WAVETANK_SOURCE_DIR "/" + manifest.path;
  }
  return scenario;
}

RunResult RunThroughout(const std::string& rest, const RunOptions& options = {}) {
  const absl::StatusOr<Scenario> scenario = ThroughoutScenario(rest);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (!scenario.ok()) return {};
  absl::StatusOr<RunResult> result = Run(*scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : RunResult{};
}

constexpr const char* kTwoWaves =
    "  - {name: one, at: 5s, settle: 0s, do: [{scale: {cluster: cluster2, deployment: sample/helloworld-v2, replicas: "
    "3}}]}\n"
    "  - {name: two, at: 15s, settle: 0s, do: [{scale: {cluster: cluster2, deployment: sample/helloworld-v2, replicas: "
    "1}}]}\n"
    "  - {name: the end, at: 20s, settle: 0s}\n";

TEST(Throughout, GoesOnFromTheFirstStepToTheLastAndIsToldLast) {
  const RunResult result = RunThroughout(
      "throughout: {traffic: [{flow: f}], expect: [{requests: {failed: 0}}]}\nsteps:\n" + std::string(kTwoWaves));
  ASSERT_EQ(result.steps.size(), 4U);
  const StepResult& throughout = result.steps.back();
  EXPECT_EQ(throughout.name, "throughout");
  ASSERT_EQ(throughout.traffic.size(), 1U);
  EXPECT_NEAR(static_cast<double>(throughout.traffic[0].sent), 20 * 50, 5);
  EXPECT_TRUE(result.steps[0].traffic.empty());
  ASSERT_EQ(throughout.expectations.size(), 1U);
  EXPECT_TRUE(throughout.expectations[0].held) << throughout.expectations[0].explanation;
}

// Nobody waits there, so it was read off before anything had come of it: "no proxy was sent anything".
TEST(Throughout, AStepThatDoesNotWaitTellsWhatCameOfItBeforeTheNext) {
  const RunResult result = RunThroughout("throughout: {traffic: [{flow: f}]}\nsteps:\n" + std::string(kTwoWaves));
  ASSERT_EQ(result.steps.size(), 4U);
  for (const size_t step : {0U, 1U}) {
    const Convergence& c = result.steps[step].convergence;
    ASSERT_FALSE(c.proxies.empty()) << step;
    EXPECT_GT(c.proxies.front().total, Duration(100ms)) << step;
    EXPECT_LT(c.proxies.front().total, Duration(10s)) << step;
    EXPECT_GT(c.connected, 0) << step;
    EXPECT_THAT(result.steps[step].notes, Not(Contains(HasSubstr("at rest")))) << step;
  }
}

TEST(Throughout, AFailureInAnyStepFailsIt) {
  const RunResult result = RunThroughout(
      "throughout: {traffic: [{flow: f}], expect: [{always: {requests: {failed: 0}}}]}\nsteps:\n"
      "  - {name: gone, at: 2s, settle: 0s, do: [{scale: {cluster: cluster1, deployment: sample/helloworld-v1, "
      "replicas: 0}}, {scale: {cluster: cluster2, deployment: sample/helloworld-v2, replicas: 0}}]}\n"
      "  - {name: the end, at: 12s, settle: 0s}\n");
  ASSERT_EQ(result.steps.size(), 3U);
  EXPECT_FALSE(result.Passed());
  EXPECT_FALSE(result.steps.back().expectations[0].held);
  EXPECT_THAT(result.steps.back().expectations[0].explanation, HasSubstr("in the second from"));
}

TEST(Throughout, StepsCountTheirOwnTrafficAlone) {
  const RunResult result = RunThroughout(
      "throughout: {traffic: [{flow: f}]}\nsteps:\n  - {name: one, then: [{flow: f, requests: 100}], expect: "
      "[{requests: {sent: 100, failed: 0}}]}\n");
  ASSERT_EQ(result.steps.size(), 2U);
  EXPECT_TRUE(result.Passed()) << result.steps[0].expectations[0].explanation;
  EXPECT_GE(result.steps[1].traffic[0].sent, 90);
}

TEST(Throughout, OfARunThatIsCutIsNotJudged) {
  RunOptions options;
  options.until = Moment{"", Duration(60s)};
  const RunResult result = RunThroughout(
      "throughout: {traffic: [{flow: f}], expect: [{requests: {failed: 0}}]}\nsteps:\n"
      "  - {name: one, at: 5m, settle: 0s}\n",
      options);
  ASSERT_EQ(result.steps.size(), 1U);
  EXPECT_EQ(result.steps[0].name, "throughout");
  EXPECT_THAT(result.steps[0].cut, HasSubstr("as asked for"));
  EXPECT_EQ(result.steps[0].not_judged, 1U);
  EXPECT_GT(result.steps[0].traffic[0].sent, 0);
}

TEST(Throughout, MistakesAreToldWithTheirPlace) {
  const auto error = [](const std::string& throughout) {
    return std::string(ThroughoutScenario("throughout: " + throughout + "\nsteps: [{name: s}]\n").status().message());
  };
  EXPECT_THAT(error("{traffic: []}"), HasSubstr("throughout.yaml:4"));
  EXPECT_THAT(error("{traffic: []}"), HasSubstr("nothing is sent"));
  EXPECT_THAT(error("{traffic: [{flow: g}]}"), HasSubstr("'g'"));
  EXPECT_THAT(error("{traffic: [{flow: f}], expect: [{nacks: 0}]}"), HasSubstr("is no matter of traffic"));
}

}  // namespace
}  // namespace wavetank::scenario
