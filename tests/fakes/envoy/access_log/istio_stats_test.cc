#include "fakes/envoy/access_log/istio_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "fakes/envoy/access_log/access_log_format.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/peer.h"
#include "istio/stats.pb.h"

namespace wavetank::envoysim {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
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

// Of one metric of the configuration's own, with what its tags and its value say.
stats::PluginConfig Defining(const std::string& name, const std::string& value, stats::MetricType type) {
  stats::PluginConfig config;
  stats::MetricDefinition& defined = *config.add_definitions();
  defined.set_name(name);
  defined.set_value(value);
  defined.set_type(type);
  return config;
}

TEST(IstioStatsTest, MetricsOfTheConfigurationsOwnCountWhatTheirExpressionsSay) {
  stats::PluginConfig config = Defining("bytes_of_tenants", "request.size", stats::COUNTER);
  (*config.add_metrics()->mutable_dimensions())["tenant"] = "request.host";
  const auto stats = Made(config);
  RequestSpec spec;
  spec.authority = "a.shop";
  AccessLogEntry entry;
  entry.request = &spec;
  entry.bytes_received = 7;
  IstioCounters counters;
  counters.CountDefined(*stats, entry);
  counters.CountDefined(*stats, entry);
  const std::string name = "istiocustom.istio_bytes_of_tenants" + std::string(1, kTagBegins) + "tenant" + kTagValue;
  EXPECT_THAT(counters.others(), ElementsAre(Pair(name + "a.shop", 14u)));
}

TEST(IstioStatsTest, AGaugeOfTheConfigurationsOwnHasItsLastValueAndAHistogramAllOfThem) {
  AccessLogEntry entry;
  IstioCounters counters;
  for (const uint64_t bytes : {700u, 7u}) {
    entry.bytes_received = bytes;
    counters.CountDefined(*Made(Defining("last", "request.size", stats::GAUGE)), entry);
    counters.CountDefined(*Made(Defining("sizes", "request.size", stats::HISTOGRAM)), entry);
  }
  EXPECT_THAT(counters.others(), ElementsAre(Pair("istiocustom.istio_last" + std::string(1, kIsGauge), 7u)));
  ASSERT_EQ(counters.defined().size(), 1u);
  EXPECT_EQ(counters.defined().begin()->second.sum, 707u);
}

TEST(IstioStatsTest, AValueThatIsNoWholeNumberCountsAsNothing) {
  AccessLogEntry entry;
  IstioCounters counters;
  counters.CountDefined(*Made(Defining("broken", "request.headers['x-none']", stats::COUNTER)), entry);
  EXPECT_THAT(counters.others(), ElementsAre(Pair("istiocustom.istio_broken", 0u)));
}

TEST(IstioStatsTest, IstiosOwnMetricsAreNotDefinedAnew) {
  EXPECT_TRUE(Made(Defining("requests_total", "1", stats::COUNTER))->defined().empty());
}

// One text is one expression, of the kind that came first.
TEST(IstioStatsTest, AMetricsValueIsEmptyAsATag) {
  stats::PluginConfig config = Defining("sizes", "request.size", stats::COUNTER);
  (*config.add_metrics()->mutable_dimensions())["size"] = "request.size";
  const auto stats = Made(config);
  MeasuredRequest r;
  r.own = &kOwn;
  AccessLogEntry entry;
  entry.bytes_received = 7;
  EXPECT_THAT(NameOf(*stats, Metric::kRequests, r, &entry), EndsWith(",size="));
}

TEST(IstioStatsTest, TagsMayConvertAndConcatenate) {
  stats::PluginConfig config;
  (*config.add_metrics()->mutable_dimensions())["at"] = "'port ' + string(destination.port)";
  const auto stats = Made(config);
  MeasuredRequest r;
  r.own = &kOwn;
  AccessLogEntry entry;
  entry.downstream_local = *SocketAddress::Parse("10.1.0.1:8080");
  EXPECT_THAT(NameOf(*stats, Metric::kRequests, r, &entry), EndsWith(",at=port 8080"));
}

TEST(IstioStatsTest, AFunctionThatNobodyHasRefusesTheConfiguration) {
  stats::PluginConfig config;
  (*config.add_metrics()->mutable_dimensions())["at"] = "request.host.lowerAscii()";
  google::protobuf::Any any;
  any.PackFrom(config);
  const auto made = IstioStats::Make(any, Extensions(ExtensionSet::kIstioProxy));
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(made.status().message()), StartsWith("failed to create an expression: "));
}

TEST(IstioStatsTest, TagsMayTellTheLabelsOfThePeer) {
  stats::PluginConfig config;
  (*config.add_metrics()->mutable_dimensions())["team"] = "downstream_peer.labels['team'].value";
  google::protobuf::Any any;
  any.PackFrom(config);
  EnvoyRelease istio_118;
  istio_118.minor = 26;
  const auto made = IstioStats::Make(any, Extensions(ExtensionSet::kIstioProxy, istio_118));
  ASSERT_TRUE(made.ok()) << made.status();
  const std::shared_ptr<const IstioStats> stats = *made;
  PeerInfo peer = kPeer;
  peer.labels = {{"app", "db"}, {"team", "blue"}};
  MeasuredRequest r;
  r.own = &kOwn;
  AccessLogEntry entry;
  EXPECT_THAT(NameOf(*stats, Metric::kRequests, r, &entry), EndsWith(",team=unknown"));
  entry.downstream_peer_info = &peer;
  EXPECT_THAT(NameOf(*stats, Metric::kRequests, r, &entry), EndsWith(",team=blue"));
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
