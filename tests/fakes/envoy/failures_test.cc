// What clients see when hosts fail, and what Envoy does about it: docs/real-envoy.md 5 and 6, limits, timeouts, drain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "envoy/config/cluster/v3/cluster.pb.h"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kFront = "10.9.0.1:80";

// One sidecar client, plain-text servers a and b (two pods), one cluster "c", one listener.
class Plain {
 public:
  explicit Plain(std::string_view cluster_extra = "", bool retry = false, std::string_view route_extra = "",
                 int hosts = 2, uint64_t seed = 1)
      : lab(seed, Instant()), client(lab.AddProxy("client", "10.0.0.1")) {
    spec.authority = "x";
    std::string extra = R"("common_lb_config": {"healthy_panic_threshold": {}}, "connect_timeout": "10s")";
    if (!cluster_extra.empty()) extra += ", " + std::string(cluster_extra);
    std::vector<EndpointSpec> endpoints;
    for (int i = 0; i < hosts; ++i) {
      const std::string ip = "10.1.0." + std::to_string(i + 1);
      apps.push_back(&lab.AddApp(std::string(1, static_cast<char>('a' + i)), ip, 80));
      endpoints.push_back({ip + ":80"});
    }
    auto& world = client.ads->world;
    world[XdsType::kCds]["c"] = EdsCluster("c", extra.substr(0, extra.find(", \"connect_timeout\"")) +
                                                    (cluster_extra.empty() ? "" : ", " + std::string(cluster_extra)));
    world[XdsType::kCds]["PassthroughCluster"] = OriginalDstCluster("PassthroughCluster");
    world[XdsType::kEds]["c"] = Assignment("c", endpoints);
    world[XdsType::kLds]["l"] = HttpListenerTo("l", kFront, "c", retry, route_extra);
    world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    client.ads->automatic = true;
  }
  void Start() {
    client.envoy->Start();
    lab.RunFor(10ms);
    ASSERT_TRUE(client.envoy->live());
  }
  Lab::Result Ask(Duration limit = 100s) { return lab.Ask(client, kFront, spec, true, limit); }
  std::shared_ptr<Lab::Result> Begin() { return lab.Begin(client, kFront, spec); }
  uint64_t Counter(std::string_view name) { return client.envoy->counter("cluster.c." + std::string(name)); }
  void Kill(int host) { lab.RemoveApp("10.1.0." + std::to_string(host + 1), 80); }
  void Revive(int host) {
    apps[host] = &lab.AddApp(std::string(1, static_cast<char>('a' + host)), "10.1.0." + std::to_string(host + 1), 80);
  }

  Lab lab;
  Lab::Proxy& client;
  RequestSpec spec;
  std::vector<EchoApp*> apps;
};

// --- the original destination

TEST(OriginalDestinationTest, APortOfTheClusterTakesThePlaceOfTheDestinations) {
  Plain p;
  p.Start();
  EXPECT_NE(p.lab.Ask(p.client, "10.1.0.1:9999", p.spec).record.code, 200);  // nobody listens there
  Plain other;
  envoy::config::cluster::v3::Cluster cluster;
  ASSERT_TRUE(cluster.ParseFromString(OriginalDstCluster("PassthroughCluster")));
  cluster.mutable_original_dst_lb_config()->mutable_upstream_port_override()->set_value(80);
  other.client.ads->world[XdsType::kCds]["PassthroughCluster"] = cluster.SerializeAsString();
  other.Start();
  EXPECT_EQ(other.lab.Ask(other.client, "10.1.0.1:9999", other.spec).record.code, 200);
}

// --- a host dies (3.5)

TEST(HostFailureTest, RequestsInFlightEndAtOnceAndAreNotRetried) {
  Plain p("", /*retry=*/true);
  p.apps[0]->delay = p.apps[1]->delay = 3s;
  p.Start();
  const auto first = p.Begin(), second = p.Begin();
  p.lab.RunFor(100ms);
  p.Kill(0);
  p.lab.RunFor(10ms);
  const auto& dead = first->done ? *first : *second;
  ASSERT_TRUE(dead.done);
  EXPECT_EQ(dead.record.code, 503);
  EXPECT_EQ(dead.flags, "UC");
  EXPECT_EQ(dead.details, "upstream_reset_before_response_started{connection_termination}");
  EXPECT_EQ(dead.record.attempts, 1u);
  EXPECT_EQ(dead.body,
            "upstream connect error or disconnect/reset before headers. reset reason: connection termination");
  p.lab.RunFor(4s);
  EXPECT_EQ((first->done && first->record.code == 503 ? *second : *first).record.code, 200);
}

TEST(HostFailureTest, AnApplicationThatResetsIsNotRetried) {
  Plain p("", /*retry=*/true);
  p.apps[0]->code = p.apps[1]->code = 0;
  p.Start();
  for (int i = 0; i < 6; ++i) {
    const Lab::Result r = p.Ask();
    EXPECT_EQ(r.record.code, 503);
    EXPECT_EQ(r.flags, "UC");
    EXPECT_EQ(r.record.attempts, 1u);
  }
}

TEST(HostFailureTest, RefusedConnectionsAlternateWithGoodOnesWithoutRetries) {
  Plain p;
  p.Start();
  p.Kill(0);
  int failed = 0;
  for (int i = 0; i < 30; ++i) {
    const Lab::Result r = p.Ask();
    if (r.record.code == 200) continue;
    ++failed;
    EXPECT_EQ(r.record.code, 503);
    EXPECT_EQ(r.flags, "UF");
    EXPECT_EQ(r.failure, "delayed_connect_error:_Connection_refused");
    EXPECT_EQ(r.details,
              "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_"
              "refused}");
    EXPECT_LT(r.record.latency, 10ms);
  }
  EXPECT_EQ(failed, 15);
  EXPECT_TRUE(p.client.envoy->Endpoints()[0].healthy);
}

TEST(HostFailureTest, IstiosRetriesHideARefusingHost) {
  Plain p("", /*retry=*/true);
  p.Start();
  p.Kill(0);
  int twice = 0;
  for (int i = 0; i < 30; ++i) {
    const Lab::Result r = p.Ask();
    EXPECT_EQ(r.record.code, 200);
    EXPECT_LE(r.record.attempts, 2u);
    twice += r.record.attempts == 2;
    EXPECT_LT(r.record.latency, 35ms) << "the first back-off is below 25 ms";
  }
  EXPECT_GT(twice, 10);
  EXPECT_EQ(p.Counter("upstream_rq_retry_success"), static_cast<uint64_t>(twice));
}

// Uniform in [0, 25 ms), then twice as far each time up to 250 ms. Of 300 requests the mean is within 4.5 standard
// deviations of half the sum of the limits.
TEST(HostFailureTest, RetriesBackOffWithFullJitterUpToTheirMaximum) {
  Plain p("", false, "", /*hosts=*/1);
  p.client.ads->world[XdsType::kLds]["l"] = HttpListenerWith(
      "l", kFront, R"([{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c",
        "timeout": "0s", "retry_policy": {"retry_on": "connect-failure", "num_retries": 6}}}]}])");
  p.Start();
  p.Kill(0);
  double sum = 0, square = 0, longest = 0;
  for (const double limit : {25.0, 50.0, 100.0, 200.0, 250.0, 250.0}) {
    longest += limit;
    sum += limit / 2;
    square += limit * limit / 12;
  }
  constexpr int kRequests = 300;
  double mean = 0;
  for (int i = 0; i < kRequests; ++i) {
    const Lab::Result r = p.Ask();
    ASSERT_EQ(r.record.attempts, 7u);
    const double took = std::chrono::duration<double, std::milli>(r.record.latency).count();
    EXPECT_LT(took, longest);
    mean += took / kRequests;
  }
  EXPECT_NEAR(mean, sum, 4.5 * std::sqrt(square / kRequests));
}

TEST(HostFailureTest, SilentHostFailsAfterTheConnectTimeout) {
  Plain p("", false, "", /*hosts=*/1);
  p.Start();
  p.lab.network.path("10.1.0.1").cut = true;
  const Lab::Result r = p.Ask();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.flags, "UF");
  EXPECT_EQ(r.details, "upstream_reset_before_response_started{connection_timeout}");
  EXPECT_EQ(r.record.latency, 10s);
  EXPECT_EQ(p.Counter("upstream_cx_connect_timeout"), 1u);
  EXPECT_EQ(p.Counter("upstream_cx_connect_fail"), 1u);
}

TEST(HostFailureTest, WithRetriesASilentHostCostsOneConnectTimeout) {
  Plain p("", /*retry=*/true);
  p.Start();
  p.lab.network.path("10.1.0.1").cut = true;
  int slow = 0;
  for (int i = 0; i < 6; ++i) {
    const Lab::Result r = p.Ask();
    EXPECT_EQ(r.record.code, 200);
    if (r.record.latency < 1s) continue;
    ++slow;
    EXPECT_GE(r.record.latency, 10s);
    EXPECT_LT(r.record.latency, 10s + 35ms);
  }
  EXPECT_GE(slow, 5) << "round robin: a try and its retry leave the next request where the last one began";
}

TEST(HostFailureTest, RequestsInFlightToASilentHostHang) {
  Plain p("", /*retry=*/true, "", /*hosts=*/1);
  p.apps[0]->delay = 1s;
  p.Start();
  const auto r = p.Begin();
  p.lab.RunFor(100ms);
  p.lab.network.path("10.1.0.1").cut = true;
  p.lab.RunFor(40s);
  EXPECT_FALSE(r->done) << "no route timeout, no keep-alive: only TCP gives up";
}

TEST(HostFailureTest, ServiceUnavailableIsRetriedAndInternalErrorIsNot) {
  Plain p("", /*retry=*/true);
  p.Start();
  p.apps[0]->code = 503;
  for (int i = 0; i < 40; ++i) EXPECT_EQ(p.Ask().record.code, 200);
  p.apps[0]->code = 500;
  int failed = 0;
  for (int i = 0; i < 40; ++i) {
    const Lab::Result r = p.Ask();
    EXPECT_EQ(r.record.attempts, 1u);
    failed += r.record.code == 500;
  }
  EXPECT_EQ(failed, 20);
  p.apps[0]->code = p.apps[1]->code = 503;
  const Lab::Result r = p.Ask();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.flags, "URX");
  EXPECT_EQ(r.details, "via_upstream");
  EXPECT_EQ(r.record.attempts, 3u);
}

TEST(HostFailureTest, ServiceUnavailableIsPassedOnWithoutRetries) {
  Plain p;
  p.Start();
  p.apps[0]->code = 503;
  int failed = 0;
  for (int i = 0; i < 40; ++i) {
    const Lab::Result r = p.Ask();
    failed += r.record.code == 503;
    EXPECT_EQ(r.flags, "-");
  }
  EXPECT_EQ(failed, 20);
}

TEST(HostFailureTest, KilledServerSidecarResetsItsConnections) {
  Mesh mesh;
  mesh.apps["v1"]->delay = mesh.apps["v2"]->delay = 3s;
  mesh.Start();
  std::vector<std::shared_ptr<Lab::Result>> flight;
  for (int i = 0; i < 10; ++i) flight.push_back(mesh.Begin());
  mesh.lab.RunFor(100ms);
  mesh.gateway->envoy->Stop(Envoy::StopKind::kKill);
  mesh.lab.RunFor(50ms);
  int cut = 0;
  for (const auto& r : flight) {
    if (!r->done) continue;
    ++cut;
    EXPECT_EQ(r->flags, "UC");
    EXPECT_EQ(r->record.attempts, 1u);
  }
  EXPECT_GT(cut, 1);
  mesh.lab.RunFor(4s);
  mesh.apps["v1"]->delay = {};
  for (int i = 0; i < 30; ++i) EXPECT_EQ(mesh.Ask().server, "v1");
  int finished = 0;
  for (const auto& r : flight) finished += r->record.code == 200;
  EXPECT_EQ(finished + cut, 10);
}

// --- outlier detection (3.6)

constexpr std::string_view kOutlier = R"("outlier_detection": {"consecutive_5xx": 5, "interval": "1s",
  "base_ejection_time": "3s", "max_ejection_percent": 100})";

std::string WithMergeWindow(std::string_view outlier, std::string_view window) {
  return std::string(outlier) + R"(, "common_lb_config": {"healthy_panic_threshold": {}, "update_merge_window": ")" +
         std::string(window) + "\"}";
}

class OutlierTest : public ::testing::Test {
 protected:
  // 20 requests a second for `duration`; how many failed.
  static int Failures(Plain* p, Duration duration) {
    int failed = 0;
    for (Duration t{}; t < duration; t += 50ms) {
      const auto r = p->Begin();
      p->lab.RunFor(50ms);
      failed += r->record.code != 200;
    }
    return failed;
  }
  static bool Ejected(Plain* p) { return p->client.envoy->Endpoints()[0].outlier_ejected; }
  // Runs requests until the host is (or is no more) ejected; how long that took.
  static Duration Until(Plain* p, bool ejected, Duration limit) {
    const Time begin = p->lab.kernel.Now();
    while (Ejected(p) != ejected && p->lab.kernel.Now() - begin < limit) Failures(p, 50ms);
    return p->lab.kernel.Now() - begin;
  }
};

TEST_F(OutlierTest, TheFifthConsecutiveConnectFailureEjects) {
  Plain p(kOutlier);
  p.Start();
  p.Kill(0);
  int failed = 0;
  while (!Ejected(&p) && failed < 100) failed += p.Ask().record.code != 200;
  EXPECT_EQ(failed, 5);
  EXPECT_EQ(p.Counter("outlier_detection.ejections_active"), 1u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(p.Ask().server, "b");
}

TEST_F(OutlierTest, ResetsOfRequestsInFlightCount) {
  Plain p(kOutlier);
  p.apps[0]->delay = p.apps[1]->delay = 1s;
  p.Start();
  std::vector<std::shared_ptr<Lab::Result>> flight;
  for (int i = 0; i < 4; ++i) flight.push_back(p.Begin());
  p.lab.RunFor(100ms);
  p.Kill(0);
  p.lab.RunFor(10ms);
  p.apps[1]->delay = {};
  int failed = 0;
  while (!Ejected(&p) && failed < 100) failed += p.Ask().record.code != 200;
  EXPECT_EQ(failed, 3) << "2 resets and 3 refusals";
}

TEST_F(OutlierTest, AnEjectedHostsConnectionsTakeNothingMoreButEndWhatTheyBegan) {
  Plain p(kOutlier);
  p.apps[0]->delay = p.apps[1]->delay = 1s;
  p.Start();
  std::vector<std::shared_ptr<Lab::Result>> flight;
  for (int i = 0; i < 4; ++i) flight.push_back(p.Begin());
  p.lab.RunFor(100ms);
  p.apps[0]->delay = p.apps[1]->delay = {};
  p.apps[0]->code = 503;
  while (!Ejected(&p) && p.lab.kernel.Now() < Time{} + 60s) p.Ask();
  ASSERT_TRUE(Ejected(&p));
  p.lab.RunFor(1ms);
  EXPECT_EQ(p.Counter("upstream_cx_destroy_local"), 1u) << "the one that was idle";
  p.lab.RunFor(2s);
  for (const auto& r : flight) EXPECT_NE(r->record.code, 0);
  EXPECT_EQ(p.Counter("upstream_cx_destroy_local"), 3u);
  EXPECT_EQ(p.Counter("upstream_cx_destroy_with_active_rq"), 0u);
}

TEST_F(OutlierTest, WithRetriesTheClientSeesNothing) {
  Plain p(kOutlier, /*retry=*/true);
  p.Start();
  p.Kill(0);
  EXPECT_EQ(Failures(&p, 20s), 0);
  EXPECT_GE(p.Counter("outlier_detection.ejections_enforced_total"), 2u);
}

TEST_F(OutlierTest, TenPercentOfTwoHostsIsNone) {
  Plain p(R"("outlier_detection": {"consecutive_5xx": 5, "interval": "1s", "base_ejection_time": "3s"})");
  p.Start();
  p.Kill(0);
  EXPECT_EQ(Failures(&p, 20s), 200);
  EXPECT_FALSE(Ejected(&p));
  // Twice per five: as consecutive 5xx and as consecutive gateway failures (measured: 110 of 278).
  EXPECT_EQ(p.Counter("outlier_detection.ejections_overflow"), 2u * 200 / 5);
}

TEST_F(OutlierTest, TenPercentOfTenHostsIsOne) {
  Plain p(R"("outlier_detection": {"consecutive_5xx": 5, "interval": "1s", "base_ejection_time": "3s"})", false, "",
          /*hosts=*/10);
  p.Start();
  p.Kill(0);
  p.Kill(1);
  Failures(&p, 20s);
  int ejected = 0;
  for (const auto& e : p.client.envoy->Endpoints()) ejected += e.outlier_ejected;
  EXPECT_LE(ejected, 1);
  EXPECT_GE(p.Counter("outlier_detection.ejections_enforced_total"), 1u);
}

TEST_F(OutlierTest, AlwaysEjectOneHostDoesSo) {
  Plain p(R"("outlier_detection": {"consecutive_5xx": 5, "interval": "1s", "base_ejection_time": "3s",
             "always_eject_one_host": true})");
  p.Start();
  p.Kill(0);
  while (!Ejected(&p) && p.lab.kernel.Now() < Time{} + 60s) p.Ask();
  EXPECT_TRUE(Ejected(&p));
}

TEST_F(OutlierTest, EjectionLastsBaseTimesCountUpToTheNextInterval) {
  Plain p(kOutlier);
  p.Start();
  p.Kill(0);
  for (int n = 1; n <= 3; ++n) {
    Until(&p, true, 60s);
    const Duration lasted = Until(&p, false, 60s);
    EXPECT_GE(lasted, n * 3s) << n;
    EXPECT_LE(lasted, n * 3s + 1100ms) << n;
  }
}

TEST_F(OutlierTest, MergeWindowDelaysAnEjectionSoonAfterAReturn) {
  Plain p(WithMergeWindow(kOutlier, "1s"));
  p.Start();
  p.Kill(0);
  Until(&p, true, 60s);
  Until(&p, false, 60s);
  // 10 requests a second go to the dead host: 5 failures eject it in half a second, but the balancer hears of it later.
  int failed = 0;
  const Time begin = p.lab.kernel.Now();
  while (p.lab.kernel.Now() - begin < 3s) failed += Failures(&p, 50ms);
  EXPECT_GT(failed, 8);
  EXPECT_LT(failed, 20);
}

TEST_F(OutlierTest, WithoutAMergeWindowFailuresAreExact) {
  Plain p(WithMergeWindow(kOutlier, "0s"));
  p.Start();
  p.Kill(0);
  for (int round = 0; round < 3; ++round) {
    int failed = 0;
    while (!Ejected(&p)) failed += Failures(&p, 50ms);
    EXPECT_EQ(failed, 5) << round;
    EXPECT_EQ(Failures(&p, 2s), 0);
    while (Ejected(&p)) p.lab.RunFor(100ms);
  }
}

TEST_F(OutlierTest, LocalOriginFailuresAreCountedApartIfSplit) {
  Plain p(R"("outlier_detection": {"consecutive_5xx": 50, "interval": "1s", "base_ejection_time": "3s",
             "max_ejection_percent": 100, "split_external_local_origin_errors": true,
             "consecutive_local_origin_failure": 3})");
  p.Start();
  p.Kill(0);
  int failed = 0;
  while (!Ejected(&p) && failed < 100) failed += p.Ask().record.code != 200;
  EXPECT_EQ(failed, 3);
}

TEST_F(OutlierTest, GatewayFailuresAreNotEnforcedByDefault) {
  const std::string head = R"("outlier_detection": {"consecutive_5xx": 100, "consecutive_gateway_failure": 3,
    "interval": "1s", "base_ejection_time": "3s", "max_ejection_percent": 100)";
  Plain lenient(head + "}");
  lenient.Start();
  lenient.Kill(0);
  for (int i = 0; i < 40; ++i) lenient.Ask();
  EXPECT_FALSE(Ejected(&lenient));
  Plain strict(head + R"(, "enforcing_consecutive_gateway_failure": 100})");
  strict.Start();
  strict.Kill(0);
  int failed = 0;
  while (!Ejected(&strict) && failed < 100) failed += strict.Ask().record.code != 200;
  EXPECT_EQ(failed, 3);
}

TEST_F(OutlierTest, EjectingOneOfTwoIsNoPanic) {
  Plain p(std::string(kOutlier) + R"(, "common_lb_config": {"healthy_panic_threshold": {"value": 50}})");
  p.Start();
  p.Kill(0);
  while (!Ejected(&p)) p.Ask();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(p.Ask().server, "b");
  EXPECT_EQ(p.Counter("lb_healthy_panic"), 0u);
}

// --- circuit breakers

std::string Limits(std::string_view thresholds) {
  return R"("circuit_breakers": {"thresholds": [{)" + std::string(thresholds) + "}]}";
}

TEST(CircuitBreakerTest, ConnectionsBeyondTheLimitWaitInLine) {
  Plain p(Limits(R"("max_connections": 1)"), false, "", 1);
  p.apps[0]->delay = 100ms;
  p.Start();
  std::vector<std::shared_ptr<Lab::Result>> results;
  for (int i = 0; i < 5; ++i) results.push_back(p.Begin());
  p.lab.RunFor(2s);
  Duration longest{};
  for (const auto& r : results) {
    EXPECT_EQ(r->record.code, 200);
    longest = std::max(longest, r->record.latency);
  }
  EXPECT_GE(longest, 500ms) << "one after the other";
  EXPECT_EQ(p.Counter("upstream_cx_total"), 1u);
}

TEST(CircuitBreakerTest, WaitingRequestsGetANewConnectionWhenTheOnlyOneCloses) {
  Plain p(Limits(R"("max_connections": 1)") + R"(, "max_requests_per_connection": 1)", false, "", 1);
  p.apps[0]->delay = 100ms;
  p.Start();
  std::vector<std::shared_ptr<Lab::Result>> results;
  for (int i = 0; i < 5; ++i) results.push_back(p.Begin());
  p.lab.RunFor(2s);
  for (const auto& r : results) EXPECT_EQ(r->record.code, 200);
  EXPECT_EQ(p.Counter("upstream_cx_total"), 5u);
}

TEST(CircuitBreakerTest, PendingRequestsBeyondTheLimitOverflow) {
  Plain p(Limits(R"("max_connections": 1, "max_pending_requests": 2)"), false, "", 1);
  p.apps[0]->delay = 100ms;
  p.Start();
  p.Ask();  // the connection stands
  std::vector<std::shared_ptr<Lab::Result>> results;
  for (int i = 0; i < 6; ++i) results.push_back(p.Begin());
  p.lab.RunFor(2s);
  int overflow = 0;
  for (const auto& r : results) {
    if (r->record.code == 200) continue;
    ++overflow;
    EXPECT_EQ(r->record.code, 503);
    EXPECT_EQ(r->flags, "UO");
    EXPECT_EQ(r->details, "upstream_reset_before_response_started{overflow}");
    EXPECT_EQ(r->body, "upstream connect error or disconnect/reset before headers. reset reason: overflow");
  }
  EXPECT_EQ(overflow, 3) << "one served, two waiting";
  EXPECT_EQ(p.Counter("upstream_rq_pending_overflow"), 3u);
}

TEST(CircuitBreakerTest, RetriesBeyondTheLimitAreNotMade) {
  Plain p(Limits(R"("max_retries": 0)"), /*retry=*/true);
  p.apps[0]->code = p.apps[1]->code = 503;
  p.Start();
  const Lab::Result r = p.Ask();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.flags, "UO");
  EXPECT_EQ(r.record.attempts, 1u);
  EXPECT_EQ(p.Counter("upstream_rq_retry_overflow"), 1u);
}

TEST(CircuitBreakerTest, ABudgetOfRetriesTakesThePlaceOfTheirLimit) {
  Plain none(
      Limits(R"("max_retries": 9, "retry_budget": {"budget_percent": {"value": 0}, "min_retry_concurrency": 0})"),
      /*retry=*/true);
  none.apps[0]->code = none.apps[1]->code = 503;
  none.Start();
  EXPECT_EQ(none.Ask().record.attempts, 1u);
  EXPECT_EQ(none.Counter("upstream_rq_retry_overflow"), 1u);
  Plain some(Limits(R"("max_retries": 0, "retry_budget": {"budget_percent": {"value": 20}})"), /*retry=*/true);
  some.apps[0]->code = some.apps[1]->code = 503;
  some.Start();
  EXPECT_GT(some.Ask().record.attempts, 1u) << "three may be under way at least";
}

// --- timeouts

TEST(TimeoutTest, RouteTimeoutAnswersGatewayTimeout) {
  Plain p("", false, R"("max_stream_duration": {})", 1);
  p.client.ads->world[XdsType::kLds]["l"] =
      HttpListenerWith("l", kFront, R"([{"name": "v", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "c", "timeout": "2s"}}]}])");
  p.apps[0]->delay = 5s;
  p.Start();
  const Lab::Result r = p.Ask();
  EXPECT_EQ(r.record.code, 504);
  EXPECT_EQ(r.flags, "UT");
  EXPECT_EQ(r.details, "response_timeout");
  EXPECT_EQ(r.body, "upstream request timeout");
  EXPECT_EQ(r.record.latency, 2s);
  EXPECT_EQ(p.Counter("upstream_rq_timeout"), 1u);
}

TEST(TimeoutTest, DefaultRouteTimeoutIsFifteenSeconds) {
  Plain p("", false, "", 1);
  p.client.ads->world[XdsType::kLds]["l"] =
      HttpListenerWith("l", kFront, R"([{"name": "v", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "c"}}]}])");
  p.apps[0]->delay = 50s;
  p.Start();
  EXPECT_EQ(p.Ask().record.latency, 15s);
}

TEST(TimeoutTest, PerTryTimeoutIsRetriedWithRetryOnReset) {
  Plain p("", false, "", 2);
  p.client.ads->world[XdsType::kLds]["l"] = HttpListenerWith(
      "l", kFront, R"([{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c",
        "timeout": "0s", "retry_policy": {"retry_on": "5xx", "num_retries": 1, "per_try_timeout": "1s"}}}]}])");
  p.apps[0]->delay = 5s;
  p.Start();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.Ask().server, "b");
  p.apps[1]->delay = 5s;
  const Lab::Result r = p.Ask();
  EXPECT_EQ(r.record.code, 504);
  EXPECT_EQ(r.flags, "URX,UT");
  EXPECT_EQ(r.details, "upstream_per_try_timeout");
}

// --- routes

TEST(RouteTest, NoRouteIsNotFound) {
  Plain p;
  p.client.ads->world[XdsType::kLds]["l"] =
      HttpListenerWith("l", kFront, R"([{"name": "v", "domains": ["other"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "c"}}]}])");
  p.Start();
  const Lab::Result r = p.Ask();
  EXPECT_EQ(r.record.code, 404);
  EXPECT_EQ(r.flags, "NR");
  EXPECT_EQ(r.details, "route_not_found");
  EXPECT_EQ(r.body, "");
}

TEST(RouteTest, RouteToAnUnknownClusterIsUnavailableWithoutABody) {
  Plain p;
  // Inline routes to unknown clusters are refused (validate_clusters), those of RDS are not.
  p.client.ads->world[XdsType::kLds]["l"] = HttpListener("l", kFront, "r");
  p.client.ads->world[XdsType::kRds]["r"] = RoutesTo("r", "*", "nowhere", false);
  p.Start();
  const Lab::Result r = p.Ask();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.flags, "NC");
  EXPECT_EQ(r.details, "cluster_not_found");
  EXPECT_EQ(r.body, "");
}

TEST(RouteTest, VirtualHostsMatchByExactThenSuffixThenPrefixThenAny) {
  Plain p;
  const auto host = [](std::string_view name, std::string_view domain) {
    return std::string(R"({"name": ")") + std::string(name) + R"(", "domains": [")" + std::string(domain) +
           R"("], "routes": [{"match": {"prefix": "/"}, "direct_response": {"status": 200}}]})";
  };
  p.client.ads->world[XdsType::kLds]["l"] =
      HttpListenerWith("l", kFront,
                       "[" + host("any", "*") + "," + host("short", "*.com") + "," + host("long", "*.foo.com") + "," +
                           host("prefix", "www.*") + "," + host("exact", "www.foo.com") + "]");
  p.Start();
  const auto asked = [&](const char* authority) {
    RequestSpec spec;
    spec.authority = authority;
    return p.lab.Ask(p.client, kFront, spec).virtual_host;
  };
  EXPECT_EQ(asked("www.foo.com"), "exact");
  EXPECT_EQ(asked("WWW.Foo.Com"), "exact");
  EXPECT_EQ(asked("www.foo.com:80"), "prefix") << "ports are not ignored unless told to";
  EXPECT_EQ(asked("a.foo.com"), "long");
  EXPECT_EQ(asked("foo.com"), "short");
  EXPECT_EQ(asked("www.bar.org"), "prefix");
  EXPECT_EQ(asked("bar.org"), "any");
}

TEST(RouteTest, TheFirstMatchingRouteWins) {
  Plain p;
  p.client.ads->world[XdsType::kLds]["l"] =
      HttpListenerWith("l", kFront, R"([{"name": "v", "domains": ["*"], "routes": [
        {"name": "header", "match": {"prefix": "/", "headers": [{"name": "who", "string_match": {"exact": "me"}}]},
         "direct_response": {"status": 200}},
        {"name": "exact", "match": {"path": "/a"}, "direct_response": {"status": 200}},
        {"name": "prefix", "match": {"prefix": "/a"}, "direct_response": {"status": 200}},
        {"name": "segment", "match": {"path_separated_prefix": "/seg"}, "direct_response": {"status": 200}},
        {"name": "regex", "match": {"safe_regex": {"regex": "/r[0-9]+"}}, "direct_response": {"status": 200}}]}])");
  p.Start();
  const auto asked = [&](const char* path, bool me = false) {
    RequestSpec spec;
    spec.authority = "x";
    spec.path = path;
    if (me) spec.headers.emplace_back("who", "me");
    return p.lab.Ask(p.client, kFront, spec).route;
  };
  EXPECT_EQ(asked("/a", true), "header");
  EXPECT_EQ(asked("/a"), "exact");
  EXPECT_EQ(asked("/a?x=1"), "exact");
  EXPECT_EQ(asked("/ab"), "prefix");
  EXPECT_EQ(asked("/seg/x"), "segment");
  EXPECT_EQ(asked("/segment"), "");
  EXPECT_EQ(asked("/r12"), "regex");
  EXPECT_EQ(asked("/r12x"), "") << "the whole path must match";
}

TEST(RouteTest, WeightedClustersShareByWeight) {
  Plain p;
  auto& world = p.client.ads->world;
  world[XdsType::kCds]["one"] = StaticCluster("one", {{"10.1.0.1:80"}});
  world[XdsType::kCds]["two"] = StaticCluster("two", {{"10.1.0.2:80"}});
  world[XdsType::kLds]["l"] = HttpListenerWith("l", kFront, R"([{"name": "v", "domains": ["*"], "routes": [
    {"match": {"prefix": "/"}, "route": {"weighted_clusters": {"clusters": [
      {"name": "one", "weight": 20}, {"name": "two", "weight": 80}]}}}]}])");
  p.Start();
  int one = 0;
  for (int i = 0; i < 1000; ++i) one += p.Ask().server == "a";
  ExpectBinomial(one, 1000, 0.2);
}

TEST(RouteTest, FaultsAreInjectedAndFlagged) {
  Plain p;
  const std::string filter = R"({"name": "envoy.filters.http.fault", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault",
    "delay": {"fixed_delay": "2s", "percentage": {"numerator": 100}},
    "abort": {"http_status": 418, "percentage": {"numerator": 30}}}},)";
  p.client.ads->world[XdsType::kLds]["l"] =
      HttpListenerWith("l", kFront, R"([{"name": "v", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "c"}}]}])",
                       filter);
  p.Start();
  int aborted = 0;
  for (int i = 0; i < 400; ++i) {
    const Lab::Result r = p.Ask();
    EXPECT_GE(r.record.latency, 2s);
    if (r.record.code == 200) {
      EXPECT_EQ(r.flags, "DI");
      continue;
    }
    ++aborted;
    EXPECT_EQ(r.record.code, 418);
    EXPECT_EQ(r.flags, "DI,FI");
    EXPECT_EQ(r.details, "fault_filter_abort");
    EXPECT_EQ(r.body, "fault filter abort");
  }
  ExpectBinomial(aborted, 400, 0.3);
}

TEST(RouteTest, ShareOfFaultsThatARequestAsksForIsOfTheConfigurationsDenominatorAndNoMoreThanItsOwn) {
  const auto aborted = [&](const char* share) {
    Plain p;
    p.client.ads->world[XdsType::kLds]["l"] =
        HttpListenerWith("l", kFront, R"([{"name": "v", "domains": ["*"], "routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "c"}}]}])",
                         R"({"name": "envoy.filters.http.fault", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault",
    "abort": {"header_abort": {}, "percentage": {"numerator": 500000, "denominator": "MILLION"}}}},)");
    p.Start();
    p.spec.headers = {{"x-envoy-fault-abort-request", "418"}, {"x-envoy-fault-abort-request-percentage", share}};
    int out = 0;
    for (int i = 0; i < 400; ++i) out += p.Ask().record.code == 418;
    return out;
  };
  ExpectBinomial(aborted("100000"), 400, 0.1);
  ExpectBinomial(aborted("4294967295"), 400, 0.5);
  EXPECT_EQ(aborted("0"), 0);
}

TEST(RouteTest, MirroredRequestsAreAnsweredByTheirOriginal) {
  Plain p("", false, "", 1);
  p.lab.AddApp("shadow", "10.1.0.9", 80).code = 500;
  auto& world = p.client.ads->world;
  world[XdsType::kCds]["shadow"] = StaticCluster("shadow", {{"10.1.0.9:80"}});
  world[XdsType::kLds]["l"] = HttpListenerWith("l", kFront, R"([{"name": "v", "domains": ["*"], "routes": [
    {"match": {"prefix": "/"}, "route": {"cluster": "c", "request_mirror_policies": [{"cluster": "shadow"}]}}]}])");
  p.Start();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(p.Ask().record.code, 200);
  p.lab.RunFor(100ms);
  EXPECT_EQ(p.client.envoy->counter("cluster.shadow.upstream_rq_total"), 20u);
}

// --- changes of listeners, drain

TEST(DrainTest, RemovedListenerRefusesNewConnectionsAndFinishesRequests) {
  Plain p("", false, "", 1);
  p.client.ads->world[XdsType::kLds].erase("virtualOutbound");
  p.lab.network.pod("10.0.0.1").redirect = false;
  p.Start();
  Lab::Proxy& outside = p.lab.AddProxy("outside", "10.3.0.1");
  p.lab.network.pod("10.3.0.1").envoy = nullptr;
  const std::string bound = R"("bind_to_port": false)";
  p.client.ads->world[XdsType::kLds]["gw"] =
      Bytes("Listener", R"({"name": "gw", "address": {"socket_address": {"address": "0.0.0.0", "port_value": 8080}},
        "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": {
          "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
          "stat_prefix": "gw", "route_config": {"name": "r", "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "route": {"cluster": "c", "timeout": "0s"}}]}]},
          "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]})");
  p.client.ads->Push(XdsType::kLds);
  p.lab.RunFor(10ms);
  EXPECT_EQ(p.lab.Ask(outside, "10.0.0.1:8080", p.spec).record.code, 200);
  p.apps[0]->delay = 2s;
  const auto flight = p.lab.Begin(outside, "10.0.0.1:8080", p.spec);
  p.lab.RunFor(100ms);
  p.client.ads->world[XdsType::kLds].erase("gw");
  p.client.ads->Push(XdsType::kLds);
  p.lab.RunFor(10ms);
  const Lab::Result refused = p.lab.Ask(outside, "10.0.0.1:8080", p.spec, /*keep_alive=*/false);
  EXPECT_EQ(refused.record.code, 0);
  EXPECT_EQ(refused.details, "connection refused");
  p.lab.RunFor(3s);
  EXPECT_EQ(flight->record.code, 200);
  // Its answer closed the connection: the next request needs a new one.
  EXPECT_EQ(p.lab.Ask(outside, "10.0.0.1:8080", p.spec).details, "connection refused");
}

TEST(DrainTest, DrainingEnvoyAnswersAndClosesButRefusesNobody) {
  Mesh mesh;
  mesh.Start();
  for (int i = 0; i < 20; ++i) mesh.Ask();
  const uint64_t connections = mesh.ClientCounter("upstream_cx_total");
  mesh.v1->envoy->Drain();
  EXPECT_TRUE(mesh.v1->envoy->draining());
  for (int i = 0; i < 40; ++i) EXPECT_EQ(mesh.Ask().record.code, 200);
  EXPECT_GT(mesh.ClientCounter("upstream_cx_total"), connections + 5) << "each answer of v1 closes its connection";
}

TEST(DrainTest, UnrelatedListenerChangeLeavesConnectionsAlone) {
  Plain p("", false, "", 1);
  p.Start();
  p.Ask();
  p.apps[0]->delay = 5s;
  const auto flight = p.Begin();
  p.lab.RunFor(10ms);
  p.client.ads->world[XdsType::kLds]["other"] = HttpListenerTo("other", "10.9.0.2:80", "c", false);
  p.client.ads->Push(XdsType::kLds);
  p.lab.RunFor(100s);
  EXPECT_EQ(flight->record.code, 200);
  EXPECT_LT(flight->record.latency, 6s);
}

TEST(LifeTest, ARestartedEnvoyBeginsAnew) {
  Plain p("", false, "", 1);
  p.Start();
  EXPECT_EQ(p.Ask().record.code, 200);
  p.client.envoy->Stop(Envoy::StopKind::kKill);
  p.lab.RunFor(1ms);
  EXPECT_EQ(p.Ask().details, "connection refused");
  p.client.ads->log.clear();
  p.client.envoy->Start();
  p.lab.RunFor(10ms);
  ASSERT_FALSE(p.client.ads->log.empty());
  EXPECT_EQ(p.client.ads->log[0].ToString(), "CDS v='' n='' [] node");
  EXPECT_EQ(p.Ask().record.code, 200);
}

TEST(LifeTest, DataPlaneOutlivesTheControlPlane) {
  Plain p("", false, "", 1);
  p.Start();
  p.client.ads->refusing = true;
  p.client.ads->Break();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(p.Ask().record.code, 200);
    p.lab.RunFor(1min);
  }
}

// --- DNS clusters

TEST(DnsTest, StrictDnsBalancesOverAllAddressesAndFollowsThem) {
  Plain p;
  p.lab.dns.records["web.example"] = {*IpAddress::Parse("10.1.0.1"), *IpAddress::Parse("10.1.0.2")};
  auto& world = p.client.ads->world;
  world[XdsType::kCds]["c"] = Bytes("Cluster", R"({"name": "c", "type": "STRICT_DNS", "connect_timeout": "1s",
    "dns_refresh_rate": "5s", "load_assignment": {"cluster_name": "c", "endpoints": [{"lb_endpoints": [{"endpoint": {
      "address": {"socket_address": {"address": "web.example", "port_value": 80}}}}]}]}})");
  p.client.ads->world[XdsType::kEds].clear();
  p.Start();
  std::map<std::string, int> servers;
  for (int i = 0; i < 20; ++i) ++servers[p.Ask().server];
  EXPECT_EQ(servers["a"], 10);
  EXPECT_EQ(servers["b"], 10);
  p.lab.dns.records["web.example"] = {*IpAddress::Parse("10.1.0.2")};
  p.lab.RunFor(6s);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(p.Ask().server, "b");
}

}  // namespace
}  // namespace wavetank::envoysim::lab
