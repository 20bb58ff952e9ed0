// Requests whose body comes after their head, and answers that do not wait for it. What a real Envoy 1.40 does is in
// tests/oracles/envoy/cases/bodies.json; here is what only two proxies in a row show.
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

constexpr std::string_view kSender = "10.9.0.1:80", kReceiver = "10.8.0.1:80";

constexpr char kFarListener[] = R"({{"name": "far",
  "address": {{"socket_address": {{"address": "10.8.0.1", "port_value": 80}}}},
  "filter_chains": [{{"filters": [{{"name": "envoy.filters.network.http_connection_manager", "typed_config": {{
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
    "stat_prefix": "far",
    "route_config": {{"name": "far", "virtual_hosts": [
      {{"name": "all", "domains": ["*"], "routes": [{{"match": {{"prefix": "/"}}, {}}}]}}]}},
    "http_filters": [{{"name": "envoy.filters.http.router", "typed_config": {{
      "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}}}]}}}}]}}]}})";
constexpr char kRefuses[] = R"("direct_response": {"status": 403})";

// Requests with a body to `near`, whose cluster is `far`, in front of one application.
class BodiesThrough {
 public:
  // `far_action`: of the far proxy's one route.
  explicit BodiesThrough(std::string_view far_action = R"("route": {"cluster": "d", "timeout": "0s"})")
      : lab(1, Instant()), near(lab.AddProxy("near", "10.9.0.9")), far(lab.AddProxy("far", "10.8.0.1", false)) {
    spec.authority = "x";
    spec.method = "POST";
    spec.headers = {{"content-length", "100"}};
    app = &lab.AddApp("app", "10.1.0.1", 80);
    near.ads->world[XdsType::kCds]["c"] = StaticCluster("c", {{std::string(kReceiver)}});
    near.ads->world[XdsType::kLds]["l"] = HttpListenerTo("l", kSender, "c", /*retry=*/false);
    near.ads->world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    near.ads->world[XdsType::kCds]["PassthroughCluster"] = OriginalDstCluster("PassthroughCluster");
    far.ads->world[XdsType::kCds]["d"] = StaticCluster("d", {{"10.1.0.1:80"}});
    far.ads->world[XdsType::kLds]["far"] = Bytes("Listener", fmt::format(kFarListener, far_action));
    for (Lab::Proxy* p : {&near, &far}) {
      p->ads->automatic = true;
      p->envoy->Start();
    }
    lab.RunFor(50ms);
  }
  uint64_t Near(std::string_view name) { return near.envoy->counter("cluster.c." + std::string(name)); }

  Lab lab;
  Lab::Proxy &near, &far;
  RequestSpec spec;
  EchoApp* app = nullptr;
};

TEST(RequestBodyTest, AnApplicationSeesARequestWhenItsLastByteHasPassedAllProxies) {
  BodiesThrough b;
  b.spec.pace = {400ms, 100ms};
  const auto result = b.lab.Begin(b.near, kSender, b.spec);
  b.lab.RunFor(390ms);
  EXPECT_EQ(b.app->served, 0);
  b.lab.RunFor(100ms);
  EXPECT_EQ(b.app->served, 1);
  EXPECT_EQ(result->record.code, 200);
  EXPECT_GE(result->record.latency, 400ms);
}

TEST(RequestBodyTest, AFarProxyThatAnswersAtOnceIsLeftByAPoolOfHttp1) {
  BodiesThrough b(kRefuses);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(b.lab.Ask(b.near, kSender, b.spec).record.code, 403);
  EXPECT_EQ(b.Near("upstream_cx_total"), 2u) << "it says that the connection closes";
  EXPECT_EQ(b.Near("upstream_cx_destroy_local_with_active_rq"), 0u) << "all of the request was sent by then";
  b.spec = RequestSpec();
  b.spec.authority = "x";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(b.lab.Ask(b.near, kSender, b.spec).record.code, 403);
  EXPECT_EQ(b.Near("upstream_cx_total"), 3u) << "without a body it stays";
}

TEST(RequestBodyTest, AnEarlyAnswerOfAFarProxyEndsARequestThatIsStillSent) {
  BodiesThrough b(kRefuses);
  b.spec.pace = {1s, 1s};
  const Lab::Result result = b.lab.Ask(b.near, kSender, b.spec);
  EXPECT_EQ(result.record.code, 403);
  EXPECT_LT(result.record.latency, 100ms);
  EXPECT_EQ(b.Near("upstream_cx_destroy_local_with_active_rq"), 1u);
}

}  // namespace
}  // namespace wavetank::envoysim::lab
