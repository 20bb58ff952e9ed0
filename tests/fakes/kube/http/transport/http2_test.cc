// HTTP/2 within TLS: one connection for all that a client asks and watches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/await.h"
#include "tests/fakes/kube/http/http2_peer.h"
#include "tests/fakes/kube/http/served_cluster.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";

class Http2Test : public ::testing::Test {
 protected:
  void Serve(ServedCluster::Options options = {}) {
    options.tls = true;
    served_ = std::make_unique<ServedCluster>(std::move(options));
    ASSERT_TRUE(served_->port().ok()) << served_->port().status();
  }
  void Put(const std::string& name, const std::string& value) {
    const absl::StatusOr<ObjectRef> done = served_->Call([&](Cluster& cluster) {
      return cluster.api().Apply({{"apiVersion", "v1"},
                                  {"kind", "ConfigMap"},
                                  {"metadata", {{"name", name}, {"namespace", "default"}}},
                                  {"data", {{"value", value}}}});
    });
    ASSERT_TRUE(done.ok()) << done.status();
  }
  uint16_t port() { return *served_->port(); }

  std::unique_ptr<ServedCluster> served_;
};

TEST_F(Http2Test, IsChosenBeforeHttp1AndOnlyWhereItIsOffered) {
  Serve();
  EXPECT_EQ(Http2Peer(port(), "\x08http/1.1\x02h2").chosen(), "h2");
  EXPECT_EQ(Http2Peer(port(), "\x08http/1.1").chosen(), "http/1.1");
  EXPECT_EQ(Http2Peer(port(), "\x06spdy/3").chosen(), "") << "which goes on with HTTP/1.1";
}

TEST_F(Http2Test, ClientsAreToldWhoseCertificatesCount) {
  Serve();
  EXPECT_THAT(Http2Peer(port()).authorities(), IsEmpty()) << "nobody is asked for one";
  Serve({.client_certificates = true});
  EXPECT_THAT(Http2Peer(port()).authorities(), ElementsAre("/CN=kube-apiserver"));
}

TEST_F(Http2Test, WatchesAndRequestsShareOneConnection) {
  Serve();
  Http2Peer peer(port());
  std::vector<int32_t> watches;
  for (int i = 0; i < 100; ++i)
    watches.push_back(peer.Ask("GET", std::string(kMaps) + "?watch=true&resourceVersion=0"));
  for (const int32_t watch : watches) ASSERT_TRUE(peer.Until([&] { return peer.Of(watch).status() == 200; }));
  const Http2Peer::Got made =
      peer.Answer(peer.Ask("POST", kMaps, R"({"metadata":{"name":"a"}})", {{"content-type", "application/json"}}));
  EXPECT_EQ(made.status(), 201);
  EXPECT_EQ(made.headers.at("content-type"), "application/json");
  for (const int32_t watch : watches) {
    ASSERT_TRUE(peer.Until([&] { return peer.Of(watch).body.find("\"ADDED\"") != std::string::npos; }));
    EXPECT_FALSE(peer.Of(watch).ended);
  }
  EXPECT_EQ(served_->server().connections(), 1u);
}

TEST_F(Http2Test, LongListsAreProducedWhileTheyAreTaken) {
  Serve();
  const std::string much(10'000, 'x');
  for (int i = 0; i < 300; ++i) Put("map" + std::to_string(i), much);
  Http2Peer peer(port());
  const Http2Peer::Got list = peer.Answer(peer.Ask("GET", kMaps));
  EXPECT_EQ(list.status(), 200);
  const json read = json::parse(list.body, nullptr, false);
  ASSERT_TRUE(read.is_object());
  EXPECT_GE(read["items"].size(), 300u);
  EXPECT_EQ(peer.Answer(peer.Ask("HEAD", kMaps)).body, "");
}

TEST_F(Http2Test, AWatchEndsWithItsTimeItsStreamAndItsConnection) {
  Serve();
  auto peer = std::make_unique<Http2Peer>(port());
  EXPECT_EQ(peer->Answer(peer->Ask("GET", std::string(kMaps) + "?watch=true&timeoutSeconds=1")).error,
            NGHTTP2_NO_ERROR);
  const int32_t given_up = peer->Ask("GET", std::string(kMaps) + "?watch=true");
  const int32_t kept = peer->Ask("GET", std::string(kMaps) + "?watch=true");
  for (const int32_t watch : {given_up, kept})
    ASSERT_TRUE(peer->Until([&] { return peer->Of(watch).status() == 200; }));
  peer->Reset(given_up);
  Put("a", "1");
  EXPECT_TRUE(peer->Until([&] { return peer->Of(kept).body.find("\"ADDED\"") != std::string::npos; }));
  EXPECT_EQ(peer->Of(given_up).body, "");
  peer = nullptr;
  EXPECT_TRUE(Await([&] { return served_->server().connections() == 0; }));
  Put("a", "2");  // nobody is there to be told
}

TEST_F(Http2Test, AWatchThatIsNotReadIsResetAndItsNeighboursNoticeNothing) {
  ServedCluster::Options options;
  options.server.max_unsent_watch_bytes = 100'000;
  Serve(std::move(options));
  // Its streams take no byte unasked, and it asks for some on its own terms only.
  constexpr uint32_t kWindow = 16 * 1024;
  Http2Peer slow(port(), "\x02h2", kWindow), other(port());
  const std::string path = std::string(kMaps) + "?watch=true&resourceVersion=0";
  const int32_t watched = other.Ask("GET", path);
  ASSERT_TRUE(other.Until([&] { return other.Of(watched).status() == 200; }));
  const int32_t unread = slow.Ask("GET", path);
  ASSERT_TRUE(slow.Until([&] { return slow.Of(unread).status() == 200; }));
  for (int i = 0; i < 60; ++i) {
    Put("a", std::to_string(i) + std::string(10'000, 'x'));
    ASSERT_TRUE(other.Until([&] { return other.Of(watched).body.size() > 10'000u * static_cast<size_t>(i + 1); })) << i;
  }
  EXPECT_EQ(slow.Answer(unread).error, NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_EQ(slow.Answer(slow.Ask("GET", "/version")).status(), 200) << "the connection lives on";
}

TEST_F(Http2Test, BodiesAndHeadersHaveLimits) {
  ServedCluster::Options options;
  options.server.max_body_bytes = 100'000;
  options.server.max_header_bytes = 8 * 1024;
  Serve(std::move(options));
  Http2Peer peer(port());
  EXPECT_EQ(peer.Answer(peer.Ask("POST", kMaps, std::string(200'000, 'x'))).status(), 413);
  EXPECT_EQ(peer.Answer(peer.Ask("GET", kMaps, "", {{"x-much", std::string(10'000, 'x')}})).status(), 431);
  EXPECT_EQ(peer.Answer(peer.Ask("GET", "/version")).status(), 200) << "the connection lives on";
}

TEST_F(Http2Test, ARequestHasOneDeadlineHoweverSlowlyItComes) {
  ServedCluster::Options options;
  options.server.request_timeout = 200ms;
  Serve(std::move(options));
  Http2Peer peer(port());
  const int32_t never = peer.Ask("POST", kMaps, "{", {}, false);
  EXPECT_EQ(peer.Answer(never).error, NGHTTP2_CANCEL);
  EXPECT_EQ(peer.Answer(peer.Ask("GET", "/version")).status(), 200);
}

TEST_F(Http2Test, WhoIsIdleIsToldGoodbye) {
  ServedCluster::Options options;
  options.server.idle_timeout = 200ms;
  Serve(std::move(options));
  Http2Peer peer(port());
  EXPECT_EQ(peer.Answer(peer.Ask("GET", "/version")).status(), 200);
  EXPECT_TRUE(peer.Until([&] { return peer.closed(); }));
}

TEST_F(Http2Test, WhatIsNoHttp2AndWhatOnlyCostsAreHungUpOn) {
  Serve();
  Http2Peer wrong(port());
  wrong.SendBytes("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(wrong.Until([&] { return wrong.closed(); }));
  // Rapid reset: streams that are opened and given up at once.
  Http2Peer flood(port());
  for (int i = 0; i < 100'000 && !flood.closed(); ++i) {
    flood.Reset(flood.Ask("GET", "/version"));
    if (i % 100 == 0) flood.Until([&] { return flood.closed(); }, 1);
  }
  EXPECT_TRUE(flood.closed());
  Http2Peer peer(port());
  EXPECT_EQ(peer.Answer(peer.Ask("GET", "/version")).status(), 200);
}

TEST_F(Http2Test, AnUnreachableServerHangsUpAndASlowOneAnswersLate) {
  Serve();
  served_->Call([](Cluster& cluster) { return cluster.api().faults().unreachable = true; });
  Http2Peer refused(port());
  refused.Ask("GET", "/api/v1/pods");
  EXPECT_TRUE(refused.Until([&] { return refused.closed(); }));
  served_->Call([](Cluster& cluster) {
    cluster.api().faults() = {};
    cluster.api().faults().extra_latency = 300ms;
    return 0;
  });
  const auto start = std::chrono::steady_clock::now();
  Http2Peer late(port());
  EXPECT_EQ(late.Answer(late.Ask("GET", "/api/v1/pods")).status(), 200);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(300));
}

TEST_F(Http2Test, StopsWithWatchesOpen) {
  Serve();
  Http2Peer peer(port());
  for (int i = 0; i < 10; ++i) peer.Ask("GET", std::string(kMaps) + "?watch=true");
  served_ = nullptr;
  EXPECT_TRUE(peer.Until([&] { return peer.closed(); }));
}

}  // namespace
}  // namespace wavetank::fakekube::http
