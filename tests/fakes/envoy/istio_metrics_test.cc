// Connections in Istio's metrics, as a proxy counts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "fakes/envoy/access_log/istio_stats.h"
#include "fakes/envoy/http/message_size.h"
#include "istio/stats.pb.h"
#include "tests/fakes/envoy/lab.h"

namespace wavetank::envoysim::lab {
namespace {

constexpr std::string_view kAt = "10.96.0.1:5432";

// A client's sidecar that measures what it sends to a database.
struct MeasuredLab {
  explicit MeasuredLab(bool asks_peers) : lab(1, Options()) {
    proxy = &lab.AddProxy("client", "10.1.0.1");
    lab.AddApp("db", "10.1.0.2", 5432);
    envoy::config::cluster::v3::Cluster cluster;
    EXPECT_TRUE(cluster.ParseFromString(StaticCluster("db", {{"10.1.0.2:5432", 1, "", false, ""}})));
    if (asks_peers) {
      auto* filter = cluster.add_filters();
      filter->set_name("istio.metadata_exchange");
      filter->mutable_typed_config()->set_type_url(
          "type.googleapis.com/envoy.tcp.metadataexchange.config.MetadataExchange");
    }
    envoy::config::listener::v3::Listener listener;
    EXPECT_TRUE(listener.ParseFromString(TcpListenerTo("db", kAt, "db")));
    auto* chain = listener.mutable_filter_chains(0);
    const auto proxied = chain->filters(0);
    chain->mutable_filters(0)->set_name("istio.stats");
    chain->mutable_filters(0)->mutable_typed_config()->PackFrom(stats::PluginConfig());
    *chain->add_filters() = proxied;
    auto& world = proxy->ads->world;
    world[XdsType::kCds]["db"] = cluster.SerializeAsString();
    world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    world[XdsType::kLds]["db"] = listener.SerializeAsString();
    proxy->ads->automatic = true;
    proxy->envoy->Start();
    lab.RunFor(2s);
  }
  static DataPlane::Options Options() {
    DataPlane::Options out = Instant();
    out.extensions = ExtensionSet::kIstioProxy;
    return out;
  }
  // The sums of all series of either metric.
  std::pair<uint64_t, uint64_t> OpenedAndClosed() const {
    std::pair<uint64_t, uint64_t> out;
    for (const auto& [name, value] : proxy->envoy->AllStats()) {
      if (name.starts_with("istiocustom.istio_tcp_connections_opened_total")) out.first += value;
      if (name.starts_with("istiocustom.istio_tcp_connections_closed_total")) out.second += value;
    }
    return out;
  }
  // The sums of bytes sent to the client, and received.
  std::pair<uint64_t, uint64_t> SentAndReceived() const {
    std::pair<uint64_t, uint64_t> out;
    for (const auto& [name, value] : proxy->envoy->AllStats()) {
      if (name.starts_with("istiocustom.istio_tcp_sent_bytes_total")) out.first += value;
      if (name.starts_with("istiocustom.istio_tcp_received_bytes_total")) out.second += value;
    }
    return out;
  }
  void Ask(AppClient::Session& session) {
    bool answered = false;
    session.Send(request, [&](const RequestRecord& record) { answered = record.code == 200; });
    lab.RunFor(100ms);
    EXPECT_TRUE(answered);
  }
  std::unique_ptr<AppClient::Session> Open() {
    auto session = proxy->client->OpenSession(*SocketAddress::Parse(std::string(kAt)), FirstFlight::Kind::kOpaque);
    lab.RunFor(1s);
    EXPECT_TRUE(session->open());
    return session;
  }
  Lab lab;
  Lab::Proxy* proxy = nullptr;
  RequestSpec request;
};

using Pair = std::pair<uint64_t, uint64_t>;

TEST(IstioMetricsTest, AConnectionCountsAsOpenedAtTheFirstReportAndAsClosedAtItsEnd) {
  MeasuredLab measured(/*asks_peers=*/true);
  auto session = measured.Open();
  EXPECT_EQ(measured.OpenedAndClosed(), Pair(0, 0));
  measured.lab.RunFor(5s);
  EXPECT_EQ(measured.OpenedAndClosed(), Pair(1, 0));
  measured.lab.RunFor(20s);
  EXPECT_EQ(measured.OpenedAndClosed(), Pair(1, 0));
  session.reset();
  measured.lab.RunFor(1s);
  EXPECT_EQ(measured.OpenedAndClosed(), Pair(1, 1));
}

TEST(IstioMetricsTest, BytesOfAConnectionAreToldAtItsReports) {
  MeasuredLab measured(/*asks_peers=*/true);
  auto session = measured.Open();
  measured.Ask(*session);
  EXPECT_EQ(measured.SentAndReceived(), Pair(0, 0));
  measured.lab.RunFor(5s);
  const Pair first = measured.SentAndReceived();
  EXPECT_GT(first.first, 0u);
  EXPECT_EQ(first.second, MessageSize(measured.request));
  measured.Ask(*session);
  EXPECT_EQ(measured.SentAndReceived(), first);
  measured.lab.RunFor(5s);
  EXPECT_EQ(measured.SentAndReceived(), Pair(2 * first.first, 2 * first.second));
}

TEST(IstioMetricsTest, WhatCameSinceTheLastReportIsToldAtItsEnd) {
  MeasuredLab measured(/*asks_peers=*/true);
  auto session = measured.Open();
  measured.lab.RunFor(5s);
  measured.Ask(*session);
  EXPECT_EQ(measured.SentAndReceived(), Pair(0, 0));
  session.reset();
  measured.lab.RunFor(1s);
  EXPECT_EQ(measured.SentAndReceived().second, MessageSize(measured.request));
}

TEST(IstioMetricsTest, BytesOfAConnectionThatNobodyKnowsAreToldAtItsEndAlone) {
  MeasuredLab measured(/*asks_peers=*/false);
  auto session = measured.Open();
  measured.Ask(*session);
  measured.lab.RunFor(20s);
  EXPECT_EQ(measured.SentAndReceived(), Pair(0, 0));
  session.reset();
  measured.lab.RunFor(1s);
  EXPECT_EQ(measured.SentAndReceived().second, MessageSize(measured.request));
}

TEST(IstioMetricsTest, WhereNobodyAsksForThePeerItCountsAtItsEndAlone) {
  MeasuredLab measured(/*asks_peers=*/false);
  auto session = measured.Open();
  measured.lab.RunFor(20s);
  EXPECT_EQ(measured.OpenedAndClosed(), Pair(0, 0));
  session.reset();
  measured.lab.RunFor(1s);
  EXPECT_EQ(measured.OpenedAndClosed(), Pair(1, 1));
}

TEST(IstioMetricsTest, AConnectionThatFailsCountsWithItsFlags) {
  MeasuredLab measured(/*asks_peers=*/true);
  measured.lab.RemoveApp("10.1.0.2", 5432);
  auto session =
      measured.proxy->client->OpenSession(*SocketAddress::Parse(std::string(kAt)), FirstFlight::Kind::kOpaque);
  measured.lab.RunFor(2s);
  EXPECT_EQ(measured.OpenedAndClosed(), Pair(1, 1));
  bool told = false;
  for (const auto& [name, value] : measured.proxy->envoy->AllStats()) {
    told |= name.starts_with("istiocustom.istio_tcp_connections_closed_total") &&
            name.find(std::string("response_flags") + kTagValue + "UF") != name.npos;
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace wavetank::envoysim::lab
