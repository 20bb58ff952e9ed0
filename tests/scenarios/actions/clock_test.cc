// A node whose clock is wrong: what runs there takes good certificates for expired ones, and istiod dates by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/actions/main_mesh.h"
namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

std::string CauseOfFailures(const RunResult& result) {
  std::string out;
  for (const TrafficResult& traffic : result.steps.back().traffic) {
    for (const TrafficResult::Failure& failure : traffic.failures) out += failure.cause + "\n";
  }
  return out;
}

TEST(ClockAction, ACertificateOfTheOthersHasExpiredForANodeThatIsADayAhead) {
  const auto result = RunOnMainMesh(R"(
  - {name: wrong, do: [{clock: {cluster: cluster1, node: a, skew: 25h}}, {restart: {cluster: cluster1, deployment: sample/sleep}}]}
  - name: asks
    then: [{flow: from-cluster1, requests: 100}]
)",
                                    {"a"});
  ASSERT_TRUE(result.ok()) << result.status();
  const TrafficResult& traffic = result->steps.back().traffic.at(0);
  EXPECT_EQ(traffic.failed, traffic.sent);
  EXPECT_THAT(CauseOfFailures(*result),
              HasSubstr("does not believe its certificate: the certificate of "
                        "spiffe://cluster.local/ns/sample/sa/default expired at 2023-09-02T"));
}

TEST(ClockAction, WhatAnIstiodSignsAheadOfTimeIsNotYetValidElsewhere) {
  const auto result = RunOnMainMesh(R"(
  - {name: wrong, do: [{clock: {cluster: cluster1, node: a, skew: 1h}}, {restart: {cluster: cluster1, deployment: sample/helloworld-v1}}]}
  - name: asks
    then: [{flow: from-cluster2, requests: 100}]
)",
                                    {"a"});
  ASSERT_TRUE(result.ok()) << result.status();
  // Of helloworld's versions, v1 has a new certificate of that istiod.
  EXPECT_THAT(result->steps.back().traffic.at(0).by_version, testing::ElementsAre(testing::Pair("v2", testing::_)));
  EXPECT_THAT(CauseOfFailures(*result),
              HasSubstr("does not believe its certificate: the certificate of "
                        "spiffe://cluster.local/ns/sample/sa/default is not valid before 2023-09-01T"));
}

TEST(ClockAction, AClockThatIsRightAgainHarmsNobody) {
  const auto result = RunOnMainMesh(R"(
  - {name: wrong, do: [{clock: {cluster: cluster1, node: a, skew: -25h}}]}
  - {name: right, do: [{clock: {cluster: cluster1, node: a, skew: 0s}}, {restart: {cluster: cluster1, deployment: sample/sleep}}]}
  - name: asks
    then: [{flow: from-cluster1, requests: 100}]
)",
                                    {"a"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->steps.back().traffic.at(0).sent, 100);
  EXPECT_EQ(CauseOfFailures(*result), "");
}

TEST(ClockAction, ANodeThatIsNotThereIsNamed) {
  const auto result = RunOnMainMesh("  - {name: s, do: [{clock: {cluster: cluster1, node: c, skew: 1h}}]}\n", {"a"});
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("has no node 'c'; it has a"));
}

}  // namespace
}  // namespace wavetank::scenario
