// Case files on the simulated and on a real Envoy. Without a real one (tools/envoy installs it) the comparison is left
// out with one line; that the cases can be read and run on the simulated one is tested all the same.
#include <cstdlib>
#include <string_view>

#include "oracles/envoy/envoydiff.h"
#include "tests/long.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracles/envoy/access_logs.h"
#include "oracles/envoy/outcome.h"
#include "oracles/envoy/sim_driver.h"
#include "tests/left_out.h"
#include "tests/oracles/envoy/retried.h"

namespace wavetank::envoydiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kCases = WAVETANK_SOURCE_DIR "/tests/oracles/envoy/cases";

class RealEnvoyTest : public ::testing::TestWithParam<const char*> {};

// A sample; all of them in ./test --long. Bad resources and TLS are never left out: they take little waiting.
TEST_P(RealEnvoyTest, DoesWhatTheSimulatedOneDoes) {
  const auto envoy = FindEnvoy("", {WAVETANK_BINARY_DIR, WAVETANK_SOURCE_DIR "/build"});
  NEEDS_TOOL(envoy.ok(), "a real Envoy", envoy.status().message());
  const bool refused = std::string_view(GetParam()) == "refused" || std::string_view(GetParam()) == "tls";
  Options options;
  options.envoy = *envoy;
  options.every = LongTests() || refused ? 1 : 6;
  options.jobs = 4;     // they mostly wait
  options.retries = 2;  // real time on a machine that may be busy
  std::string report, left_out;
  Retried retried;
  const auto results = RunCases(kCases + "/" + GetParam() + ".json", options, [&](const CaseResult& result) {
    for (const std::string& d : result.differences) report += result.name + ": " + d + "\n";
    if (!result.left_out.empty()) left_out = result.left_out;
    retried.Add(result);
  });
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_GE(results->size(), LongTests() || refused ? 20u : 3u);
  EXPECT_EQ(report, "");
  retried.Report(results->size());
  NEEDS_TOOL(left_out.empty(), "a network namespace for a real Envoy", left_out);
}

INSTANTIATE_TEST_SUITE_P(Cases, RealEnvoyTest,
                         ::testing::Values("load_balancing", "routes", "failures", "ads", "listeners", "rbac",
                                           "ext_authz", "refused", "tls", "jwt", "silent", "names", "original_dst",
                                           "access_logs"),
                         [](const auto& param) { return std::string(param.param); });

TEST(CasesTest, AllRunOnTheSimulatedEnvoyTheSameWayTwice) {
  const auto cases = LoadCases(kCases, "127.77.0.");
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_GE(cases->size(), 300u);
  for (const Case& c : *cases) {
    const auto first = RunSimulated(c, 1), second = RunSimulated(c, 1);
    ASSERT_TRUE(first.ok() && second.ok()) << c.name;
    EXPECT_THAT(Compare(c, *first, *second), IsEmpty()) << c.name;
    EXPECT_EQ(first->ads, second->ads);
  }
}

TEST(CasesTest, BadResourcesAreRefusedAndHarmNoOther) {
  const auto cases = LoadCases(kCases + "/refused.json", "127.77.0.");
  ASSERT_TRUE(cases.ok());
  for (const Case& c : *cases) {
    const auto outcome = RunSimulated(c, 1);
    ASSERT_TRUE(outcome.ok());
    ASSERT_FALSE(outcome->requests.empty());
    const bool refused = outcome->ads.back().find(" error 13") != std::string::npos;
    EXPECT_EQ(refused, c.name.find("accepted") == std::string::npos) << c.name;
    if (!refused) continue;
    EXPECT_EQ(outcome->requests[0][0].code, 200) << c.name;
  }
}

TEST(CompareTest, TellsWhatDiffers) {
  Case c;
  c.stats = {"x"};
  Outcome one, other;
  one.stats["x"] = 1;
  other.stats["x"] = 2;
  one.ads = {"CDS v='' n='' []"};
  one.requests = {{RequestOutcome{200, "a"}}};
  other.requests = {{RequestOutcome{503, "a"}}};
  other.clusters = {"c"};
  const auto differences = Compare(c, one, other);
  EXPECT_THAT(differences, ElementsAre(HasSubstr("ADS message 1"), HasSubstr("200"), HasSubstr("503"),
                                       HasSubstr("clusters"), HasSubstr("x: simulated 1, real 2")));
  EXPECT_THAT(Compare(c, one, one), IsEmpty());
}

TEST(CompareTest, LinesOfAccessLogsAreComparedWithoutTimesAndPorts) {
  const std::string text =
      "[2026-11-22T07:58:45.301Z] \"GET / HTTP/1.1\" 200 - 0 4 2 1 \"-\" \"-\" "
      "\"f6375854-d113-40cc-b5f4-d8f8371408e2\" \"x\" \"127.70.1.11:9000\" 127.0.0.1:38228\n"
      "[2026-11-22T07:58:47.528Z] \"- - -\" 0 - - - \"-\" 71 55 407 - \"-\"\n"
      "[2026-11-22T07:58:47.934Z] \"- - -\" 0 - - x \"-\" - 0 1 - \"-\"\n"
      "{\"duration\":12,\"upstream_service_time\":\"3\"} 15ms\n";
  EXPECT_THAT(
      ComparableLines(text),
      ElementsAre("[TIME] \"GET / HTTP/1.1\" 200 - 0 4 D S \"-\" \"-\" \"ID\" \"x\" \"127.70.1.11:9000\" "
                  "127.0.0.1:PORT",
                  "[TIME] \"- - -\" 0 - - - \"-\" B B D - \"-\"", "[TIME] \"- - -\" 0 - - x \"-\" B 0 D - \"-\"",
                  "{\"duration\":D,\"upstream_service_time\":\"D\"} Dms"));
  Case c;
  Outcome one, other;
  one.logs["/logs/a"] = {"a", "b"};
  other.logs["/logs/a"] = {"b", "a"};
  EXPECT_THAT(Compare(c, one, other), IsEmpty());
  other.logs["/logs/b"] = {"more"};
  EXPECT_THAT(Compare(c, one, other), ElementsAre(HasSubstr("/logs/b")));
  EXPECT_THAT(Compare(c, other, one), ElementsAre(HasSubstr("/logs/b")));
}

TEST(CompareTest, CountsMayDifferAsFarAsChanceGoes) {
  Case c;
  Outcome one, other;
  one.requests.resize(1);
  other.requests.resize(1);
  for (int i = 0; i < 400; ++i) {
    one.requests[0].push_back({200, i < 200 ? "a" : "b"});
    other.requests[0].push_back({200, i < 220 ? "a" : "b"});
  }
  EXPECT_FALSE(Compare(c, one, other).empty());
  c.statistical = true;
  EXPECT_TRUE(Compare(c, one, other).empty());
  for (auto& r : other.requests[0]) r.body = "a";
  EXPECT_FALSE(Compare(c, one, other).empty());
}

TEST(CompareTest, DebugTextAndTheWayToAFieldDoNotCount) {
  Case c;
  Outcome one, other;
  one.ads = {"CDS v='' n='n1' [] error 13: Proto constraint validation failed (BValidationError.X: value is required)"};
  other.ads = {
      "CDS v='' n='n1' [] error 13: goo.gle/debugstr   \nname: \"bad\"\n: Proto constraint validation failed "
      "(AValidationError.B: embedded message failed validation | caused by BValidationError.X: value is required)"};
  EXPECT_THAT(Compare(c, one, other), IsEmpty());
  other.ads[0] = "CDS v='' n='n1' [] error 13: something else";
  EXPECT_FALSE(Compare(c, one, other).empty());
  c.compare_errors = false;
  EXPECT_THAT(Compare(c, one, other), IsEmpty());
}

TEST(LoadTest, BadCasesAreNamed) { EXPECT_FALSE(LoadCases("/nowhere", "127.77.0.").ok()); }

}  // namespace
}  // namespace wavetank::envoydiff
