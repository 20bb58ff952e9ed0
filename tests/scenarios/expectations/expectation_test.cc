#include "scenarios/expectations/expectation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "scenarios/reader/read_scenario.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

absl::StatusOr<Expectation> Read(std::string_view text) {
  const absl::StatusOr<Scenario> scenario =
      ParseScenario("s.yaml", fmt::format("name: n\nclusters: [{{name: c1}}]\n"
                                          "flows: [{{name: f, from: {{cluster: c1, app: a}}, to: h:80}}]\n"
                                          "steps: [{{name: s, expect: [{{{}}}]}}]\n",
                                          text));
  if (!scenario.ok()) return scenario.status();
  return scenario->steps[0].expectations[0];
}

class NoWorld final : public WorldView {
 public:
  std::vector<ProxyEndpoints> EndpointsOf(const std::string&, const std::string&, const std::string&,
                                          const std::string&, int) const override {
    return {};
  }
};

TEST(Expectations, EveryExampleIsReadDescribedAndJudged) {
  ASSERT_GE(Expectations().size(), 7u);
  for (const ExpectationKind& kind : Expectations()) {
    const absl::StatusOr<Expectation> e = Read(fmt::format("{}: {}", kind.row.name, kind.example));
    ASSERT_TRUE(e.ok()) << kind.row.name << ": " << e.status();
    EXPECT_THAT(Describe(*e), HasSubstr(std::string(kind.row.name)));
    // A step in which nothing happened holds nothing but its own convergence.
    EXPECT_EQ(Judge(*e, {}, NoWorld()).held, false) << kind.row.name;
  }
}

TEST(Expectations, StandWithinAlwaysAndEventuallyOnlyWhereThatMeansSomething) {
  for (const ExpectationKind& kind : Expectations()) {
    const std::string body = kind.row.name == "requests" ? "{failed: 0}" : std::string(kind.example);
    for (const auto& [mode, allowed] : {std::pair{"always", kind.always}, {"eventually", kind.eventually}}) {
      const absl::StatusOr<Expectation> e = Read(fmt::format("{}: {{{}: {}}}", mode, kind.row.name, body));
      EXPECT_EQ(e.ok(), allowed) << mode << " " << kind.row.name << ": " << e.status();
    }
  }
}

TEST(Expectations, HopsOfRequestsThatAllFailedHoldNothing) {
  const absl::StatusOr<Expectation> e = Read("hops: {remote: 1, local: 0}");
  ASSERT_TRUE(e.ok()) << e.status();
  StepResult step;
  TrafficResult& traffic = step.traffic.emplace_back();
  traffic.flow = "f";
  traffic.sent = traffic.failed = 10;
  EXPECT_FALSE(Judge(*e, step, NoWorld()).held);
}

StepResult StepWithNacks() {
  StepResult step;
  step.nacks = {{"sleep@c1", "LDS", "Error adding listener: no such filter", 1s, 2},
                {"sleep@c1", "CDS", "Error adding cluster", 2s, 1}};
  return step;
}

TEST(Expectations, NacksAreCountedAndNamed) {
  const StepResult step = StepWithNacks();
  const auto judge = [&](std::string_view text) {
    const absl::StatusOr<Expectation> e = Read(text);
    EXPECT_TRUE(e.ok()) << text << ": " << e.status();
    return e.ok() ? Judge(*e, step, NoWorld()) : ExpectationResult{};
  };
  EXPECT_FALSE(judge("nacks: 0").held);
  EXPECT_THAT(judge("nacks: 0").explanation,
              HasSubstr("3 responses were refused; sleep@c1 refused LDS: Error adding listener: no such filter"));
  EXPECT_TRUE(judge("nacks: 3").held);
  EXPECT_TRUE(judge("nacks: any").held);
  EXPECT_TRUE(judge("nacks: {count: '>= 2'}").held);
  EXPECT_TRUE(judge("nacks: {count: 2, type: LDS}").held);
  EXPECT_TRUE(judge("nacks: {count: 1, says: adding cluster}").held);
  EXPECT_FALSE(judge("nacks: {count: 1, says: adding route}").held);
}

TEST(Expectations, NacksThatNoExpectationIsAboutFailEveryStep) {
  const StepResult step = StepWithNacks();
  const auto unexpected = [&](std::vector<std::string_view> texts) {
    std::vector<Expectation> expectations;
    for (const std::string_view text : texts) {
      const absl::StatusOr<Expectation> e = Read(text);
      EXPECT_TRUE(e.ok()) << e.status();
      if (e.ok()) expectations.push_back(*e);
    }
    return UnexpectedNacks(expectations, step);
  };
  ASSERT_TRUE(unexpected({}).has_value());
  EXPECT_FALSE(unexpected({})->held);
  EXPECT_FALSE(unexpected({"nacks: any"}).has_value());
  EXPECT_FALSE(unexpected({"nacks: {type: LDS, count: 2}", "nacks: {type: CDS, count: 1}"}).has_value());
  const auto clusters = unexpected({"nacks: {type: LDS, count: any}"});
  ASSERT_TRUE(clusters.has_value());
  EXPECT_THAT(clusters->explanation, HasSubstr("1 response was refused; sleep@c1 refused CDS"));
  EXPECT_FALSE(UnexpectedNacks({}, StepResult()).has_value());
}

TEST(Expectations, AnInvariantHoldsIfItWasWatchedAndNothingBrokeIt) {
  const absl::StatusOr<Expectation> always = Read("always: {invariant: I1}");
  const absl::StatusOr<Expectation> at_end = Read("invariant: I1");
  ASSERT_TRUE(always.ok() && at_end.ok()) << always.status() << at_end.status();
  StepResult step;
  EXPECT_FALSE(Judge(*always, step, NoWorld()).held);
  step.watched = {"no-foreign-pod-address"};
  EXPECT_TRUE(Judge(*always, step, NoWorld()).held);
  step.violations.push_back({"no-foreign-pod-address", "sleep@c1", "holds 10.2.0.1:80", "", Time(1s), Time(2s), {4}});
  EXPECT_FALSE(Judge(*always, step, NoWorld()).held);
  EXPECT_TRUE(Judge(*at_end, step, NoWorld()).held) << "it was over before the step ended";
}

TEST(Expectations, MistakesNameTheirPlaceAndTheRemedy) {
  const auto error = [](std::string_view text) { return std::string(Message(Read(text).status())); };
  EXPECT_THAT(error("requests: {}"), HasSubstr("write failed: 0"));
  EXPECT_THAT(error("requests: {flow: g, failed: 0}"), HasSubstr("no flow is named 'g'"));
  EXPECT_THAT(error("flags: {}"), HasSubstr("only: is required but missing"));
  EXPECT_THAT(error("split: {by: colour, is: {a: 100%}}"), HasSubstr("is not one of version, cluster, pod"));
  EXPECT_THAT(error("endpoints: {of_proxy: {app: a}, host: h, count: 1}"), HasSubstr("cluster: is required"));
  EXPECT_THAT(error("nacks: many"), HasSubstr("is no number or range"));
  EXPECT_THAT(error("nacks: {}"), HasSubstr("write nacks: 0, or nacks: any"));
  EXPECT_THAT(error("nacks: {count: 1, type: MDS}"), HasSubstr("is not one of CDS, EDS, LDS, RDS, SDS"));
  EXPECT_THAT(error("invariant: no-foreign-pod-adress"), HasSubstr("did you mean no-foreign-pod-address?"));
  EXPECT_THAT(error("invariant: {name: I1}"), HasSubstr("write invariant: no-foreign-pod-address"));
  EXPECT_THAT(error("requests: {failed: 0}, mtls: {verified: 100%}"), HasSubstr("names one quantity"));
}

}  // namespace
}  // namespace wavetank::scenario
