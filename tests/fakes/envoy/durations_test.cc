#include "fakes/envoy/match/durations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "fakes/envoy/extensions/extensions.h"
#include "fakes/envoy/match/proto_time.h"

namespace wavetank::envoysim {
namespace {

using envoy::config::cluster::v3::Cluster;
using ::testing::HasSubstr;

google::protobuf::Duration Of(int64_t seconds, int32_t nanos = 0) {
  google::protobuf::Duration out;
  out.set_seconds(seconds);
  out.set_nanos(nanos);
  return out;
}

TEST(Durations, CountWholeMilliseconds) {
  EXPECT_EQ(ToDuration(Of(0, 999'999)), Duration::zero());
  EXPECT_EQ(ToDuration(Of(1, 1'999'999)), 1001ms);
}

TEST(Durations, ThatComeAgainAndAgainTakeAMillisecondAtLeast) {
  EXPECT_EQ(ToPeriod(Of(0, 1)), Duration(1ms));
  EXPECT_EQ(ToPeriod(Of(2)), Duration(2s));
}

TEST(Durations, EndWithTheClocksRange) {
  EXPECT_EQ(ToDuration(Of(INT64_MAX)), ToDuration(Of(kMaxDurationSeconds)));
  EXPECT_LT(ToDuration(Of(INT64_MIN)), Duration::zero());
}

TEST(Durations, AreCheckedAtAnyDepthOfAMessage) {
  Cluster cluster;
  *cluster.mutable_connect_timeout() = Of(1);
  *cluster.add_health_checks()->mutable_interval() = Of(1);
  EXPECT_TRUE(CheckDurations(cluster).ok());
  *cluster.add_health_checks()->mutable_interval() = Of(0, -1);
  EXPECT_THAT(std::string(CheckDurations(cluster).message()), HasSubstr("Expected positive duration"));
}

TEST(Durations, OfMoreThan292YearsAreRefused) {
  Cluster cluster;
  *cluster.mutable_connect_timeout() = Of(kMaxDurationSeconds);
  EXPECT_TRUE(CheckDurations(cluster).ok());
  *cluster.mutable_connect_timeout() = Of(kMaxDurationSeconds + 1);
  EXPECT_THAT(std::string(CheckDurations(cluster).message()), HasSubstr("Duration out-of-range"));
}

TEST(Durations, InAnAnyAreCheckedWhenItIsUnpacked) {
  envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy proxy;
  *proxy.mutable_idle_timeout() = Of(-1);
  Cluster cluster;
  (*cluster.mutable_typed_extension_protocol_options())["x"].PackFrom(proxy);
  EXPECT_TRUE(CheckDurations(cluster).ok());
  EXPECT_THAT(std::string(UnpackConfig(cluster.typed_extension_protocol_options().at("x"), &proxy).message()),
              HasSubstr("Invalid duration: Expected positive duration"));
}

}  // namespace
}  // namespace wavetank::envoysim
