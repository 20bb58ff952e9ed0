#include "fakes/envoy/access_log/istio_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "fakes/envoy/access_log/access_log_format.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/tcp/http.h"
#include "istio/stats.pb.h"

namespace wavetank::envoysim {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Metric = IstioStats::Metric;

std::shared_ptr<const IstioStats> Made(const stats::PluginConfig& config) {
  google::protobuf::Any any;
  any.PackFrom(config);
  const auto made = IstioStats::Make(any, Extensions(ExtensionSet::kIstioProxy));
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *made : nullptr;
}

// Labels as "name=value,...".
std::string NameOf(const IstioStats& stats, Metric metric, const MeasuredRequest& request,
                   const AccessLogEntry* entry = nullptr) {
  return absl::StrReplaceAll(stats.NameOf(metric, request, entry),
                             {{std::string(1, kTagBegins), ","}, {std::string(1, kTagValue), "="}});
}

const PeerInfo kOwn{"web", "shop", "web", "v1", "web", "v1", "east"};
const PeerInfo kPeer{"db", "data", "db", "v2", "db", "v2", "west"};

TEST(IstioStatsTest, ConnectionsHaveNoCodesAndMessagesNoProtocol) {
  const auto stats = Made({});
  MeasuredRequest r;
  r.own = &kOwn;
  r.peer = &kPeer;
  r.tcp = true;
  r.flags = kUpstreamConnectionFailure;
  const std::string opened = NameOf(*stats, Metric::kOpened, r);
  EXPECT_THAT(opened,
              StartsWith("istiocustom.istio_tcp_connections_opened_total,reporter=source,source_workload=web,"));
  EXPECT_THAT(opened, EndsWith(",destination_cluster=west,request_protocol=tcp,response_flags=UF,"
                               "connection_security_policy=unknown"));
  EXPECT_THAT(opened, Not(HasSubstr("response_code")));
  EXPECT_THAT(NameOf(*stats, Metric::kClosed, r), StartsWith("istiocustom.istio_tcp_connections_closed_total,"));
  r.tcp = false;
  r.grpc = true;
  EXPECT_THAT(NameOf(*stats, Metric::kRequestMessages, r), EndsWith(",destination_cluster=west"));
  EXPECT_THAT(NameOf(*stats, Metric::kResponseMessages, r),
              StartsWith("istiocustom.istio_response_messages_total,reporter=source,"));
  EXPECT_THAT(NameOf(*stats, Metric::kResponseBytes, r),
              EndsWith(",request_protocol=grpc,response_code=0,grpc_response_status=0,response_flags=UF,"
                       "connection_security_policy=unknown"));
}

TEST(IstioStatsTest, OverridesAreOfOneMetricOrOfAll) {
  stats::PluginConfig config;
  stats::MetricConfig& dropped = *config.add_metrics();
  dropped.set_name("tcp_connections_closed_total");
  dropped.set_drop(true);
  stats::MetricConfig& sizes = *config.add_metrics();
  sizes.set_name("request_bytes");
  sizes.add_tags_to_remove("destination_cluster");
  (*config.add_metrics()->mutable_dimensions())["host"] = "request.host";
  const auto stats = Made(config);
  MeasuredRequest r;
  r.own = &kOwn;
  RequestSpec spec;
  spec.authority = "db.data";
  AccessLogEntry entry;
  entry.request = &spec;
  EXPECT_EQ(NameOf(*stats, Metric::kClosed, r, &entry), "");
  EXPECT_THAT(NameOf(*stats, Metric::kOpened, r, &entry), EndsWith(",host=db.data"));
  EXPECT_THAT(NameOf(*stats, Metric::kRequestBytes, r, &entry), Not(HasSubstr("destination_cluster")));
  EXPECT_THAT(NameOf(*stats, Metric::kResponseBytes, r, &entry), HasSubstr("destination_cluster=unknown"));
}

TEST(IstioStatsTest, ExpressionsOfMessagesSeeNoHead) {
  stats::PluginConfig config;
  (*config.add_metrics()->mutable_dimensions())["host"] = "request.host";
  const auto stats = Made(config);
  MeasuredRequest r;
  r.own = &kOwn;
  r.grpc = true;
  RequestSpec spec;
  spec.authority = "db.data";
  AccessLogEntry entry;
  entry.request = &spec;
  IstioCounters counters;
  const IstioCounters::Series& series = counters.Add(nullptr, *stats, r, &entry);
  EXPECT_THAT(series.requests_name, EndsWith("host" + std::string(1, kTagValue) + "db.data"));
  EXPECT_THAT(series.request_messages_name, EndsWith("host" + std::string(1, kTagValue) + "unknown"));
}

TEST(IstioStatsTest, SizesAreHistogramsOfTheirOwn) {
  const auto stats = Made({});
  MeasuredRequest r;
  r.own = &kOwn;
  IstioCounters counters;
  IstioCounters::Series& series = counters.Add(nullptr, *stats, r, nullptr);
  series.Record(3ms, 120, 3000);
  EXPECT_EQ(series.duration.sum, 3u);
  EXPECT_EQ(series.request_bytes.sum, 120u);
  EXPECT_EQ(series.response_bytes.sum, 3000u);
  EXPECT_EQ(series.response_bytes.count, 1u);
  EXPECT_EQ(series.response_bytes.buckets[11], 1u);  // above 2500, at most 5000
  EXPECT_EQ(series.request_messages_name, "");       // it is no call of gRPC
}

TEST(IstioStatsTest, TheIntervalOfReportsIsFiveSecondsUnlessItSaysOtherwise) {
  EXPECT_EQ(Made({})->reporting_interval(), 5s);
  stats::PluginConfig config;
  config.mutable_tcp_reporting_duration()->set_seconds(15);
  EXPECT_EQ(Made(config)->reporting_interval(), 15s);
}

}  // namespace
}  // namespace wavetank::envoysim
