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

TEST(Expectations, MistakesNameTheirPlaceAndTheRemedy) {
  const auto error = [](std::string_view text) { return std::string(Message(Read(text).status())); };
  EXPECT_THAT(error("requests: {}"), HasSubstr("write failed: 0"));
  EXPECT_THAT(error("requests: {flow: g, failed: 0}"), HasSubstr("no flow is named 'g'"));
  EXPECT_THAT(error("flags: {}"), HasSubstr("only: is required but missing"));
  EXPECT_THAT(error("split: {by: colour, is: {a: 100%}}"), HasSubstr("is not one of version, cluster, pod"));
  EXPECT_THAT(error("endpoints: {of_proxy: {app: a}, host: h, count: 1}"), HasSubstr("cluster: is required"));
  EXPECT_THAT(error("requests: {failed: 0}, mtls: {verified: 100%}"), HasSubstr("names one quantity"));
}

}  // namespace
}  // namespace wavetank::scenario
