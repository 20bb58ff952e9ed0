// What requests, connections and clients hold on to when what they stand on goes first: clusters, hosts, listeners,
// timers, the client itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/envoy/proxy/router.h"
#include "fmt/format.h"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

constexpr std::string_view kFrontAddress = "10.9.0.1:80";

constexpr char kWaitsASecond[] = R"({"name": "envoy.filters.http.fault", "typed_config": {
  "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault",
  "delay": {"fixed_delay": "1s", "percentage": {"numerator": 100}}}},)";

constexpr char kTwoSeconds[] = R"("typed_extension_protocol_options": {
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
    "common_http_protocol_options": {"max_stream_duration": "2s"},
    "explicit_http_config": {"http_protocol_options": {}}}})";

// A client's proxy with cluster "c" of applications on 10.1.0.N:80, and "other" of the second of them, whose streams
// last two seconds.
class Front {
 public:
  explicit Front(std::string_view route_extra = "", std::string_view filters = "", EnvoyRelease release = {})
      : lab(1, Of(release)), proxy(lab.AddProxy("front", "10.9.0.9")) {
    spec.authority = "x";
    for (int i = 1; i <= 3; ++i) apps.push_back(&lab.AddApp(fmt::format("a{}", i), fmt::format("10.1.0.{}", i), 80));
    auto& world = proxy.ads->world;
    world[XdsType::kCds]["c"] = EdsCluster("c");
    world[XdsType::kEds]["c"] = Assignment("c", {{"10.1.0.1:80"}});
    world[XdsType::kCds]["other"] = StaticCluster("other", {{"10.1.0.2:80"}}, kTwoSeconds);
    world[XdsType::kLds]["l"] =
        HttpListenerWith("l", kFrontAddress,
                         fmt::format(R"([{{"name": "v", "domains": ["*"], "routes": [{{"match": {{"prefix": "/"}},
          "route": {{"cluster": "c", "timeout": "0s"{}}}}}]}}])",
                                     route_extra),
                         filters);
    world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    world[XdsType::kCds]["PassthroughCluster"] = OriginalDstCluster("PassthroughCluster");
    proxy.ads->automatic = true;
    proxy.envoy->Start();
    lab.RunFor(50ms);
  }
  static DataPlane::Options Of(EnvoyRelease release) {
    DataPlane::Options options = Instant();
    options.release = release;
    return options;
  }
  std::shared_ptr<Lab::Result> Begin() { return lab.Begin(proxy, kFrontAddress, spec); }
  void Endpoints(const std::vector<EndpointSpec>& endpoints) {
    proxy.ads->world[XdsType::kEds]["c"] = Assignment("c", endpoints);
    proxy.ads->Push(XdsType::kEds);
    lab.RunFor(1ms);
  }

  Lab lab;
  Lab::Proxy& proxy;
  RequestSpec spec;
  std::vector<EchoApp*> apps;
};

// Envoy: router.cc, decodeHeaders asks for the cluster by its name when it is the router's turn.
TEST(RequestLifetimeTest, AClusterThatIsReplacedWhileAFilterWaitsServesTheRequestInItsNewForm) {
  Front f("", kWaitsASecond);
  f.apps[0]->code = 503;
  const auto r = f.Begin();
  f.lab.RunFor(500ms);
  f.proxy.ads->world[XdsType::kCds]["c"] = StaticCluster("c", {{"10.1.0.2:80"}});
  f.proxy.ads->Push(XdsType::kCds);
  f.lab.RunFor(1s);
  EXPECT_EQ(r->record.code, 200);
  EXPECT_EQ(r->server, "a2");
}

// Envoy: stats of one name are one, however many clusters of that name there are.
TEST(RequestLifetimeTest, ARequestCountsForItsClusterThatIsReplacedMeanwhile) {
  Front f;
  f.apps[0]->delay = 1s;
  const auto r = f.Begin();
  f.lab.RunFor(500ms);
  f.proxy.ads->world[XdsType::kCds]["c"] = StaticCluster("c", {{"10.1.0.2:80"}});
  f.proxy.ads->Push(XdsType::kCds);
  f.lab.RunFor(1s);
  EXPECT_EQ(r->server, "a1");
  EXPECT_EQ(f.proxy.envoy->counter("cluster.c.upstream_rq_200"), 1u);
  f.proxy.ads->world[XdsType::kCds]["c"] = StaticCluster("c", {{"10.1.0.3:80"}});
  f.proxy.ads->Push(XdsType::kCds);
  f.lab.RunFor(1s);
  EXPECT_EQ(f.proxy.envoy->counter("cluster.c.upstream_rq_200"), 1u);
  EXPECT_EQ(f.proxy.envoy->counter("cluster.c.upstream_cx_destroy"), 1u) << "what is left of it has closed";
}

TEST(RequestLifetimeTest, AClusterThatIsRemovedWhileAFilterWaitsIsNotThere) {
  Front f("", kWaitsASecond);
  const auto r = f.Begin();
  f.lab.RunFor(500ms);
  f.proxy.ads->world[XdsType::kCds].erase("c");
  f.proxy.ads->Push(XdsType::kCds);
  f.lab.RunFor(1s);
  EXPECT_EQ(r->record.code, 503);
  EXPECT_EQ(r->details, "cluster_not_found");
  EXPECT_EQ(r->flags, "DI,NC");
}

TEST(RequestLifetimeTest, AHostThatIsForgottenBetweenTwoTriesIsStillNamed) {
  Front f(R"(, "retry_policy": {"retry_on": "connect-failure", "num_retries": 1,
             "retry_back_off": {"base_interval": "25s", "max_interval": "25s"}})");
  f.lab.RemoveApp("10.1.0.1", 80);
  const auto r = f.Begin();
  f.lab.RunFor(20ms);
  f.Endpoints({{"10.1.0.2:80"}});
  f.Endpoints({{"10.1.0.3:80"}});
  f.Endpoints({});
  f.lab.RunFor(60s);
  EXPECT_EQ(r->record.code, 503);
  EXPECT_EQ(r->details, "no_healthy_upstream");
  EXPECT_EQ(r->upstream, "10.1.0.1:80");
}

// Measured with 1.36.4, 1.37.0, 1.38.3, 1.39.3 and 1.40.0.
TEST(RequestLifetimeTest, ARetryThatIsPlannedAndNeverMadeCountedUntil137) {
  for (const uint32_t minor : {37u, 38u}) {
    Front f(R"(, "max_stream_duration": {"max_stream_duration": "1s"}, "retry_policy": {"retry_on": "5xx",
               "num_retries": 1, "retry_back_off": {"base_interval": "3600s", "max_interval": "3600s"}})",
            "", EnvoyRelease{minor});
    f.apps[0]->code = 503;
    const auto r = f.Begin();
    f.lab.RunFor(2s);
    EXPECT_EQ(r->record.code, 504);
    EXPECT_EQ(f.proxy.envoy->counter("cluster.c.upstream_rq_retry"), minor < 38 ? 1u : 0u) << minor;
  }
}

// The question of a filter whose request has ended is taken back: an upstream of HTTP/1.1 loses its connection.
// Envoy: ext_authz.cc, onDestroy
TEST(RequestLifetimeTest, AQuestionEndsWithTheRequestThatWaitsForItsAnswer) {
  constexpr char kAsks[] = R"({"name": "envoy.filters.http.ext_authz", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz", "transport_api_version": "V3",
    "http_service": {"server_uri": {"uri": "http://10.1.0.2:80", "cluster": "other", "timeout": "60s"}}}},)";
  Front f(R"(, "max_stream_duration": {"max_stream_duration": "1s"})", kAsks);
  f.apps[1]->delay = 30s;
  const auto r = f.Begin();
  f.lab.RunFor(1500ms);
  EXPECT_EQ(r->record.code, 504);
  EXPECT_EQ(f.proxy.envoy->AllStats().at("cluster.other.upstream_rq_active"), 0u);
  EXPECT_EQ(f.proxy.envoy->counter("cluster.other.upstream_cx_destroy_local_with_active_rq"), 1u);
}

TEST(RequestLifetimeTest, AMirroredRequestEndsWithItsProxy) {
  Front f(R"(, "request_mirror_policies": [{"cluster": "other"}])");
  f.apps[1]->delay = 30s;
  const auto r = f.Begin();
  f.lab.RunFor(1s);
  EXPECT_EQ(r->record.code, 200);
  EXPECT_EQ(f.lab.plane.router().streams(), 1u);
  f.proxy.envoy->Stop(Envoy::StopKind::kKill);
  f.lab.RunFor(10s);
  EXPECT_EQ(f.lab.plane.router().streams(), 0u);
}

TEST(RequestLifetimeTest, AMirroredRequestOutlivesTheListenerOfItsOriginal) {
  Front f(R"(, "request_mirror_policies": [{"cluster": "other"}])");
  f.lab.network.path("10.1.0.2").cut = true;  // its SYN is sent again after a second
  const auto r = f.lab.Begin(f.proxy, kFrontAddress, f.spec, /*keep_alive=*/false);
  f.lab.RunFor(100ms);
  EXPECT_EQ(r->record.code, 200);
  f.proxy.ads->world[XdsType::kLds]["l"] = HttpListenerTo("l", kFrontAddress, "c", /*retry=*/true);
  f.proxy.ads->Push(XdsType::kLds);
  f.lab.network.path("10.1.0.2").cut = false;
  f.lab.RunFor(2s);
  EXPECT_EQ(f.apps[1]->served, 1);
  EXPECT_EQ(f.lab.plane.router().streams(), 0u);
}

// --- connections

constexpr std::string_view kProxyAddress = "10.8.0.1:80";

std::string FarListener(std::string_view extra, std::string_view filter_chain) {
  return Bytes("Listener", fmt::format(R"({{"name": "far", "address": {{"socket_address": {{"address": "10.8.0.1",
    "port_value": 80}}}}, {} "filter_chains": [{}]}})",
                                       extra, filter_chain));
}

std::string FarManager(std::string_view extra) {
  return fmt::format(R"({{"filters": [{{"name": "envoy.filters.network.http_connection_manager", "typed_config": {{
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    "stat_prefix": "far", {} "route_config": {{"name": "far", "virtual_hosts": [{{"name": "all", "domains": ["*"],
      "routes": [{{"match": {{"prefix": "/"}}, "route": {{"cluster": "d", "timeout": "0s"}}}}]}}]}},
    "http_filters": [{{"name": "envoy.filters.http.router", "typed_config": {{
      "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}}}]}}}}]}})",
                     extra);
}

// A client without a proxy, before a proxy whose application is in its own pod and takes one connection at a time.
class Far {
 public:
  explicit Far(const std::string& listener)
      : lab(1, Instant()), proxy(lab.AddProxy("far", "10.8.0.1", false)), app(lab.AddApp("app", "10.8.0.1", 81)) {
    proxy.ads->world[XdsType::kCds]["d"] =
        StaticCluster("d", {{"10.8.0.1:81"}}, R"("circuit_breakers": {"thresholds": [{"max_connections": 1}]})");
    proxy.ads->world[XdsType::kLds]["far"] = listener;
    proxy.ads->automatic = true;
    proxy.envoy->Start();
    client = std::make_unique<AppClient>(lab.plane.fabric(), lab.host, lab.network.AddPod("10.7.0.1"), "client");
    lab.RunFor(50ms);
  }
  void RemoveListener() {
    proxy.ads->world[XdsType::kLds].clear();
    proxy.ads->Push(XdsType::kLds);
  }
  void Send(Duration timeout = {}) {
    spec.authority = "x";
    spec.protocol = HttpProtocol::kHttp2;
    AppClient::Options options{true, timeout};
    options.multiplex = true;
    client->Send(*SocketAddress::Parse(std::string(kProxyAddress)), spec, options, [this](const RequestRecord& record) {
      ended.push_back(record.code != 0 ? std::to_string(record.code) : std::string(record.details));
    });
  }
  std::unique_ptr<AppClient::Session> Silent() {
    return client->OpenSession(*SocketAddress::Parse(std::string(kProxyAddress)), FirstFlight::Kind::kSilent);
  }
  uint64_t Http(std::string_view name) { return proxy.envoy->counter("http.far." + std::string(name)); }

  Lab lab;
  Lab::Proxy& proxy;
  EchoApp& app;
  RequestSpec spec;
  std::unique_ptr<AppClient> client;
  std::vector<std::string> ended;
};

TEST(ConnectionLifetimeTest, ARequestThatWaitedForTheOneThatIsResetMayEndADrainedConnection) {
  Far f(FarListener("", FarManager(R"("common_http_protocol_options": {"max_connection_duration": "1s"},
                                      "drain_timeout": "1s",)")));
  f.app.delay = 60s;
  f.Send(5s);
  f.lab.RunFor(100ms);
  f.Send();
  f.lab.RunFor(4s);
  f.app.delay = {};
  f.lab.RunFor(2s);
  EXPECT_THAT(f.ended, testing::ElementsAre("client timeout", "200"));
  EXPECT_EQ(f.Http("downstream_cx_destroy"), 1u);
  EXPECT_EQ(f.Http("downstream_rq_active"), 0u);
}

// Envoy: codec_client.cc, conn_pool_base.cc: what becomes free serves others only when all that ends with it has ended.
TEST(ConnectionLifetimeTest, OfAClientThatIsGoneNothingThatWaitedIsServedAnyMore) {
  Far f(FarListener("", FarManager("")));
  f.app.delay = 60s;
  f.Send();
  f.lab.RunFor(100ms);
  f.Send();
  f.Send();
  f.lab.RunFor(100ms);
  EXPECT_EQ(f.app.served, 1);
  f.client.reset();
  f.lab.RunFor(1s);
  EXPECT_EQ(f.app.served, 1);
  EXPECT_EQ(f.Http("downstream_rq_active"), 0u);
}

TEST(ConnectionLifetimeTest, OfAProxyThatIsKilledNothingThatWaitedIsServedAnyMore) {
  Far f(FarListener("", FarManager("")));
  f.Send();
  f.lab.RunFor(100ms);
  f.app.delay = 60s;
  AppClient other(f.lab.plane.fabric(), f.lab.host, f.lab.network.AddPod("10.7.0.2"), "other");
  other.Send(*SocketAddress::Parse(std::string(kProxyAddress)), f.spec, {}, [](const RequestRecord&) {});
  f.lab.RunFor(100ms);
  f.Send();  // waits for the other's connection
  f.lab.RunFor(100ms);
  EXPECT_EQ(f.app.served, 2);
  f.proxy.envoy->Stop(Envoy::StopKind::kKill);
  f.lab.RunFor(1s);
  EXPECT_EQ(f.app.served, 2);
}

constexpr char kInspectsFirst[] =
    R"("listener_filters": [{"name": "envoy.filters.listener.tls_inspector", "typed_config": {
  "@type": "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"}}],
  "continue_on_listener_filters_timeout": true, "listener_filters_timeout": "5s",)";
constexpr char kTcpChain[] = R"({"filters": [{"name": "envoy.filters.network.tcp_proxy", "typed_config": {
  "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "stat_prefix": "t",
  "cluster": "d"}}]})";

TEST(ConnectionLifetimeTest, AListenerThatGoesWhileItsFiltersWaitClosesTheConnectionAfterTheDrainTime) {
  Far f(FarListener(kInspectsFirst, kTcpChain));
  const auto session = f.Silent();
  f.lab.RunFor(1s);
  f.RemoveListener();
  f.lab.RunFor(30s);
  EXPECT_TRUE(session->open());
  f.lab.RunFor(30s);
  EXPECT_FALSE(session->open());
}

TEST(ConnectionLifetimeTest, AConnectionThatDrainsBeforeItsFirstBytesLeavesNoTimerBehind) {
  Far f(FarListener(kInspectsFirst, kTcpChain));
  auto session = f.Silent();  // accepted; what it says comes in 3 ms
  f.RemoveListener();
  f.lab.RunFor(1s);
  EXPECT_TRUE(session->open());
  session.reset();
  f.lab.RunFor(5min);
  EXPECT_EQ(f.proxy.envoy->counter("listener.10.8.0.1_80.downstream_cx_active"), 0u);
}

TEST(ConnectionLifetimeTest, AListenerThatGoesEndsAConnectionThatTakesItsTimeToClose) {
  Far f(FarListener("", FarManager(R"("common_http_protocol_options": {"max_connection_duration": "1s"},)")));
  f.app.delay = 10min;
  f.Send();
  f.lab.RunFor(10s);
  f.RemoveListener();
  f.lab.RunFor(60s);
  EXPECT_THAT(f.ended, testing::ElementsAre("connection reset"));
}

// An address that is translated no more: both ends of a connection hear of it, unless one has closed before that.
TEST(ConnectionLifetimeTest, AnEndThatClosesAsItsConnectionIsSeveredHearsNoMoreOfIt) {
  Far f(FarListener("", FarManager("")));
  f.app.delay = 60s;
  f.Send();
  f.lab.RunFor(100ms);
  f.lab.plane.fabric().ResetDialled(*IpAddress::Parse("10.8.0.1"));
  f.proxy.envoy->Stop(Envoy::StopKind::kKill);
  f.lab.RunFor(100ms);
  EXPECT_THAT(f.ended, testing::ElementsAre("connection reset"));
}

// A proxy that gives a request up has forgotten it when the next one, a transit later, has not heard of that yet.
TEST(ConnectionLifetimeTest, ARequestThatItsSenderHasGivenUpIsStillThereWhereItIsAnswered) {
  Far f(FarListener("", FarManager("")));
  Lab::Proxy& near = f.lab.AddProxy("near", "10.9.0.9");
  near.ads->world[XdsType::kCds]["c"] = StaticCluster("c", {{std::string(kProxyAddress)}});
  near.ads->world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
  near.ads->world[XdsType::kCds]["PassthroughCluster"] = OriginalDstCluster("PassthroughCluster");
  near.ads->world[XdsType::kLds]["l"] = HttpListenerWith("l", kFrontAddress, R"([{"name": "v", "domains": ["*"],
    "request_headers_to_add": [{"header": {"key": "a", "value": "b"}}], "routes": [
      {"match": {"prefix": "/"}, "route": {"cluster": "c", "timeout": "0.1s"}}]}])");
  near.ads->automatic = true;
  near.envoy->Start();
  f.lab.RunFor(50ms);
  RequestSpec spec;
  spec.authority = "an-authority-that-is-too-long-to-stand-in-the-string-itself";
  ASSERT_EQ(f.lab.Ask(near, kFrontAddress, spec).record.code, 200);  // connections stand
  std::string told;                                                  // by the far proxy, of what it answers
  f.lab.kernel.AddObserver([&](const sim::TraceEvent& event) {
    const TraceRecord& r = event.record;
    if (r.kind == TraceKind::kRequest && f.lab.Name(r.subject) == "far") told = f.lab.Name(r.object);
  });
  f.app.delay = 99ms + 500us;
  const auto result = f.lab.Begin(near, kFrontAddress, spec);
  f.lab.RunFor(1s);
  EXPECT_EQ(result->record.code, 504);
  EXPECT_EQ(f.Http("downstream_rq_2xx"), 2u) << "answered by then";
  EXPECT_EQ(told, spec.authority);
}

// --- clients

TEST(ClientLifetimeTest, AClientMayEndWithTheAnswerToARequestThatKeepsNothing) {
  Far f(FarListener("", FarManager("")));
  f.spec.authority = "x";
  AppClient::Options options;
  options.keep_alive = false;
  int answers = 0;
  f.client->Send(*SocketAddress::Parse(std::string(kProxyAddress)), f.spec, options, [&](const RequestRecord&) {
    ++answers;
    f.client.reset();
  });
  f.lab.RunFor(1s);
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(f.Http("downstream_cx_active"), 0u);
}

TEST(ClientLifetimeTest, AnAnswerThatIsStillAheadOfTheClockWhenPatienceEndsDoesNotCount) {
  Far f(FarListener("", FarManager("")));
  f.lab.network.pod("10.8.0.1").apps[82] = f.lab.network.pod("10.8.0.1").apps[81];
  f.app.delay = 1ms;  // within the request's own event
  AppClient local(f.lab.plane.fabric(), f.lab.host, f.proxy.workload, "local");
  std::string ended;
  local.Send(*SocketAddress::Parse("10.8.0.1:82"), f.spec, {.timeout = 500us},
             [&](const RequestRecord& record) { ended = std::string(record.details); });
  f.lab.RunFor(1s);
  EXPECT_EQ(ended, "client timeout");
}

}  // namespace
}  // namespace wavetank::envoysim::lab
