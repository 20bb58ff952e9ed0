// Case files on the simulated and on a real Envoy. Without a real one (tools/envoy installs it) the comparison is left
// out with one line; that the cases can be read and run on the simulated one is tested all the same.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "oracles/envoy/envoydiff.h"
#include "tests/long.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "oracles/envoy/access_logs.h"
#include "oracles/envoy/outcome.h"
#include "oracles/envoy/real_driver.h"
#include "oracles/envoy/sim_driver.h"
#include "tests/left_out.h"
#include "tests/oracles/envoy/retried.h"

namespace wavetank::envoydiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kCases = WAVETANK_SOURCE_DIR "/tests/oracles/envoy/cases";

class RealEnvoyTest : public ::testing::TestWithParam<std::string> {};

// A sample; all of them in ./test --long. Those that take little waiting are never left out.
TEST_P(RealEnvoyTest, DoesWhatTheSimulatedOneDoes) {
  const auto envoy = FindEnvoy("", {WAVETANK_BINARY_DIR, WAVETANK_SOURCE_DIR "/build"});
  NEEDS_TOOL(envoy.ok(), "a real Envoy", envoy.status().message());
  const std::string& file = GetParam();
  const bool whole = file == "refused" || file == "tls" || file == "http10";
  Options options;
  options.envoy = *envoy;
  options.every = LongTests() || whole ? 1 : 6;
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
  const auto all = LoadCases(kCases + "/" + GetParam() + ".json", "127.77.0.");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_GE(all->size(), 3u);
  const auto every = static_cast<size_t>(options.every);
  EXPECT_EQ(results->size(), (all->size() + every - 1) / every);
  EXPECT_EQ(report, "");
  retried.Report(results->size());
  NEEDS_TOOL(left_out.empty(), "a network namespace for a real Envoy", left_out);
}

// Every file of the folder, so that none is forgotten.
std::vector<std::string> CaseFiles() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kCases)) out.push_back(entry.path().stem());
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Cases, RealEnvoyTest, ::testing::ValuesIn(CaseFiles()),
                         [](const auto& param) { return param.param; });

TEST(CasesTest, AllRunOnTheSimulatedEnvoyTheSameWayTwice) {
  const auto cases = LoadCases(kCases, "127.77.0.");
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_GE(cases->size(), 300u);
  for (const Case& c : *cases) {
    const auto first = RunSimulated(c, Chance{}), second = RunSimulated(c, Chance{});
    ASSERT_TRUE(first.ok() && second.ok()) << c.name;
    EXPECT_THAT(Compare(c, *first, *second), IsEmpty()) << c.name;
    EXPECT_EQ(first->ads, second->ads);
  }
}

TEST(CasesTest, BadResourcesAreRefusedAndHarmNoOther) {
  const auto cases = LoadCases(kCases + "/refused.json", "127.77.0.");
  ASSERT_TRUE(cases.ok());
  for (const Case& c : *cases) {
    const auto outcome = RunSimulated(c, Chance{});
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

std::vector<RequestOutcome> Requests(int good, int bad, double seconds = 0.001) {
  std::vector<RequestOutcome> out;
  for (int i = 0; i < good + bad; ++i) {
    RequestOutcome& r = out.emplace_back();
    r.code = i < good ? 200 : 503;
    r.body = i % 2 == 0 ? "a" : "b";
    r.seconds = seconds;
  }
  return out;
}

TEST(CompareTest, AnEjectionOneFailureLaterIsADifference) {
  Case c;
  Outcome one, other;
  one.requests = {Requests(15, 5)};
  other.requests = {Requests(14, 6)};
  EXPECT_FALSE(Compare(c, one, other).empty());
  c.counts_about = true;
  EXPECT_THAT(Compare(c, one, other), IsEmpty());
}

TEST(CompareTest, WhoAnswersFirstIsChance) {
  Case c;
  Outcome one, other;
  one.requests = {Requests(5, 0)};
  other.requests = {Requests(5, 0)};
  for (RequestOutcome& r : other.requests[0]) r.body = r.body == "a" ? "b" : "a";
  EXPECT_THAT(Compare(c, one, other), IsEmpty());
  for (RequestOutcome& r : other.requests[0]) r.body = "a";
  EXPECT_FALSE(Compare(c, one, other).empty());
}

TEST(CompareTest, ABackOffEightyTimesAsLongIsADifference) {
  Case c;
  Outcome one, other;
  one.requests = {Requests(10, 0, 0.012)};
  other.requests = {Requests(10, 0, 0.012 * 80)};
  EXPECT_THAT(Compare(c, one, other), ElementsAre(HasSubstr("half of them took 0.012 s simulated, 0.960 s real")));
  other.requests = {Requests(10, 0, 0.1)};  // a busy machine
  EXPECT_THAT(Compare(c, one, other), IsEmpty());
}

TEST(CompareTest, ACaseThatSeesNothingSaysSo) {
  Case c;
  Outcome nothing;
  nothing.ads = {"CDS v='' n='' []"};
  nothing.requests = {{RequestOutcome{}}};
  nothing.clusters = {"c"};
  EXPECT_THAT(Compare(c, nothing, nothing), ElementsAre(HasSubstr("nothing was seen")));
  c.stats = {"clustre.c.upstream_rq_total"};
  Outcome real = nothing;
  nothing.stats[c.stats[0]] = real.stats[c.stats[0]] = 0;
  real.unknown_stats = c.stats;
  EXPECT_THAT(Compare(c, nothing, real), ElementsAre(HasSubstr("no such counter"), HasSubstr("nothing was seen")));
}

// A simulated Envoy whose rule is another: the case that holds it must tell.
TEST(MutationTest, AChangedThresholdOrBackOffIsFound) {
  const auto envoy = FindEnvoy("", {WAVETANK_BINARY_DIR, WAVETANK_SOURCE_DIR "/build"});
  NEEDS_TOOL(envoy.ok(), "a real Envoy", envoy.status().message());
  const auto text = [](int failures, const char* base) {
    return fmt::format(
        R"({{"cases": [{{"name": "m", "backends": {{"a": "127.77.0.11:9000"}}, "resources": {{
  "clusters": [{{"static": "c", "hosts": ["127.77.0.11:9000"], "common_lb_config": {{"healthy_panic_threshold": {{}}}},
    "outlier_detection": {{"consecutive_5xx": {}, "max_ejection_percent": 100, "base_ejection_time": "60s"}}}}],
  "listeners": [{{"http": "l", "at": "127.77.0.1:10000", "to": "c", "route": {{"retry_policy": {{"retry_on": "retriable-4xx",
    "num_retries": 2, "retry_back_off": {{"base_interval": "{}", "max_interval": "10s"}}}}}}}}]}},
  "steps": [{{"backend": {{"name": "a", "code": 409}}}}, {{"requests": {{"to": "127.77.0.1:10000", "count": 8}}}},
            {{"backend": {{"name": "a", "code": 500}}}}, {{"requests": {{"to": "127.77.0.1:10000", "count": 12}}}}]}}]}})",
        failures, base);
  };
  const auto outcome = [&](int failures, const char* base, bool real) -> absl::StatusOr<Outcome> {
    const std::string file = testing::TempDir() + "/mutation.json";
    std::ofstream(file) << text(failures, base);
    // Networks of other programs are below 127.192.
    const auto cases = LoadCases(file, "127.200.7.");
    if (!cases.ok()) return cases.status();
    return real ? RunReal((*cases)[0], *envoy, testing::TempDir() + "/mutation") : RunSimulated((*cases)[0], Chance{});
  };
  Case c;
  c.compare_ads = false;
  const auto same = outcome(5, "0.025s", false), threshold = outcome(6, "0.025s", false),
             back_off = outcome(5, "2s", false);
  ASSERT_TRUE(same.ok() && threshold.ok() && back_off.ok());
  auto real = outcome(5, "0.025s", true);
  // A real Envoy's main thread ejects; on a busy machine its worker sends a request more meanwhile.
  for (int i = 0; i < 4 && real.ok() && !Compare(c, *same, *real).empty(); ++i) real = outcome(5, "0.025s", true);
  ASSERT_TRUE(real.ok()) << real.status();
  EXPECT_THAT(Compare(c, *same, *real), IsEmpty());
  EXPECT_THAT(Compare(c, *threshold, *real), Not(IsEmpty()));
  EXPECT_THAT(Compare(c, *back_off, *real), Not(IsEmpty()));
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
