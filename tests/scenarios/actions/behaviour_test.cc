// Applications that fail and take their time, in a running mesh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

// The mesh and the flows of a story, with steps of its own.
absl::StatusOr<RunResult> RunWith(const std::string& steps) {
  absl::StatusOr<Scenario> scenario = LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network");
  if (!scenario.ok()) return scenario.status();
  const absl::StatusOr<Scenario> own =
      ParseScenario("own.yaml",
                    "name: n\nclusters: [{name: cluster1}, {name: cluster2}]\nflows:\n"
                    "  - {name: from-cluster1, from: {cluster: cluster1, app: sleep}, to: 'helloworld.sample:5000'}\n"
                    "steps:\n" +
                        steps);
  if (!own.ok()) return own.status();
  scenario->steps = own->steps;
  return Run(*scenario, {});
}

TEST(BehaviourAction, AVersionThatFailsIsRetriedElsewhereAndItsTimeShows) {
  const absl::StatusOr<RunResult> result = RunWith(R"(
  - name: v2 fails and v1 takes its time
    do:
      - behaviour: {app: helloworld, version: v2, answers: [{code: 503}]}
      - behaviour: {app: helloworld, version: v1, latency: {p50: 20ms, max: 40ms}}
    then: [{flow: from-cluster1, requests: 300}]
    expect:
      - split: {is: {v1: 100%}}
      - requests: {p50: '>= 15ms', retried: '>= 30%'}
  - name: as at first
    do:
      - behaviour: {app: helloworld, version: v2}
      - behaviour: {app: helloworld, version: v1}
    then: [{flow: from-cluster1, requests: 300}]
    expect:
      - split: {is: {v1: 50%, v2: 50%}}
      - requests: {p99: <= 15ms, retried: 0}
)");
  ASSERT_TRUE(result.ok()) << result.status();
  for (const StepResult& step : result->steps) {
    for (const ExpectationResult& e : step.expectations)
      EXPECT_TRUE(e.held) << step.name << ": " << e.text << ": " << e.explanation;
  }
}

TEST(BehaviourAction, PodsThatAreNotReadyGetNoRequestsUntilTheyAre) {
  const absl::StatusOr<RunResult> result = RunWith(R"(
  - name: v1 is not ready
    do: [{behaviour: {app: helloworld, version: v1, ready: false}}]
    then: [{flow: from-cluster1, requests: 100}]
    expect: [{split: {is: {v2: 100%}}}]
  - name: it turns ready
    do: [{behaviour: {app: helloworld, version: v1}}]
    then: [{flow: from-cluster1, requests: 300}]
    expect: [{split: {is: {v1: 50%, v2: 50%}}}]
)");
  ASSERT_TRUE(result.ok()) << result.status();
  for (const StepResult& step : result->steps) {
    for (const ExpectationResult& e : step.expectations)
      EXPECT_TRUE(e.held) << step.name << ": " << e.text << ": " << e.explanation;
  }
}

TEST(BehaviourAction, MistakesNameTheirPlaceAndTheRemedy) {
  const auto error = [](const std::string& value) {
    return std::string(Message(RunWith("  - {name: s, do: [{behaviour: " + value + "}]}\n").status()));
  };
  EXPECT_THAT(error("{answers: [{code: 503}]}"), HasSubstr("say app: NAME at least"));
  EXPECT_THAT(error("{app: a, answers: [{code: 99}]}"), HasSubstr("is no whole number from 200 to 599"));
  EXPECT_THAT(error("{app: a, answers: [{share: 10%}]}"), HasSubstr("write code: 503, or reset: true"));
  EXPECT_THAT(error("{app: a, answers: [{kode: 503}]}"), HasSubstr("did you mean 'code'?"));
  EXPECT_THAT(error("{app: a, latency: {p50: 9ms, p99: 5ms}}"), HasSubstr("let the times grow"));
  EXPECT_THAT(error("{app: a, readyFor: 5s}"), HasSubstr("give readyFor and unreadyFor"));
  EXPECT_THAT(error("{app: a, slowStart: 5s}"), HasSubstr("add latency"));
}

}  // namespace
}  // namespace wavetank::scenario
