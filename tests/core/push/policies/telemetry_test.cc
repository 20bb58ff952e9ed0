#include "core/push/policies/telemetry.h"

#include "core/profile/profile.h"
#include "gmock/gmock.h"
#include "tests/core/push/mesh_fixture.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Side = TelemetrySide;

class TelemetryMergeTest : public MeshTest {
 protected:
  void Telemetry(std::string_view ns, std::string_view name, std::string_view spec, int second = 0) {
    Put("Telemetry", ns, name, spec, second);
  }
  WorkloadTelemetry Of(const PushContextRef& push, std::string_view ns, const Labels& labels = {}) {
    return push->telemetry().ForWorkload(ns, labels);
  }
  // "envoy", "envoy: x > 1", "-envoy" where it is disabled.
  static std::vector<std::string> Logs(const WorkloadTelemetry& of, Side side = Side::kClient) {
    std::vector<std::string> out;
    for (const auto& [name, spec] : of.Logging(side)) {
      out.push_back((spec.disabled ? "-" : "") + name + (spec.HasFilter() ? ": " + **spec.filter : ""));
    }
    return out;
  }
  // "prometheus[REQUEST_COUNT -REQUEST_SIZE(a=b -c)]".
  static std::vector<std::string> Metrics(const WorkloadTelemetry& of, Side side = Side::kClient) {
    std::vector<std::string> out;
    for (const auto& [name, spec] : of.Metrics(side)) {
      std::string text = (spec.disabled ? "-" : "") + name + "[";
      for (const auto& override : spec.overrides) {
        text += (text.ends_with('[') ? "" : " ") + std::string(override.disabled ? "-" : "") + override.metric;
        for (const auto& tag : override.tags) text += tag.remove ? " -" + tag.name : " " + tag.name + "=" + tag.value;
      }
      out.push_back(text + "]");
    }
    return out;
  }
};

TEST_F(TelemetryMergeTest, TheOldestOfEachLevelHoldsAndOnlyOneOfAWorkloads) {
  Telemetry("istio-system", "r2", "accessLogging: [{providers: [{name: late}]}]", 9);
  Telemetry("istio-system", "r1", "accessLogging: [{providers: [{name: root}]}]", 8);
  Telemetry("istio-system", "rw", "selector: {matchLabels: {app: x}}\naccessLogging: [{providers: [{name: rw}]}]", 1);
  Telemetry("a", "w2", "selector: {matchLabels: {app: x}}\naccessLogging: [{providers: [{name: w2}]}]", 5);
  Telemetry("a", "w1", "selector: {matchLabels: {app: x}}\naccessLogging: [{providers: [{name: w1}]}]", 4);
  const PushContextRef push = Push();
  EXPECT_THAT(Logs(Of(push, "a")), ElementsAre("root"));
  EXPECT_THAT(Logs(Of(push, "a", {{"app", "x"}})), ElementsAre("w1"));
  EXPECT_THAT(Logs(Of(push, "istio-system", {{"app", "x"}})), ElementsAre("rw"));
}

TEST_F(TelemetryMergeTest, ALevelThatNamesLogsReplacesThoseAboveIt) {
  Telemetry("istio-system", "r",
            "accessLogging: [{providers: [{name: envoy}, {name: otel}], filter: {expression: x}}]");
  Telemetry("a", "n", "accessLogging: [{disabled: true}]");
  Telemetry("b", "n", "accessLogging: [{match: {mode: SERVER}, providers: [{name: als}]}]");
  const PushContextRef push = Push();
  EXPECT_THAT(Logs(Of(push, "c")), ElementsAre("envoy: x", "otel: x"));
  EXPECT_THAT(Logs(Of(push, "a")), ElementsAre("-envoy", "-otel"));
  EXPECT_THAT(Logs(Of(push, "b"), Side::kServer), ElementsAre("als"));
  EXPECT_THAT(Logs(Of(push, "b"), Side::kClient), ElementsAre("envoy: x", "otel: x"));
}

TEST_F(TelemetryMergeTest, DefaultProvidersHoldWhereNobodySaysOtherwise) {
  Mesh("defaultProviders: {tracing: [none], metrics: [prometheus], accessLogging: [envoy]}");
  Telemetry("a", "n", "metrics: [{overrides: [{disabled: true}]}]\naccessLogging: [{providers: [{name: otel}]}]");
  const PushContextRef push = Push();
  EXPECT_THAT(Logs(Of(push, "c")), ElementsAre("envoy"));
  EXPECT_THAT(Metrics(Of(push, "c")), ElementsAre("prometheus[]"));
  EXPECT_THAT(Logs(Of(push, "a")), ElementsAre("otel"));
  EXPECT_THAT(Metrics(Of(push, "a")), ElementsAre("-prometheus[]"));
  EXPECT_TRUE(Of(push, "c").Tracing(Side::kClient)->disabled) << "a default that is not there";
}

TEST_F(TelemetryMergeTest, OverridesAddUpAndOneAfterAllWereDisabledBringsTheOthersBack) {
  Telemetry("istio-system", "r", R"(metrics:
- providers: [{name: prometheus}]
  overrides:
  - match: {metric: REQUEST_COUNT}
    tagOverrides: {a: {value: b}, c: {value: d}}
  - match: {metric: REQUEST_SIZE, mode: SERVER}
    disabled: true)");
  Telemetry("a", "n", R"(metrics:
- overrides:
  - match: {metric: REQUEST_COUNT, mode: CLIENT}
    tagOverrides: {c: {operation: REMOVE}}
- overrides: [{match: {mode: SERVER}, disabled: true}])");
  Telemetry("a", "w", R"(selector: {matchLabels: {app: x}}
metrics:
- overrides: [{match: {customMetric: mine}}])");
  const PushContextRef push = Push();
  EXPECT_THAT(Metrics(Of(push, "a")), ElementsAre("prometheus[REQUEST_COUNT a=b -c]"));
  EXPECT_THAT(Metrics(Of(push, "a"), Side::kServer), ElementsAre("-prometheus[]"));
  EXPECT_THAT(Metrics(Of(push, "a", {{"app", "x"}}), Side::kServer),
              ElementsAre("prometheus[REQUEST_COUNT a=b c=d -REQUEST_SIZE mine]"));
}

TEST_F(TelemetryMergeTest, WhatWasSaidOfProvidersThatALowerLevelDropsIsForgotten) {
  Telemetry("istio-system", "r", "metrics: [{providers: [{name: one}, {name: two}], reportingInterval: 5s}]");
  Telemetry("a", "n", "metrics: [{providers: [{name: two}]}, {overrides: [{match: {metric: REQUEST_COUNT}}]}]");
  const PushContextRef push = Push();
  EXPECT_THAT(Metrics(Of(push, "a")), ElementsAre("two[REQUEST_COUNT]"));
  EXPECT_EQ(Of(push, "a").Metrics(Side::kClient).at("two").reporting_interval, Duration(5s));
}

TEST_F(TelemetryMergeTest, TracingTakesTheFirstProviderOfTheLastEntryAndEachFieldFromWhoSetItLast) {
  Mesh("extensionProviders: [{name: zipkin, zipkin: {}}, {name: otel, opentelemetry: {}}]");
  Telemetry(
      "istio-system", "r",
      "tracing: [{providers: [{name: Zipkin}, {name: otel}], randomSamplingPercentage: 10, customTags: {a: {}}}]");
  Telemetry("a", "n", "tracing: [{match: {mode: SERVER}, providers: [{name: otel}], disableSpanReporting: true}]");
  Telemetry("b", "n", "tracing: [{randomSamplingPercentage: 0, useRequestIdForTraceSampling: false, customTags: {}}]");
  Telemetry("c", "n", "tracing: [{providers: [{name: gone}]}]");
  const PushContextRef push = Push();
  const auto client = Of(push, "a").Tracing(Side::kClient), server = Of(push, "a").Tracing(Side::kServer);
  EXPECT_EQ(client->provider->name, "zipkin");
  EXPECT_EQ(client->random_sampling_percentage, 10);
  EXPECT_FALSE(client->disabled);
  EXPECT_EQ(server->provider->name, "otel");
  EXPECT_TRUE(server->disabled);
  const auto b = Of(push, "b").Tracing(Side::kClient);
  EXPECT_EQ(b->random_sampling_percentage, 0);
  EXPECT_EQ(b->custom_tags->size(), 1u);
  EXPECT_FALSE(b->use_request_id_for_trace_sampling);
  EXPECT_TRUE(Of(push, "c").Tracing(Side::kClient)->disabled) << "no such provider";
}

TEST_F(TelemetryMergeTest, NothingSaidIsToldFromNothingWanted) {
  Telemetry("a", "n", "metrics: [{}]");
  const PushContextRef push = Push();
  EXPECT_EQ(Of(push, "a").Tracing(Side::kClient), std::nullopt);
  EXPECT_THAT(Logs(Of(push, "a")), IsEmpty());
  EXPECT_THAT(Metrics(Of(push, "a")), IsEmpty());
}

TEST_F(TelemetryMergeTest, OnlyAChangeOfATelemetryMakesANewIndex) {
  const PushContextRef before = Push();
  before->telemetry().GeneratedFor(Of(before, "a"), 1).tcp_filters = "made";
  PushRequest request;
  request.configs_updated.insert({ConfigKind::kServiceEntry, "s", "a"});
  const PushContextRef same = PushContext::Create(env, before.get(), request, "2");
  EXPECT_EQ(&same->telemetry(), &before->telemetry());
  EXPECT_EQ(same->telemetry().GeneratedFor(Of(same, "b"), 1).tcp_filters, "made") << "by Telemetry, not by workload";
  Telemetry("b", "t", "");
  request.configs_updated = {{ConfigKind::kTelemetry, "t", "b"}};
  const PushContextRef after = PushContext::Create(env, before.get(), request, "3");
  EXPECT_EQ(after->telemetry().GeneratedFor(Of(after, "a"), 1).tcp_filters, std::nullopt);
}

// istiod: pilot/pkg/model/telemetry.go, applicableTelemetries(), as of 1.20
TEST_F(TelemetryMergeTest, OfSeveralThatSelectAWorkloadTheOldestHoldsOrAllDo) {
  Telemetry("a", "younger", "selector: {matchLabels: {app: web}}\naccessLogging: [{providers: [{name: otel}]}]", 2);
  Telemetry("a", "older", "selector: {matchLabels: {app: web}}\nmetrics: [{overrides: [{disabled: true}]}]", 1);
  Mesh("defaultProviders: {metrics: [prometheus], accessLogging: [envoy]}");
  EXPECT_THAT(Logs(Of(Push(), "a", {{"app", "web"}})), ElementsAre("envoy"));
  EXPECT_THAT(Metrics(Of(Push(), "a", {{"app", "web"}})), ElementsAre("-prometheus[]"));
  const Profile profile = ParseProfile("istio-1.18+telemetries-add-up").value();
  env.profile = &profile;
  EXPECT_THAT(Logs(Of(Push(), "a", {{"app", "web"}})), ElementsAre("otel"));
  EXPECT_THAT(Metrics(Of(Push(), "a", {{"app", "web"}})), ElementsAre("-prometheus[]"));
}

}  // namespace
}  // namespace wavetank::pilot
