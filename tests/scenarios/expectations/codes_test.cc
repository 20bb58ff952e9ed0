// What is expected of status codes, attempts and pods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/expectations/expectation.h"
#include "scenarios/reader/read_scenario.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

class NothingRuns final : public WorldView {
 public:
  std::vector<ProxyEndpoints> EndpointsOf(const std::string&, const std::string&, const std::string&,
                                          const std::string&, int) const override {
    return {};
  }
};

absl::StatusOr<Expectation> ReadOne(const std::string& text) {
  const absl::StatusOr<Scenario> scenario =
      ParseScenario("s.yaml", "name: n\nclusters: [{name: c1}]\nsteps: [{name: s, expect: [{" + text + "}]}]\n");
  if (!scenario.ok()) return scenario.status();
  return scenario->steps[0].expectations[0];
}

// A hundred requests: 90 with 200, 10 with 503; 120 tries; two pods.
bool Holds(const std::string& text) {
  const absl::StatusOr<Expectation> e = ReadOne(text);
  EXPECT_TRUE(e.ok()) << text << ": " << e.status();
  if (!e.ok()) return false;
  StepResult step;
  TrafficResult& traffic = step.traffic.emplace_back();
  traffic.sent = 100;
  traffic.failed = 10;
  traffic.attempts = 120;
  traffic.by_code = {{200, 90}, {503, 10}};
  traffic.by_pod = {{"a", 50}, {"b", 40}};
  return Judge(*e, step, NothingRuns()).held;
}

TEST(CodesExpectation, CountsWhatWasAnswered) {
  EXPECT_TRUE(Holds("codes: {only: [200, 503]}"));
  EXPECT_FALSE(Holds("codes: {only: [200]}"));
  EXPECT_TRUE(Holds("codes: {code: 503, count: 10}"));
  EXPECT_TRUE(Holds("codes: {code: 503, count: 10%}"));
  EXPECT_FALSE(Holds("codes: {code: 503, count: <= 9}"));
  EXPECT_TRUE(Holds("codes: {code: 404, count: 0}"));
  EXPECT_FALSE(Holds("codes: {only: [200, 503], code: 200, count: '>= 91%'}"));
}

TEST(CodesExpectation, HalfOfItIsAMistake) {
  EXPECT_THAT(ReadOne("codes: {code: 503}").status().ToString(), HasSubstr("half of a quantity"));
  EXPECT_THAT(ReadOne("codes: {}").status().ToString(), HasSubstr("names no code"));
}

TEST(RequestsExpectation, KnowsAttemptsAndPods) {
  EXPECT_TRUE(Holds("requests: {attempts: 120, pods: 2}"));
  EXPECT_FALSE(Holds("requests: {attempts: <= 100}"));
  EXPECT_FALSE(Holds("requests: {pods: 3..9}"));
  EXPECT_THAT(ReadOne("always: {requests: {attempts: 3}}").status().ToString(), HasSubstr("no instant has all"));
}

}  // namespace
}  // namespace wavetank::scenario
