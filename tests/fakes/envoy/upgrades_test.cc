// Connections that are upgraded (WebSocket), through two proxies in a row. What a real Envoy 1.40 does with each answer
// and each limit is in tests/oracles/envoy/cases/upgrades.json.
#include <gtest/gtest.h>

#include <utility>

#include "fakes/envoy/http/arrival.h"
#include "fmt/format.h"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

constexpr std::string_view kSender = "10.9.0.1:80", kReceiver = "10.8.0.1:80";

// Answers 101 to who asks for an upgrade.
class SocketApp final : public Application {
 public:
  explicit SocketApp(Host& host) : name_(host.Intern("app")) {}
  AppReply Serve(const InboundCall& call) override {
    const bool asked = !UpgradeOf(call.spec).empty();
    (asked ? handshakes : messages) += 1;
    AppReply out;
    out.code = asked && upgrades ? 101 : code;
    out.server = name_;
    return out;
  }
  bool upgrades = true;
  uint16_t code = 200;
  int handshakes = 0, messages = 0;

 private:
  NameId name_;
};

std::string Listener(std::string_view name, std::string_view address, std::string_view cluster, bool bound,
                     bool allow_connect = false) {
  const size_t colon = address.rfind(':');
  return Bytes("Listener", fmt::format(R"({{"name": "{}",
    "address": {{"socket_address": {{"address": "{}", "port_value": {}}}}}, "deprecated_v1": {{"bind_to_port": {}}},
    "filter_chains": [{{"filters": [{{"name": "envoy.filters.network.http_connection_manager", "typed_config": {{
      "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
      "stat_prefix": "{}", "http2_protocol_options": {{"allow_connect": {}}}, "upgrade_configs": [{{"upgrade_type": "websocket"}}], "stream_idle_timeout": "0s",
      "route_config": {{"name": "r", "virtual_hosts": [{{"name": "all", "domains": ["*"], "routes": [
        {{"match": {{"prefix": "/"}}, "route": {{"cluster": "{}", "timeout": "5s"}}}}]}}]}},
      "http_filters": [{{"name": "envoy.filters.http.router", "typed_config": {{
        "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}}}]}}}}]}}]}})",
                                       name, address.substr(0, colon), address.substr(colon + 1), bound, name,
                                       allow_connect, cluster));
}

// What the proxies speak to each other.
enum class Between { kHttp1, kHttp2, kHttp2WithoutConnect };

// A client's sidecar, another proxy, and an application behind it.
class Sockets {
 public:
  explicit Sockets(DataPlane::Options options = Instant(), Between between = Between::kHttp1)
      : lab(1, options),
        near(lab.AddProxy("near", "10.9.0.9")),
        far(lab.AddProxy("far", "10.8.0.1", /*sidecar=*/false)),
        app(lab.host) {
    lab.AddApp("other", "10.1.0.1", 81);  // makes its pod
    Serve(true);
    near.ads->world[XdsType::kCds]["c"] = StaticCluster(
        "c", {{std::string(kReceiver)}}, between == Between::kHttp1 ? "" : R"("http2_protocol_options": {})");
    near.ads->world[XdsType::kLds]["l"] = Listener("l", kSender, "c", false);
    near.ads->world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    near.ads->world[XdsType::kCds]["PassthroughCluster"] = OriginalDstCluster("PassthroughCluster");
    far.ads->world[XdsType::kCds]["d"] = StaticCluster("d", {{"10.1.0.1:80"}});
    far.ads->world[XdsType::kLds]["far"] = Listener("far", kReceiver, "d", true, between == Between::kHttp2);
    for (Lab::Proxy* p : {&near, &far}) {
      p->ads->automatic = true;
      p->envoy->Start();
    }
    lab.RunFor(50ms);
    message.authority = "x";
    handshake = message;
    handshake.TakeNewId();
    handshake.headers = {{"connection", "Upgrade"}, {"upgrade", "websocket"}};
    session = near.client->OpenSession(*SocketAddress::Parse(kSender), FirstFlight::Kind::kHttp1);
  }

  void Serve(bool up) {
    server = up ? std::make_unique<AppServer>(lab.plane.fabric(), lab.host, app) : nullptr;
    lab.network.pod("10.1.0.1").apps[80] = server.get();
  }
  // The code of the answer; 0: none came.
  int Send(const RequestSpec& spec) {
    int code = -1;
    session->Send(spec, [&](const RequestRecord& record) { code = record.code; });
    lab.RunFor(2s);
    return code;
  }
  uint64_t Near(std::string_view name) { return near.envoy->counter("http.l." + std::string(name)); }
  uint64_t Far(std::string_view name) { return far.envoy->counter("http.far." + std::string(name)); }

  Lab lab;
  Lab::Proxy &near, &far;
  SocketApp app;
  std::unique_ptr<AppServer> server;
  RequestSpec message, handshake;
  std::unique_ptr<AppClient::Session> session;
};

TEST(UpgradeTest, MessagesGoThroughBothProxiesOverTheConnectionThatWasUpgraded) {
  Sockets s;
  EXPECT_EQ(s.Send(s.handshake), 101);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(s.Send(s.message), 200);
  EXPECT_EQ(s.app.messages, 3);
  EXPECT_EQ(s.Near("downstream_rq_total"), 1u) << "a message is no request";
  EXPECT_EQ(s.Far("downstream_rq_total"), 1u);
}

TEST(UpgradeTest, CountsAsActiveUntilTheClientLeaves) {
  Sockets s;
  s.Send(s.handshake);
  EXPECT_EQ(s.Near("downstream_cx_upgrades_active"), 1u);
  EXPECT_EQ(s.Far("downstream_cx_upgrades_active"), 1u);
  s.session = nullptr;
  s.lab.RunFor(1s);
  EXPECT_EQ(s.Near("downstream_cx_upgrades_active"), 0u);
  EXPECT_EQ(s.Far("downstream_cx_upgrades_active"), 0u);
}

TEST(UpgradeTest, ARoutesTimeDoesNotEndWhatStands) {
  Sockets s;
  EXPECT_EQ(s.Send(s.handshake), 101);
  s.lab.RunFor(10s);
  EXPECT_EQ(s.Send(s.message), 200);
}

TEST(UpgradeTest, TheApplicationsEndIsTheClients) {
  Sockets s;
  EXPECT_EQ(s.Send(s.handshake), 101);
  s.Serve(false);
  s.lab.RunFor(5s);  // each proxy leaves its client a second to close first
  EXPECT_FALSE(s.session->open());
  EXPECT_EQ(s.far.envoy->counter("cluster.d.upstream_cx_destroy_remote_with_active_rq"), 1u);
}

TEST(UpgradeTest, ARemovedListenerEndsItWhenTheDrainTimeIsOver) {
  Sockets s;
  EXPECT_EQ(s.Send(s.handshake), 101);
  s.far.ads->world[XdsType::kLds].erase("far");
  s.far.ads->Push(XdsType::kLds);
  s.lab.RunFor(1s);
  EXPECT_EQ(s.Send(s.message), 200) << "it drains";
  s.lab.RunFor(EnvoyOptions().drain_time + 5s);
  EXPECT_FALSE(s.session->open());
}

TEST(UpgradeTest, ARemovedClusterLeavesItAsItIs) {
  Sockets s;
  EXPECT_EQ(s.Send(s.handshake), 101);
  s.far.ads->world[XdsType::kCds]["e"] = StaticCluster("e", {{"10.1.0.1:80"}});
  s.far.ads->world[XdsType::kLds]["far"] = Listener("far", kReceiver, "e", true);
  s.far.ads->world[XdsType::kCds].erase("d");
  s.far.ads->Push(XdsType::kCds);
  s.lab.RunFor(1s);
  EXPECT_EQ(s.Send(s.message), 200);
}

TEST(UpgradeTest, AProxyThatEndsTakesItAlong) {
  Sockets s;
  EXPECT_EQ(s.Send(s.handshake), 101);
  s.far.envoy->Stop(StopKind::kKill);
  s.lab.RunFor(5s);
  EXPECT_FALSE(s.session->open());
}

TEST(UpgradeOverHttp2Test, EachTakesAStreamOfOneConnection) {
  Sockets s(Instant(), Between::kHttp2);
  EXPECT_EQ(s.Send(s.handshake), 101);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(s.Send(s.message), 200);
  const auto other =
      std::exchange(s.session, s.near.client->OpenSession(*SocketAddress::Parse(kSender), FirstFlight::Kind::kHttp1));
  EXPECT_EQ(s.Send(s.handshake), 101);
  EXPECT_EQ(s.Send(s.message), 200);
  EXPECT_EQ(s.app.messages, 4);
  EXPECT_EQ(s.Far("downstream_rq_total"), 2u) << "a message is no request";
  EXPECT_EQ(s.Far("downstream_cx_total"), 1u);
}

TEST(UpgradeOverHttp2Test, OneThatEndsLeavesTheOther) {
  Sockets s(Instant(), Between::kHttp2);
  EXPECT_EQ(s.Send(s.handshake), 101);
  s.session = s.near.client->OpenSession(*SocketAddress::Parse(kSender), FirstFlight::Kind::kHttp1);
  EXPECT_EQ(s.Send(s.handshake), 101);
  EXPECT_EQ(s.Send(s.message), 200);
  EXPECT_EQ(s.Far("downstream_cx_upgrades_active"), 1u);
  EXPECT_EQ(s.Far("downstream_cx_active"), 1u);
}

TEST(UpgradeOverHttp2Test, TheApplicationsEndIsTheClients) {
  Sockets s(Instant(), Between::kHttp2);
  EXPECT_EQ(s.Send(s.handshake), 101);
  s.Serve(false);
  s.lab.RunFor(5s);
  EXPECT_FALSE(s.session->open());
  EXPECT_EQ(s.Far("downstream_cx_active"), 1u) << "HTTP/2's connection stands";
}

TEST(UpgradeOverHttp2Test, AProxyThatEndsTakesItAlong) {
  for (const bool near : {false, true}) {
    Sockets s(Instant(), Between::kHttp2);
    EXPECT_EQ(s.Send(s.handshake), 101);
    (near ? s.near : s.far).envoy->Stop(StopKind::kKill);
    s.lab.RunFor(5s);
    EXPECT_FALSE(s.session->open()) << near;
  }
}

TEST(UpgradeOverHttp2Test, AMessageOfOneWhoseFarHostIsGoneIsNotAnswered) {
  Sockets s(Instant(), Between::kHttp2);
  EXPECT_EQ(s.Send(s.handshake), 101);
  s.far.envoy->Stop(StopKind::kVanish);
  EXPECT_EQ(s.Send(s.message), -1);
  EXPECT_EQ(s.Near("downstream_rq_total"), 1u) << "it is no request of its own";
}

TEST(UpgradeOverHttp2Test, WithoutAllowConnectTheFarProxyEndsTheConnection) {
  Sockets s(Instant(), Between::kHttp2WithoutConnect);
  EXPECT_EQ(s.Send(s.handshake), 503);
  EXPECT_EQ(s.Far("downstream_cx_protocol_error"), 1u);
  EXPECT_EQ(s.Far("downstream_cx_active"), 0u);
}

TEST(UpgradeTest, BeforeJudgesAnAnswerWithoutUpgradeGoesBackAsAnyOther) {
  for (const uint32_t minor : {26u, 40u}) {
    DataPlane::Options options = Instant();
    options.release = EnvoyRelease{minor};
    Sockets s(options);
    s.app.upgrades = false;
    std::string details;
    s.session->Send(s.handshake, [&](const RequestRecord& record) { details = record.details; });
    s.lab.RunFor(2s);
    EXPECT_EQ(details, minor == 26 ? "via_upstream" : "websocket_handshake_unsuccessful");
  }
}

}  // namespace
}  // namespace wavetank::envoysim::lab
