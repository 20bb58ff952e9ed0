// HTTP/2 between two proxies: what a pool does about the streams that the far side allows and resets. The figures of
// the first three were measured with a real Envoy 1.40 whose clients came at once; tests/oracles/envoy/cases/http2.json
// holds what does not hang by a race.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

constexpr std::string_view kNear = "10.9.0.1:80", kFar = "10.8.0.1:80";
constexpr char kTwoStreams[] = R"("http2_protocol_options": {"max_concurrent_streams": 2},)";

// Requests in HTTP/1.1 to `near`, whose cluster "c" speaks HTTP/2 to `far`, in front of one application.
class Http2Between {
 public:
  explicit Http2Between(std::string_view manager_extra = "", bool retry = false, std::string_view far_cluster = "")
      : lab(1, Instant()), near(lab.AddProxy("near", "10.9.0.9")), far(lab.AddProxy("far", "10.8.0.1", false)) {
    spec.authority = "x";
    app = &lab.AddApp("app", "10.1.0.1", 80);
    near.ads->world[XdsType::kCds]["c"] = StaticCluster("c", {{std::string(kFar)}}, R"("http2_protocol_options": {})");
    near.ads->world[XdsType::kLds]["l"] = HttpListenerTo("l", kNear, "c", retry);
    near.ads->world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    near.ads->world[XdsType::kCds]["PassthroughCluster"] = OriginalDstCluster("PassthroughCluster");
    far.ads->world[XdsType::kCds]["d"] = StaticCluster("d", {{"10.1.0.1:80"}}, far_cluster);
    far.ads->world[XdsType::kLds]["far"] = Bytes("Listener", fmt::format(R"({{"name": "far", "address": {{
      "socket_address": {{"address": "10.8.0.1", "port_value": 80}}}}, "filter_chains": [{{"filters": [{{
        "name": "envoy.filters.network.http_connection_manager", "typed_config": {{
          "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
          "stat_prefix": "far", {} "route_config": {{"name": "far", "virtual_hosts": [{{"name": "all", "domains": ["*"],
            "routes": [{{"match": {{"prefix": "/"}}, "route": {{"cluster": "d", "timeout": "0s"}}}}]}}]}},
          "http_filters": [{{"name": "envoy.filters.http.router", "typed_config": {{
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}}}]}}}}]}}]}})",
                                                                         manager_extra));
  }
  void Start() {
    for (Lab::Proxy* p : {&near, &far}) {
      p->ads->automatic = true;
      p->envoy->Start();
    }
    lab.RunFor(50ms);
    ASSERT_TRUE(near.envoy->live() && far.envoy->live());
  }
  // Codes and how often; those of failures with their details.
  std::map<std::string, int> AskAtOnce(int n) {
    std::vector<std::shared_ptr<Lab::Result>> results;
    for (int i = 0; i < n; ++i) results.push_back(lab.Begin(near, kNear, spec));
    lab.RunFor(5s);
    std::map<std::string, int> out;
    for (const auto& r : results) {
      ++out[r->record.code == 200 ? "200" : fmt::format("{} {} {}", r->record.code, r->flags, r->details)];
    }
    return out;
  }
  uint64_t Near(std::string_view name) { return near.envoy->counter("cluster.c." + std::string(name)); }

  Lab lab;
  Lab::Proxy &near, &far;
  RequestSpec spec;
  EchoApp* app = nullptr;
};

constexpr char kRefused[] = "503 UR upstream_reset_before_response_started{remote_refused_stream_reset}";

TEST(Http2Test, StreamsThatAreSentBeforeTheServersSettingsComeAreRefusedBeyondThem) {
  Http2Between b(kTwoStreams);
  b.app->delay = 200ms;
  b.Start();
  EXPECT_EQ(b.AskAtOnce(6), (std::map<std::string, int>{{"200", 2}, {kRefused, 4}}));
  EXPECT_EQ(b.Near("upstream_cx_total"), 1u);
  EXPECT_EQ(b.Near("upstream_rq_total"), 6u);
  EXPECT_EQ(b.far.envoy->counter("http.far.downstream_rq_total"), 2u) << "nobody looked at the others";
}

TEST(Http2Test, OnceTheSettingsAreKnownFurtherStreamsOpenAnotherConnection) {
  Http2Between b(kTwoStreams);
  b.Start();
  EXPECT_EQ(b.AskAtOnce(1), (std::map<std::string, int>{{"200", 1}}));
  b.app->delay = 200ms;
  EXPECT_EQ(b.AskAtOnce(6), (std::map<std::string, int>{{"200", 4}, {kRefused, 2}}))
      << "all that wait go to the new one, whose settings are not there yet";
  EXPECT_EQ(b.Near("upstream_cx_total"), 2u);
}

TEST(Http2Test, RefusedStreamsAreRetriedByIstiosConditions) {
  Http2Between b(kTwoStreams, /*retry=*/true);
  b.app->delay = 200ms;
  b.Start();
  EXPECT_EQ(b.AskAtOnce(5), (std::map<std::string, int>{{"200", 5}})) << "three of them, as many as may be retried";
  EXPECT_GE(b.Near("upstream_rq_retry"), 3u);
}

TEST(Http2Test, ARequestThatTimedOutHoldsNoCircuitBreakerOfTheFarProxy) {
  Http2Between b("", false, R"("circuit_breakers": {"thresholds": [{"max_requests": 1}]})");
  b.near.ads->world[XdsType::kLds]["l"] = HttpListenerWith("l", kNear, R"([{"name": "v", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "c", "timeout": "1s"}}]}])");
  b.app->delay = 60s;
  b.Start();
  EXPECT_EQ(b.AskAtOnce(1), (std::map<std::string, int>{{"504 UT response_timeout", 1}}));
  b.app->delay = {};
  EXPECT_EQ(b.AskAtOnce(1), (std::map<std::string, int>{{"200", 1}})) << "the first one's application is still at it";
  EXPECT_EQ(b.far.envoy->counter("http.far.downstream_rq_rx_reset"), 1u);
  EXPECT_EQ(b.Near("upstream_cx_total"), 1u) << "the connection stands";
}

TEST(Http2Test, TheFarProxySeesWhatThePoolSpeaksWhateverTheClientDid) {
  Http2Between b;
  b.Start();
  b.AskAtOnce(3);
  EXPECT_EQ(b.far.envoy->counter("http.far.downstream_rq_http2_total"), 3u);
  EXPECT_EQ(b.near.envoy->counter("http.h.downstream_rq_http1_total"), 3u);
}

}  // namespace
}  // namespace wavetank::envoysim::lab
