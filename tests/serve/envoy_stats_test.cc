// A simulated Envoy's statistics, as its admin interface prints them.
#include "serve/admin/envoy_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavetank::serve {
namespace {

using Format = StatsQuery::Format;
using testing::HasSubstr;
using testing::Not;

const std::map<std::string, uint64_t> kStats = {
    {"cluster.outbound|5000||helloworld.sample.svc.cluster.local.circuit_breakers.default.rq_open", 0},
    {"cluster.outbound|5000||helloworld.sample.svc.cluster.local.upstream_rq_503", 2},
    {"cluster.outbound|5000||helloworld.sample.svc.cluster.local.upstream_rq_5xx", 2},
    {"cluster.xds-grpc.upstream_cx_active", 1},
    {"http.inbound_0.0.0.0_5000;.rbac.allowed", 7},
    {"listener.10.0.0.1_15006.downstream_cx_total", 9},
};

std::string Page(const StatsQuery& query) {
  const absl::StatusOr<std::string> page = StatsPage(kStats, query);
  return page.ok() ? *page : std::string(page.status().message());
}

TEST(EnvoyStats, AreLinesOfNameAndValue) {
  EXPECT_THAT(Page({}), HasSubstr("listener.10.0.0.1_15006.downstream_cx_total: 9\n"));
  EXPECT_THAT(Page({}), HasSubstr("rq_open: 0\n"));
}

TEST(EnvoyStats, UsedOnlyLeavesOutZeros) {
  EXPECT_THAT(Page({.used_only = true}), Not(HasSubstr("rq_open")));
  EXPECT_THAT(Page({.used_only = true}), HasSubstr("upstream_rq_503: 2"));
}

TEST(EnvoyStats, AFilterKeepsNamesInWhichItIsFound) {
  EXPECT_EQ(Page({.filter = "rq_5[x0]"}),
            "cluster.outbound|5000||helloworld.sample.svc.cluster.local.upstream_rq_503: 2\n"
            "cluster.outbound|5000||helloworld.sample.svc.cluster.local.upstream_rq_5xx: 2\n");
  EXPECT_EQ(Page({.filter = "("}), "filter '(': missing ): (");
}

TEST(EnvoyStats, JsonIsEnvoysOwnShape) {
  EXPECT_EQ(
      Page({.format = Format::kJson, .filter = "xds-grpc"}),
      "{\n \"stats\": [\n  {\n   \"name\": \"cluster.xds-grpc.upstream_cx_active\",\n   \"value\": 1\n  }\n ]\n}\n");
}

TEST(EnvoyStats, PrometheusHasTheLabelsOfIstiosBootstrap) {
  const std::string page = Page({.format = Format::kPrometheus});
  EXPECT_THAT(page, HasSubstr("envoy_cluster_upstream_rq{cluster_name=\"outbound|5000||helloworld.sample.svc.cluster."
                              "local\",response_code=\"503\"} 2\n"));
  EXPECT_THAT(page, HasSubstr(",response_code_class=\"5xx\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("envoy_listener_downstream_cx_total{listener_address=\"10.0.0.1_15006\"} 9\n"));
  EXPECT_THAT(page, HasSubstr("# TYPE envoy_cluster_upstream_cx_active gauge\n"));
  EXPECT_THAT(page, HasSubstr("# TYPE envoy_cluster_upstream_rq counter\n"));
  EXPECT_THAT(page, HasSubstr("authz_enforce_result=\"allowed\""));
}

TEST(EnvoyStats, IstiosOwnMetricsHaveTheirLabelsAndNoPrefix) {
  const std::string tags =
      "\x1freporter\x1esource\x1fgrpc_response_status\x1e\x1fresponse_code\x1e"
      "200";
  const std::string duration = "istiocustom.istio_request_duration_milliseconds" + tags;
  const std::map<std::string, uint64_t> stats = {{"istiocustom.istio_requests_total" + tags, 3},
                                                 {duration + "\x1dle1", 1},
                                                 {duration + "\x1dle+Inf", 3},
                                                 {duration + "\x1dsum", 14},
                                                 {duration + "\x1d"
                                                             "count",
                                                  3}};
  EXPECT_EQ(*StatsPage(stats, {}),
            "istiocustom.istio_requests_total.reporter.source.grpc_response_status.response_code.200: 3\n");
  const std::string page = *StatsPage(stats, {.format = Format::kPrometheus});
  const std::string labels = "reporter=\"source\",grpc_response_status=\"\",response_code=\"200\"";
  EXPECT_THAT(page, HasSubstr("# TYPE istio_requests_total counter\nistio_requests_total{" + labels + "} 3\n"));
  EXPECT_THAT(page, HasSubstr("# TYPE istio_request_duration_milliseconds histogram\n"));
  EXPECT_THAT(page, HasSubstr("istio_request_duration_milliseconds_bucket{" + labels + ",le=\"1\"} 1\n"));
  EXPECT_THAT(page, HasSubstr(",le=\"+Inf\"} 3\nistio_request_duration_milliseconds_sum{" + labels + "} 14\n"));
  EXPECT_THAT(page, HasSubstr("istio_request_duration_milliseconds_count{" + labels + "} 3\n"));
}

TEST(EnvoyStats, MetricsOfAConfigurationsOwnMayHaveNoLabelsAndBeGauges) {
  const std::map<std::string, uint64_t> stats = {{"istiocustom.istio_of_mine", 3},
                                                 {"istiocustom.istio_last\x1f"
                                                  "tenant\x1e"
                                                  "a\x1c",
                                                  7},
                                                 {"istiocustom.istio_sizes\x1dle1", 1}};
  EXPECT_EQ(*StatsPage(stats, {}), "istiocustom.istio_last.tenant.a: 7\nistiocustom.istio_of_mine: 3\n");
  const std::string page = *StatsPage(stats, {.format = Format::kPrometheus});
  EXPECT_THAT(page, HasSubstr("# TYPE istio_of_mine counter\nistio_of_mine{} 3\n"));
  EXPECT_THAT(page, HasSubstr("# TYPE istio_last gauge\nistio_last{tenant=\"a\"} 7\n"));
  EXPECT_THAT(page, HasSubstr("istio_sizes_bucket{le=\"1\"} 1\n"));
}

TEST(EnvoyStats, WhatIstioHasAddedNothingToIsInUse) {
  const std::map<std::string, uint64_t> stats = {{"istiocustom.istio_tcp_sent_bytes_total\x1freporter\x1esource", 0}};
  EXPECT_THAT(*StatsPage(stats, {.used_only = true}), HasSubstr("istio_tcp_sent_bytes_total.reporter.source: 0\n"));
}

}  // namespace
}  // namespace wavetank::serve
