#include "core/gen/cds/cluster_policy.h"

#include "core/profile/changes.h"

#include "envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"
#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

using envoy_cluster::Cluster;
using Simple = config::LoadBalancerSettings::Simple;
using H2 = config::ConnectionPoolSettings::Http::H2UpgradePolicy;

Cluster Finished(const ClusterDraft& draft) {
  Cluster out;
  EXPECT_TRUE(out.ParseFromString(std::string(*draft.Finish().bytes)));
  return out;
}

constexpr uint32_t kNoLimit = 4294967295u;

TEST(ClusterPolicy, WithoutSettingsNothingIsLimited) {
  ClusterDraft draft;
  ApplyConnectionPool(config::MeshConfig{}, nullptr, Profile(), draft);
  const Cluster cluster = Finished(draft);
  const auto& t = cluster.circuit_breakers().thresholds(0);
  EXPECT_EQ(t.max_connections().value(), kNoLimit);
  EXPECT_EQ(t.max_pending_requests().value(), kNoLimit);
  EXPECT_EQ(t.max_requests().value(), kNoLimit);
  EXPECT_EQ(t.max_retries().value(), kNoLimit);
  EXPECT_TRUE(t.track_remaining());
  EXPECT_EQ(draft.cluster.connect_timeout().seconds(), 10);
  EXPECT_EQ(cluster.typed_extension_protocol_options_size(), 0);
}

TEST(ClusterPolicy, KeepaliveOfTheRuleOverridesTheMeshsFieldByField) {
  config::MeshConfig mesh;
  mesh.tcp_keepalive.emplace().probes = 3;
  mesh.tcp_keepalive->time = std::chrono::seconds(30);
  config::ConnectionPoolSettings pool;
  pool.tcp = config::ConnectionPoolSettings::Tcp();
  pool.tcp->tcp_keepalive.emplace().time = std::chrono::milliseconds(2500);
  ClusterDraft draft;
  ApplyConnectionPool(mesh, &pool, Profile(), draft);
  const auto& keepalive = draft.cluster.upstream_connection_options().tcp_keepalive();
  EXPECT_EQ(keepalive.keepalive_probes().value(), 3u);
  EXPECT_EQ(keepalive.keepalive_time().value(), 2u);
}

TEST(ClusterPolicy, ConnectionLimitsThatNeedHttpOptionsNameAProtocol) {
  config::ConnectionPoolSettings pool;
  pool.http = config::ConnectionPoolSettings::Http();
  pool.http->max_requests_per_connection = 5;
  ClusterDraft draft;
  ApplyConnectionPool(config::MeshConfig{}, &pool, Profile(), draft);
  const Cluster cluster = Finished(draft);
  ::envoy::extensions::upstreams::http::v3::HttpProtocolOptions options;
  ASSERT_TRUE(cluster.typed_extension_protocol_options()
                  .at("envoy.extensions.upstreams.http.v3.HttpProtocolOptions")
                  .UnpackTo(&options));
  EXPECT_EQ(options.common_http_protocol_options().max_requests_per_connection().value(), 5u);
  EXPECT_TRUE(options.explicit_http_config().has_http_protocol_options());
}

TEST(ClusterPolicy, MeshUpgradesOnlyHttpPortsARuleAnyPort) {
  config::MeshConfig mesh;
  mesh.h2_upgrade_policy = H2::kUpgrade;
  EXPECT_TRUE(ShouldUpgradeToH2(mesh, nullptr, {"http", 80, Protocol::kHttp}, Profile()));
  EXPECT_FALSE(ShouldUpgradeToH2(mesh, nullptr, {"x", 80, Protocol::kUnsupported}, Profile()));
  config::ConnectionPoolSettings pool;
  pool.http = config::ConnectionPoolSettings::Http();
  pool.http->h2_upgrade_policy = H2::kUpgrade;
  EXPECT_TRUE(ShouldUpgradeToH2(config::MeshConfig{}, &pool, {"tcp", 80, Protocol::kTcp}, Profile()));
  pool.http->h2_upgrade_policy = H2::kDoNotUpgrade;
  EXPECT_FALSE(ShouldUpgradeToH2(mesh, &pool, {"http", 80, Protocol::kHttp}, Profile()));
}

TEST(ClusterPolicy, OutlierDetectionEnforcesOnlyWhatIsNotZero) {
  config::OutlierDetection outlier;
  outlier.consecutive_5xx_errors = 0;
  outlier.consecutive_gateway_errors = 3;
  ClusterDraft draft;
  ApplyOutlierDetection(&outlier, draft);
  const auto& out = draft.cluster.outlier_detection();
  EXPECT_TRUE(out.has_consecutive_5xx());
  EXPECT_EQ(out.enforcing_consecutive_5xx().value(), 0u);
  EXPECT_EQ(out.enforcing_consecutive_gateway_failure().value(), 100u);
  EXPECT_EQ(out.enforcing_success_rate().value(), 0u);
  EXPECT_TRUE(draft.cluster.common_lb_config().has_healthy_panic_threshold());
  EXPECT_EQ(draft.cluster.common_lb_config().healthy_panic_threshold().value(), 0);
}

// istiod: cluster.go, defaultLBAlgorithm
TEST(ClusterPolicy, WhereNothingIsSaidRoundRobinIsIstiodsIfItIsToldSo) {
  config::LoadBalancerSettings lb;
  for (const auto& [simple, policy] : {std::pair(Simple::kUnspecified, Cluster::ROUND_ROBIN),
                                       std::pair(Simple::kLeastRequest, Cluster::LEAST_REQUEST)}) {
    lb.simple = simple;
    ClusterDraft draft;
    ApplyLoadBalancer(config::MeshConfig{}, &lb, Service(), {}, {}, Profile(), /*round_robin=*/true, draft);
    EXPECT_EQ(draft.cluster.lb_policy(), policy);
  }
}

TEST(ClusterPolicy, PassthroughGoesToTheOriginalDestination) {
  config::LoadBalancerSettings lb;
  lb.simple = Simple::kPassthrough;
  ClusterDraft draft;
  draft.cluster.set_type(Cluster::EDS);
  ApplyLoadBalancer(config::MeshConfig{}, &lb, Service(), {}, {}, Profile(), false, draft);
  EXPECT_EQ(draft.cluster.type(), Cluster::ORIGINAL_DST);
  EXPECT_EQ(draft.cluster.lb_policy(), Cluster::CLUSTER_PROVIDED);
}

TEST(ClusterPolicy, DefaultIsLeastRequestWithTheRulesWarmup) {
  config::LoadBalancerSettings lb;
  lb.warmup_duration_secs = std::chrono::seconds(45);
  ClusterDraft draft;
  draft.cluster.set_type(Cluster::EDS);
  ApplyLoadBalancer(config::MeshConfig{}, &lb, Service(), {}, {}, Profile(), false, draft);
  EXPECT_EQ(draft.cluster.lb_policy(), Cluster::LEAST_REQUEST);
  EXPECT_EQ(draft.cluster.least_request_lb_config().slow_start_config().slow_start_window().seconds(), 45);
}

Profile With(std::initializer_list<Change> changes) {
  Profile out;
  for (const Change change : changes) out.Set(change);
  return out;
}

// istiod: cluster.go, dnsWrappedLocalityLbEndpoints. Where there are several localities, 1.30 panics.
TEST(ClusterPolicy, FailoverPriorityOrdersResolvedEndpointsOfOneLocalitySinceTheReleaseThatDoes) {
  const Labels near = {{"zone", "a"}}, far = {{"zone", "b"}};
  const std::string first = "first.example.com", second = "second.example.com";
  config::LoadBalancerSettings lb;
  lb.locality_lb_setting.emplace().failover_priority = {"zone"};
  const auto priorities = [&](const Profile& profile, bool two_localities) {
    ClusterDraft draft;
    draft.cluster.mutable_outlier_detection();
    draft.endpoints = std::make_unique<InlineEndpoints>();
    LoadAssignment& assignment = draft.endpoints->assignment;
    assignment.shapes = {{"", &far}, {"", &near}};
    const LbEndpoint a{&first, 80, 1, 0, 0}, b{&second, 80, 1, 1, 0};
    if (two_localities) {
      assignment.localities = {{"r1", 1, 0, {a}}, {"r2", 1, 0, {b}}};
    } else {
      assignment.localities = {{"r1", 2, 0, {a, b}}};
    }
    ApplyLoadBalancer(config::MeshConfig{}, &lb, Service(), {}, near, profile, false, draft);
    std::string out;
    for (const LocalityLbEndpoints& group : assignment.localities) {
      for (const LbEndpoint& e : group.endpoints) out += *e.address + " " + std::to_string(group.priority) + ", ";
    }
    return out;
  };
  EXPECT_EQ(priorities(Profile(), false), "first.example.com 0, second.example.com 0, ");
  const Profile later = With({Change::kDnsFailoverPriority});
  EXPECT_EQ(priorities(later, false), "second.example.com 0, first.example.com 1, ");
  EXPECT_EQ(priorities(later, true), "first.example.com 0, second.example.com 0, ");
}

TEST(ClusterPolicy, WarmupHasAShapeSinceTheReleaseThatReadsIt) {
  config::LoadBalancerSettings lb;
  lb.simple = Simple::kRoundRobin;
  lb.warmup_duration_secs = std::chrono::seconds(45);
  lb.warmup.emplace().duration = std::chrono::seconds(30);
  lb.warmup->aggression = 1.5;
  const auto slow_start = [&](const Profile& profile) {
    ClusterDraft draft;
    ApplyLoadBalancer(config::MeshConfig{}, &lb, Service(), {}, {}, profile, false, draft);
    return draft.cluster.round_robin_lb_config().slow_start_config();
  };
  const auto shaped = slow_start(With({Change::kWarmupShape}));
  EXPECT_EQ(shaped.slow_start_window().seconds(), 30);
  EXPECT_EQ(shaped.aggression().default_value(), 1.5);
  EXPECT_EQ(shaped.min_weight_percent().value(), 10);
  const auto before = slow_start(Profile());
  EXPECT_EQ(before.slow_start_window().seconds(), 45);
  EXPECT_FALSE(before.has_aggression());
}

TEST(ClusterPolicy, RetriesMayBeAShareOfTheRequestsUnderWay) {
  const config::RetryBudget budget;  // says nothing
  const auto of = [&](const Profile& profile) {
    ClusterDraft draft;
    ApplyConnectionPool(config::MeshConfig{}, nullptr, profile, draft, &budget);
    return Finished(draft).circuit_breakers().thresholds(0);
  };
  EXPECT_FALSE(of(Profile()).has_retry_budget());
  EXPECT_EQ(of(With({Change::kRetryBudgets})).retry_budget().budget_percent().value(), 0.2);
  const auto today = of(With({Change::kRetryBudgets, Change::kRetryBudgetsInherited}));
  EXPECT_EQ(today.retry_budget().budget_percent().value(), 20);
  EXPECT_EQ(today.retry_budget().min_retry_concurrency().value(), 3u);
  EXPECT_EQ(today.max_retries().value(), kNoLimit);
}

TEST(ClusterPolicy, IdleTimeOfTcpCountsWhereHttpSaysNone) {
  config::ConnectionPoolSettings pool;
  pool.tcp = config::ConnectionPoolSettings::Tcp();
  pool.tcp->idle_timeout = std::chrono::seconds(90);
  const auto idle = [&](const Profile& profile) {
    ClusterDraft draft;
    ApplyConnectionPool(config::MeshConfig{}, &pool, profile, draft);
    return draft.common_http == nullptr ? 0 : draft.common_http->idle_timeout().seconds();
  };
  EXPECT_EQ(idle(Profile()), 0);
  EXPECT_EQ(idle(With({Change::kTcpIdleTimeout})), 90);
  pool.http = config::ConnectionPoolSettings::Http();
  pool.http->idle_timeout = std::chrono::seconds(20);
  EXPECT_EQ(idle(With({Change::kTcpIdleTimeout})), 20);
}

TEST(ClusterPolicy, StreamsAreLimitedOnHttp2AloneAndNotWhereTheClientsProtocolIsKept) {
  config::ConnectionPoolSettings pool;
  pool.http = config::ConnectionPoolSettings::Http();
  pool.http->max_concurrent_streams = 50;
  const auto streams = [&](const Profile& profile, ClusterDraft::UpstreamProtocol protocol) {
    ClusterDraft draft;
    draft.upstream_protocol = protocol;
    ApplyConnectionPool(config::MeshConfig{}, &pool, profile, draft);
    ::envoy::extensions::upstreams::http::v3::HttpProtocolOptions options;
    const Cluster cluster = Finished(draft);
    for (const auto& [name, any] : cluster.typed_extension_protocol_options()) EXPECT_TRUE(any.UnpackTo(&options));
    return options.explicit_http_config().http2_protocol_options().max_concurrent_streams().value();
  };
  const Profile today = With({Change::kConcurrentStreams});
  EXPECT_EQ(streams(today, ClusterDraft::UpstreamProtocol::kHttp2), 50u);
  EXPECT_EQ(streams(today, ClusterDraft::UpstreamProtocol::kNone), 0u);
  EXPECT_EQ(streams(Profile(), ClusterDraft::UpstreamProtocol::kHttp2), 0u);
  pool.http->use_client_protocol = true;
  EXPECT_EQ(streams(today, ClusterDraft::UpstreamProtocol::kHttp2), 0u);
}

TEST(ClusterPolicy, TheClientsProtocolKeepsFromTheUpgradeSinceTheReleaseThatSaysSo) {
  config::MeshConfig mesh;
  mesh.h2_upgrade_policy = H2::kUpgrade;
  config::ConnectionPoolSettings pool;
  pool.http = config::ConnectionPoolSettings::Http();
  pool.http->use_client_protocol = true;
  EXPECT_TRUE(ShouldUpgradeToH2(mesh, &pool, {"http", 80, Protocol::kHttp}, Profile()));
  EXPECT_FALSE(ShouldUpgradeToH2(mesh, &pool, {"http", 80, Protocol::kHttp}, With({Change::kClientProtocolKept})));
}

TEST(ClusterPolicy, ConsistentHashWithoutAlgorithmIsARingOf1024) {
  config::LoadBalancerSettings lb;
  lb.consistent_hash.emplace().use_source_ip = true;
  ClusterDraft draft;
  draft.cluster.set_type(Cluster::EDS);
  ApplyLoadBalancer(config::MeshConfig{}, &lb, Service(), {}, {}, Profile(), false, draft);
  EXPECT_EQ(draft.cluster.lb_policy(), Cluster::RING_HASH);
  EXPECT_EQ(draft.cluster.ring_hash_lb_config().minimum_ring_size().value(), 1024u);
  lb.consistent_hash->algorithm = config::ConsistentHash::Algorithm::kMaglev;
  ClusterDraft maglev;
  ApplyLoadBalancer(config::MeshConfig{}, &lb, Service(), {}, {}, Profile(), false, maglev);
  EXPECT_EQ(maglev.cluster.lb_policy(), Cluster::MAGLEV);
  EXPECT_FALSE(maglev.cluster.has_maglev_lb_config());
}

TEST(ClusterPolicy, AServiceThatPrefersWhatIsNearNeverPanicsAndFailsOverWithoutOutlierDetection) {
  Service service;
  Profile profile;
  profile.Set(Change::kLocalityWeightsWhenNeeded);
  ClusterDraft plain;
  plain.cluster.set_type(Cluster::EDS);
  ApplyLoadBalancer(config::MeshConfig{}, nullptr, service, {}, {}, profile, false, plain);
  EXPECT_FALSE(plain.cluster.common_lb_config().has_healthy_panic_threshold());
  EXPECT_FALSE(plain.cluster.common_lb_config().has_locality_weighted_lb_config());
  service.attributes.traffic_distribution = TrafficDistribution::kPreferSameZone;
  ClusterDraft near;
  near.cluster.set_type(Cluster::EDS);
  ApplyLoadBalancer(config::MeshConfig{}, nullptr, service, {}, {}, profile, false, near);
  ASSERT_TRUE(near.cluster.common_lb_config().has_healthy_panic_threshold());
  EXPECT_EQ(near.cluster.common_lb_config().healthy_panic_threshold().value(), 0);
  EXPECT_TRUE(near.cluster.common_lb_config().has_locality_weighted_lb_config());
}

}  // namespace
}  // namespace wavetank::pilot
