// Metrics of a real mesh: read in each of Prometheus' forms, made claims, and judged by a simulated mesh.
#include <gmock/gmock.h>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "import/judge/metric_judge.h"
#include "import/metrics/metric_claims.h"
#include "import/metrics/samples.h"
#include "tests/import/imported.h"

namespace wavetank::importing {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<Sample> Samples(const std::string& text, Refusals* refusals = nullptr) {
  Refusals own;
  std::vector<Sample> out;
  ReadSamples(KindOfMetricsFile(text), text, "m", refusals == nullptr ? own : *refusals,
              [&](Sample&& sample) { out.push_back(std::move(sample)); });
  return out;
}

TEST(Samples, EveryFormSaysTheSame) {
  for (const char* text : {
           "# TYPE pilot_xds gauge\npilot_xds{version=\"1.18.2\"} 42 1700000000500\n",
           "# TYPE pilot_xds gauge\npilot_xds{version=\"1.18.2\"} 42 1700000000.5\n# EOF\n",
           R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"pilot_xds",
             "version":"1.18.2"},"values":[[1700000000.5,"42"]]}]}})",
           R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"pilot_xds",
             "version":"1.18.2"},"value":[1700000000.5,"42"]}]}})",
       }) {
    const std::vector<Sample> samples = Samples(text);
    ASSERT_EQ(samples.size(), 1u) << text;
    EXPECT_EQ(samples[0].metric, "pilot_xds");
    EXPECT_THAT(samples[0].labels, ElementsAre(Pair("version", "1.18.2")));
    EXPECT_EQ(samples[0].value, 42);
    EXPECT_EQ(FormatWall(samples[0].at), "2023-11-14T22:13:20.500000Z");
  }
}

TEST(Samples, AQuotedLabelMayHoldWhatWouldEndIt) {
  const std::vector<Sample> samples = Samples("# TYPE a gauge\na{b=\"x\\\"}, c=\\\\\\n\",} 1\n");
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_THAT(samples[0].labels, ElementsAre(Pair("b", "x\"}, c=\\\n")));
}

TEST(Samples, WhatIsNoneIsCounted) {
  Refusals refusals;
  const std::vector<Sample> samples =
      Samples("# TYPE a gauge\na{b=\"c 1\na NaN\na +Inf\na one\n{} 1\na 1 99999999999999999999\na 7\n", &refusals);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].value, 7);
  uint64_t refused = 0;
  for (const auto& [reason, of] : refusals.reasons()) refused += of.count;
  EXPECT_EQ(refused, 6u);
}

TEST(Samples, AnAnswerThatIsCutIsNoneThatPrometheusRefused) {
  Refusals cut, refused;
  Samples(R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__na)", &cut);
  EXPECT_TRUE(cut.reasons().contains("answer of Prometheus that is no whole JSON"));
  Samples(R"({"status":"error","errorType":"bad_data","error":"parse error"})", &refused);
  EXPECT_TRUE(refused.reasons().contains("query that Prometheus did not answer"));
}

TEST(Samples, AnAnswerOfAnyShapeEndsNothing) {
  for (const char* text : {R"({"data":{"resultType":"matrix"}})", R"({"status":"success","data":{"resultType":7}})",
                           R"({"status":"success","data":{"resultType":"matrix","result":[7,{"metric":3},
                              {"metric":{"__name__":"a"},"values":[1,[1],["x","y"],[1e300,"1"]]}]}})"}) {
    Refusals refusals;
    EXPECT_THAT(Samples(text, &refusals), testing::IsEmpty()) << text;
  }
}

using MetricClaimsTest = ImportTest;

nlohmann::json Extra(const Claim& claim) { return ParseJson(claim.extra); }

TEST_F(MetricClaimsTest, ACounterCountsFromItsFirstSampleOverReplicasAndRestarts) {
  const std::string file = Put("pilot.json", R"({"status":"success","data":{"resultType":"matrix","result":[
    {"metric":{"__name__":"pilot_xds_pushes","type":"eds","pod":"istiod-a"},"values":[[100,"10"],[115,"14"],[130,"3"]]},
    {"metric":{"__name__":"pilot_xds_pushes","type":"eds","pod":"istiod-b"},"values":[[100,"50"],[115,"50"],[130,"51"]]}
    ]}})");
  const Imported imported = Read({file});
  std::vector<int64_t> values;
  for (const Claim& claim : imported.evidence.claims) {
    EXPECT_EQ(claim.kind, ClaimKind::kMetric);
    values.push_back(Number(Extra(claim), "value"));
  }
  EXPECT_THAT(values, ElementsAre(0, 4, 8));
}

TEST_F(MetricClaimsTest, RequestsAreWhatAClientCountedBetweenTwoScrapes) {
  const std::string labels =
      R"("__name__":"istio_requests_total","source_workload":"sleep","source_workload_namespace":"sample",
      "destination_service":"helloworld.sample.svc.cluster.local","pod":"sleep-1")";
  const std::string file = Put("requests.json", R"({"status":"success","data":{"resultType":"matrix","result":[
    {"metric":{"reporter":"source","response_code":"200","response_flags":"-",)" +
                                                    labels + R"(},"values":[[100,"10"],[115,"40"]]},
    {"metric":{"reporter":"source","response_code":"503","response_flags":"UH",)" +
                                                    labels + R"(},"values":[[115,"6"]]},
    {"metric":{"reporter":"destination","response_code":"200",)" +
                                                    labels + R"(},"values":[[100,"10"],[115,"40"]]}]}})");
  const Imported imported = Read({file});
  ASSERT_EQ(imported.evidence.claims.size(), 1u);
  const Claim& claim = imported.evidence.claims[0];
  EXPECT_EQ(claim.kind, ClaimKind::kRequests);
  EXPECT_EQ(claim.name, "sleep.sample");
  EXPECT_EQ(Extra(claim)["codes"], (nlohmann::json{{"200", 30}, {"503", 6}}));
  EXPECT_EQ(Number(Extra(claim), "spanNs"), 15'000'000'000);
  EXPECT_THAT(imported.evidence.notes, Contains(HasSubstr("reporter=source")));
}

TEST_F(MetricClaimsTest, WhatNothingIsHeldAgainstIsNamed) {
  const std::string file = Put("all.txt", "# TYPE go_goroutines gauge\ngo_goroutines 12\npilot_xds 3\n");
  const Imported imported = Read({file});
  EXPECT_THAT(imported.evidence.notes, Contains(HasSubstr("go_goroutines")));
  ASSERT_EQ(imported.evidence.claims.size(), 1u);
  EXPECT_EQ(imported.evidence.claims[0].at, kNoTime);
}

replay::LogInput MetricClaim(Time at, int64_t value, int64_t before, int64_t after, bool begins = false) {
  nlohmann::json claim = {{"kind", "metric"}, {"name", "pilot_xds_pushes"}, {"type", "c1"},  {"counter", true},
                          {"value", value},   {"before", before},           {"after", after}};
  if (begins) claim["begins"] = true;
  return {at, 0, "claim", {{"claim", claim}}};
}

TEST(MetricJudge, ASimulatedCounterLiesBetweenTheScrapesAroundIt) {
  double now = 1000;
  MetricJudge judge;
  judge.AskWorld([&](const std::string&, const std::string&, const MetricLabels&) { return std::optional(now); });
  EXPECT_FALSE(judge.OnMetric(MetricClaim(Time{} + 1s, 0, 0, 4, true)));
  now = 1007;
  EXPECT_EQ(judge.OnMetric(MetricClaim(Time{} + 2s, 4, 0, 8))->verdict, Verdict::kAgrees);
  now = 1009;
  EXPECT_EQ(judge.OnMetric(MetricClaim(Time{} + 3s, 8, 4, 8))->verdict, Verdict::kDisagrees);
}

TEST(MetricJudge, APartOfAMeshMayCountLessThanTheWholeAndNeverMore) {
  double here = 3;
  MetricJudge judge;
  judge.AskWorld([&](const std::string&, const std::string&, const MetricLabels&) { return std::optional(here); });
  replay::LogInput claim = MetricClaim(Time{} + 2s, 42, 42, 42);
  claim.body["claim"].erase("counter");
  claim.body["claim"]["partial"] = true;
  const auto fewer = judge.OnMetric(claim);
  EXPECT_EQ(fewer->verdict, Verdict::kCannotBeJudged);
  EXPECT_THAT(fewer->why, HasSubstr("at least 42 were counted"));
  here = 43;
  EXPECT_EQ(judge.OnMetric(claim)->verdict, Verdict::kDisagrees);
}

TEST(MetricJudge, WhatTheSimulatedMeshDoesNotHaveCannotBeJudged) {
  MetricJudge judge;
  judge.AskWorld([](const std::string&, const std::string&, const MetricLabels&) { return std::optional<double>(); });
  EXPECT_EQ(judge.OnMetric(MetricClaim(Time{} + 2s, 4, 0, 8))->verdict, Verdict::kCannotBeJudged);
}

TEST(MetricJudge, RequestsOfAWorkloadsPodsAreComparedByWhatCameOfThem) {
  const replay::LogInput claim{Time{} + 10s,
                               5,
                               "claim",
                               {{"claim",
                                 {{"kind", "requests"},
                                  {"name", "sleep.sample"},
                                  {"service", "helloworld.sample.svc.cluster.local"},
                                  {"requests", 100},
                                  {"codes", {{"200", 50}, {"503", 50}}},
                                  {"flags", {{"-", 50}, {"UH", 50}}},
                                  {"spanNs", 10'000'000'000}}}}};
  MetricJudge judge;
  judge.OnRequestsClaim(claim);
  EXPECT_EQ(judge.JudgeRequests(claim).verdict, Verdict::kCannotBeJudged);
  for (int i = 0; i < 100; ++i) {
    replay::LoggedEvent event;
    event.time = Time{} + 11s;
    event.kind = TraceKind::kRequest;
    event.subject = "sleep-6qsm27d5x9-6hjrb.sample@cluster1";
    event.object = "helloworld.sample:5000";
    event.a = i % 2 == 0 ? 200 : 503;
    event.detail = i % 2 == 0 ? "-|" : "UH|";
    judge.OnRequest(event);
    event.object = "hello.sample:5000";  // another service
    event.a = 404;
    judge.OnRequest(event);
  }
  const JudgedClaim judged = judge.JudgeRequests(claim);
  EXPECT_EQ(judged.verdict, Verdict::kAgrees) << judged.why;
}

}  // namespace
}  // namespace wavetank::importing
