#include "core/gen/cds/cds.h"

#include <algorithm>

#include "core/gen/cds/istiod_panics.h"
#include "core/model/gateway.h"
#include "core/profile/changes.h"
#include "core/xds/cache.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::envoy::config::cluster::v3::Cluster;
using ::envoy::extensions::transport_sockets::tls::v3::UpstreamTlsContext;
using ::envoy::extensions::upstreams::http::v3::HttpProtocolOptions;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

const std::string kHost = GenWorld::Host("web");
const std::string kWeb = "outbound|80||" + kHost;
const std::string kWebSni = "outbound_.80_._." + kHost;
using ClientTlsMode = config::ClientTlsSettings::Mode;

class CdsTest : public testing::Test {
 protected:
  GeneratedResources Generate(NodeType type = NodeType::kSidecarProxy, Labels labels = {}) {
    push_ = world_.Push();
    Proxy proxy = GenWorld::Connect(*push_, "c1", type, std::move(labels));
    for (auto& change : proxy_changes_) change(proxy);
    return MakeCdsGenerator({&cache_})->Generate(proxy, watched_, GenWorld::Request(push_));
  }

  static std::vector<std::string> Names(const GeneratedResources& out) {
    std::vector<std::string> names;
    for (const Resource& r : out.resources) names.emplace_back(r.name);
    return names;
  }

  Cluster Get(const std::string& name, NodeType type = NodeType::kSidecarProxy) {
    const GeneratedResources out = Generate(type);
    const auto it =
        std::find_if(out.resources.begin(), out.resources.end(), [&](const Resource& r) { return r.name == name; });
    EXPECT_NE(it, out.resources.end()) << name;
    Cluster cluster;
    if (it != out.resources.end()) cluster.ParseFromString(std::string(*it->bytes));
    return cluster;
  }

  static UpstreamTlsContext TlsOf(const ::envoy::config::core::v3::TransportSocket& socket) {
    UpstreamTlsContext out;
    EXPECT_TRUE(socket.typed_config().UnpackTo(&out));
    return out;
  }

  static HttpProtocolOptions HttpOf(const Cluster& cluster) {
    HttpProtocolOptions out;
    const auto& options = cluster.typed_extension_protocol_options();
    const auto it = options.find("envoy.extensions.upstreams.http.v3.HttpProtocolOptions");
    EXPECT_NE(it, options.end());
    if (it != options.end()) it->second.UnpackTo(&out);
    return out;
  }

  config::DestinationRule& Rule() {
    rule_.host = kHost;
    return rule_;
  }
  void PutRule() { world_.AddRule("web", rule_); }

  // An instance of the proxy itself.
  void OwnInstance(const ServiceRef& service, uint32_t endpoint_port) {
    ServiceInstance instance{service, service->ports[0], GenWorld::Endpoint("10.0.0.9", GenWorld::Workload("c1"))};
    instance.endpoint.endpoint_port = endpoint_port;
    proxy_changes_.push_back([instance](Proxy& proxy) { proxy.service_instances.push_back(instance); });
  }

  GenWorld world_;
  PushContextRef push_;
  XdsCache cache_{false};
  WatchedResource watched_;
  config::DestinationRule rule_;
  std::vector<std::function<void(Proxy&)>> proxy_changes_;
};

TEST_F(CdsTest, SidecarHasOutboundThenFixedClusters) {
  world_.AddService("web");
  EXPECT_THAT(Names(Generate()),
              ElementsAre(kWeb, "BlackHoleCluster", "PassthroughCluster", "InboundPassthroughClusterIpv4"));
}

TEST_F(CdsTest, UdpPortsHaveNoCluster) {
  world_.AddService("web", "shop", {"dns", 53, Protocol::kUdp});
  EXPECT_THAT(Names(Generate()), Not(Contains("outbound|53||" + kHost)));
}

TEST_F(CdsTest, AnAliasHasNoCluster) {
  world_.AddService("web")->resolution = Resolution::kAlias;
  EXPECT_THAT(Names(Generate()), Not(Contains(kWeb)));
}

TEST_F(CdsTest, MeshServiceGetsMtlsForEndpointsThatTakeIt) {
  world_.AddService("web");
  world_.SetEndpoints("c1", "web", {GenWorld::Endpoint("10.1.0.1", GenWorld::Workload("c1"))});
  const Cluster cluster = Get(kWeb);
  EXPECT_EQ(cluster.type(), Cluster::EDS);
  EXPECT_EQ(cluster.eds_cluster_config().service_name(), kWeb);
  EXPECT_TRUE(cluster.eds_cluster_config().eds_config().has_initial_fetch_timeout());
  ASSERT_EQ(cluster.transport_socket_matches_size(), 2);
  EXPECT_EQ(cluster.transport_socket_matches(0).name(), "tlsMode-istio");
  EXPECT_EQ(cluster.transport_socket_matches(1).name(), "tlsMode-disabled");
  const auto tls = TlsOf(cluster.transport_socket_matches(0).transport_socket());
  EXPECT_EQ(tls.sni(), kWebSni);
  EXPECT_THAT(tls.common_tls_context().alpn_protocols(), ElementsAre("istio-peer-exchange", "istio"));
  const auto& validation = tls.common_tls_context().combined_validation_context();
  EXPECT_EQ(validation.validation_context_sds_secret_config().name(), "ROOTCA");
  EXPECT_EQ(tls.common_tls_context().tls_certificate_sds_secret_configs(0).name(), "default");
}

TEST_F(CdsTest, Http2PortSaysSoAndOffersIt) {
  world_.AddService("web", "shop", {"grpc", 80, Protocol::kGrpc});
  const Cluster cluster = Get(kWeb);
  EXPECT_TRUE(HttpOf(cluster).explicit_http_config().has_http2_protocol_options());
  EXPECT_THAT(TlsOf(cluster.transport_socket_matches(0).transport_socket()).common_tls_context().alpn_protocols(),
              ElementsAre("istio-peer-exchange", "istio", "h2"));
}

TEST_F(CdsTest, OnlySidecarsFollowTheClientsProtocolOnUnnamedPorts) {
  world_.AddService("web", "shop", {"x", 80, Protocol::kUnsupported});
  EXPECT_TRUE(HttpOf(Get(kWeb)).has_use_downstream_protocol_config());
  EXPECT_EQ(Get(kWeb, NodeType::kRouter).typed_extension_protocol_options_size(), 0);
}

TEST_F(CdsTest, AutomaticMtlsCanBeOffForTheMeshOrANamespace) {
  world_.AddService("web");
  config::PeerAuthentication policy;
  policy.mtls = config::PeerAuthentication::Mode::kDisable;
  world_.AddPeerAuthentication(policy);
  EXPECT_EQ(Get(kWeb).transport_socket_matches_size(), 0);
  policy.mtls = config::PeerAuthentication::Mode::kStrict;
  world_.AddPeerAuthentication(policy);
  EXPECT_EQ(Get(kWeb).transport_socket_matches_size(), 2);
  world_.mesh.enable_auto_mtls = false;
  EXPECT_EQ(Get(kWeb).transport_socket_matches_size(), 0);
}

TEST_F(CdsTest, RuleWithIstioMutualEncryptsForAllEndpoints) {
  world_.AddService("web");
  auto& tls = Rule().traffic_policy.emplace().tls.emplace();
  tls.mode = ClientTlsMode::kIstioMutual;
  tls.sni = "custom";
  tls.subject_alt_names = {"spiffe://x"};
  PutRule();
  const Cluster cluster = Get(kWeb);
  EXPECT_EQ(cluster.transport_socket_matches_size(), 0);
  EXPECT_EQ(TlsOf(cluster.transport_socket()).sni(), "custom");
  EXPECT_EQ(cluster.metadata().filter_metadata().at("istio").fields().at("config").string_value(),
            "/apis/networking.istio.io/v1alpha3/namespaces/shop/destination-rule/web");
}

TEST_F(CdsTest, RuleWithMutualNeedsACertificate) {
  world_.AddService("web");
  auto& tls = Rule().traffic_policy.emplace().tls.emplace();
  tls.mode = ClientTlsMode::kMutual;
  PutRule();
  EXPECT_FALSE(Get(kWeb).has_transport_socket());
  tls.client_certificate = "/c.pem";
  tls.private_key = "/k.pem";
  PutRule();
  const auto context = TlsOf(Get(kWeb).transport_socket()).common_tls_context();
  EXPECT_EQ(context.tls_certificate_sds_secret_configs(0).name(), "file-cert:/c.pem~/k.pem");
  EXPECT_TRUE(context.has_validation_context());
}

TEST_F(CdsTest, CredentialNameIsForGatewaysAndForRulesThatSelectWorkloads) {
  world_.AddService("web");
  auto& tls = Rule().traffic_policy.emplace().tls.emplace();
  tls.mode = ClientTlsMode::kSimple;
  tls.credential_name = "cred";
  PutRule();
  EXPECT_FALSE(Get(kWeb).has_transport_socket());
  EXPECT_EQ(TlsOf(Get(kWeb, NodeType::kRouter).transport_socket())
                .common_tls_context()
                .combined_validation_context()
                .validation_context_sds_secret_config()
                .name(),
            "kubernetes://cred-cacert");
}

TEST_F(CdsTest, SubsetsFollowTheirServiceWithTheirOwnPolicyAndSni) {
  world_.AddService("web");
  Rule().traffic_policy.emplace().outlier_detection.emplace();
  config::Subset subset;
  subset.name = "v1";
  subset.traffic_policy.emplace().load_balancer.emplace().simple = config::LoadBalancerSettings::Simple::kRoundRobin;
  rule_.subsets.push_back(subset);
  PutRule();
  const Cluster cluster = Get("outbound|80|v1|" + kHost);
  EXPECT_EQ(cluster.lb_policy(), Cluster::ROUND_ROBIN);
  EXPECT_TRUE(cluster.has_outlier_detection());
  EXPECT_EQ(TlsOf(cluster.transport_socket_matches(0).transport_socket()).sni(), "outbound_.80_.v1_." + kHost);
  EXPECT_EQ(cluster.metadata().filter_metadata().at("istio").fields().at("subset").string_value(), "v1");
}

TEST_F(CdsTest, AServiceWithoutResolutionMayLeadToAnotherPort) {
  const auto service = world_.AddService("web");
  service->resolution = Resolution::kPassthrough;
  service->attributes.passthrough_target_ports[static_cast<uint32_t>(service->ports[0].port)] = 8443;
  const std::string name = BuildSubsetKey(TrafficDirection::kOutbound, "", service->hostname, service->ports[0].port);
  EXPECT_EQ(Get(name).original_dst_lb_config().upstream_port_override().value(), 8443u);
}

TEST_F(CdsTest, HeadlessServiceGoesToTheOriginalDestinationAndGatewaysPickAnEndpoint) {
  world_.AddService("web")->resolution = Resolution::kPassthrough;
  const Cluster cluster = Get(kWeb);
  EXPECT_EQ(cluster.type(), Cluster::ORIGINAL_DST);
  EXPECT_EQ(cluster.lb_policy(), Cluster::CLUSTER_PROVIDED);
  EXPECT_FALSE(cluster.has_eds_cluster_config());
  EXPECT_EQ(Get(kWeb, NodeType::kRouter).type(), Cluster::EDS);
}

TEST_F(CdsTest, HeadlessServiceIsEncryptedOnlyIfAllInstancesHaveSidecars) {
  auto service = world_.AddService("web");
  service->resolution = Resolution::kPassthrough;
  EXPECT_FALSE(Get(kWeb).has_transport_socket());
  world_.discovery.instances = {{service, service->ports[0], GenWorld::Endpoint("10.1.0.1", GenWorld::Workload("c1"))}};
  EXPECT_TRUE(Get(kWeb).has_transport_socket());
  EndpointProfile plain = GenWorld::Workload("c1");
  plain.tls_mode = kDisabledTlsMode;
  world_.discovery.instances.push_back({service, service->ports[0], GenWorld::Endpoint("10.1.0.2", plain)});
  EXPECT_FALSE(Get(kWeb).has_transport_socket());
}

TEST_F(CdsTest, DnsServiceBringsItsEndpointsAndWithoutAnyDoesNotExist) {
  auto service = world_.AddService("web");
  service->resolution = Resolution::kDnsLb;
  service->mesh_external = true;
  EXPECT_THAT(Names(Generate()), Not(Contains(kWeb)));
  world_.discovery.instances = {
      {service, service->ports[0], GenWorld::Endpoint("a.example", GenWorld::Workload("c1", "r/z"), 3)}};
  const Cluster cluster = Get(kWeb);
  EXPECT_EQ(cluster.type(), Cluster::STRICT_DNS);
  EXPECT_EQ(cluster.dns_lookup_family(), Cluster::V4_ONLY);
  service->attributes.races_addresses = true;
  EXPECT_EQ(Get(kWeb).dns_lookup_family(), Cluster::ALL);
  ASSERT_EQ(cluster.load_assignment().endpoints_size(), 1);
  EXPECT_EQ(cluster.load_assignment().endpoints(0).load_balancing_weight().value(), 3u);
  EXPECT_EQ(cluster.load_assignment().endpoints(0).lb_endpoints(0).endpoint().address().socket_address().address(),
            "a.example");
}

// istiod: endpointshards.go, CopyEndpoints ("for historical reasons, we match on port number for CDS").
TEST_F(CdsTest, ClusterOfNamesTakesEndpointsOfServiceEntriesByTheNumberOfTheirPortSince122) {
  world_.AddService("web")->resolution = Resolution::kDnsLb;
  world_.profile.Set(Change::kDnsEndpointsInShards);
  EndpointProfile entry = GenWorld::Workload("c1");
  entry.service_port_name = "another-name";
  entry.entry_port = 80;
  world_.SetEndpoints("c1", "web", {GenWorld::Endpoint("a.example", entry)});
  EXPECT_THAT(Names(Generate()), Not(Contains(kWeb)));
  world_.profile.Set(Change::kDnsPortsByNumber);
  EXPECT_EQ(Get(kWeb).load_assignment().endpoints_size(), 1);
  entry.service_port_name = "http";
  entry.entry_port = 81;
  world_.SetEndpoints("c1", "web", {GenWorld::Endpoint("a.example", entry)});
  EXPECT_THAT(Names(Generate()), Not(Contains(kWeb)));
}

// A real istiod 1.30.3 ended with each of these (index out of range), and with nothing that is left out here.
TEST_F(CdsTest, PrioritiesByLabelsOfNamesInSeveralLocalitiesAreToldAsThePanicThatTheyAre) {
  auto service = world_.AddService("web");
  service->resolution = Resolution::kDnsLb;
  const auto put = [&](const std::string& second) {
    world_.SetEndpoints("c1", "web",
                        {GenWorld::Endpoint("a.example", GenWorld::Workload("c1", "r1/z1")),
                         GenWorld::Endpoint("b.example", GenWorld::Workload("c1", second))});
  };
  put("r2/z1");
  auto& policy = Rule().traffic_policy.emplace();
  policy.load_balancer.emplace().locality_lb_setting.emplace().failover_priority = {"topology.kubernetes.io/region"};
  PutRule();
  const auto told = [&] {
    push_ = world_.Push();
    return IstiodPanics(*push_).size();
  };
  world_.profile.Set(Change::kDnsFailoverPriority);
  EXPECT_EQ(told(), 0u) << "without outlier detection there are no priorities";
  policy.outlier_detection.emplace();
  PutRule();
  ASSERT_EQ(told(), 1u);
  EXPECT_EQ(IstiodPanics(*push_)[0].by, "DestinationRule shop/web");
  world_.profile.Set(Change::kDnsFailoverPriority, false);
  EXPECT_EQ(told(), 0u) << "of releases before it";
  world_.profile.Set(Change::kDnsFailoverPriority);
  put("r1/z1");
  EXPECT_EQ(told(), 0u) << "of one locality";
  put("r2/z1");
  service->resolution = Resolution::kClientSideLb;
  EXPECT_EQ(told(), 0u) << "of addresses";
  service->resolution = Resolution::kDnsRoundRobinLb;
  policy.load_balancer->locality_lb_setting->distribute.emplace_back();
  PutRule();
  EXPECT_EQ(told(), 0u) << "distribute comes first";
}

TEST_F(CdsTest, RouterWithAutoPassthroughServersHasClustersNamedBySni) {
  world_.AddService("web");
  config::Subset subset;
  subset.name = "v1";
  Rule().subsets.push_back(subset);
  PutRule();
  auto gateway = std::make_shared<config::TypedConfig<config::Gateway>>();
  gateway->meta.kind = config::Kind::kGateway;
  gateway->meta.name = "cross-network";
  gateway->meta.ns = "shop";
  gateway->spec.selector = {{"istio", "eastwest"}};
  config::Server server;
  server.has_port = true;
  server.port = {15443, "TLS", "tls", 0};
  server.hosts = {"*.local"};
  server.tls.emplace().mode = config::ServerTlsSettings::Mode::kAutoPassthrough;
  gateway->spec.servers.push_back(server);
  world_.configs.Put(config::GatewayRef(gateway));

  EXPECT_THAT(Names(Generate(NodeType::kRouter)), Not(Contains(kWebSni)));
  const auto out = Generate(NodeType::kRouter, {{"istio", "eastwest"}});
  EXPECT_THAT(Names(out),
              ElementsAre(kWeb, "outbound|80|v1|" + kHost, "BlackHoleCluster", kWebSni, "outbound_.80_.v1_." + kHost));
  Cluster sni;
  ASSERT_TRUE(sni.ParseFromString(std::string(*out.resources[3].bytes)));
  EXPECT_FALSE(sni.has_transport_socket());
  EXPECT_EQ(sni.transport_socket_matches_size(), 0);
  EXPECT_EQ(sni.eds_cluster_config().service_name(), kWebSni);
}

TEST_F(CdsTest, InboundClusterPerWorkloadPortNamesAllItsServices) {
  OwnInstance(world_.AddService("web"), 8080);
  OwnInstance(world_.AddService("web-canary"), 8080);
  OwnInstance(world_.AddService("admin"), 9090);
  const Cluster cluster = Get("inbound|8080||");
  EXPECT_EQ(cluster.type(), Cluster::ORIGINAL_DST);
  EXPECT_EQ(cluster.upstream_bind_config().source_address().address(), "127.0.0.6");
  EXPECT_EQ(cluster.metadata().filter_metadata().at("istio").fields().at("services").list_value().values_size(), 2);
  EXPECT_THAT(Names(Generate()), Contains("inbound|9090||"));
}

TEST_F(CdsTest, AnInboundClusterTellsNothingOfAServiceOutsideTheMeshByProfile) {
  auto outside = std::make_shared<Service>(*world_.AddService("web"));
  outside->mesh_external = true;
  OwnInstance(outside, 8080);
  OwnInstance(world_.AddService("web-canary"), 8080);
  const auto tells = [&] { return Get("inbound|8080||").metadata().filter_metadata().contains("istio"); };
  EXPECT_TRUE(tells());
  world_.profile.Set(Change::kExternalInboundUntold);
  EXPECT_FALSE(tells());
}

TEST_F(CdsTest, SidecarsIngressListenersTakeThePlaceOfServicePorts) {
  OwnInstance(world_.AddService("web"), 8080);
  auto sidecar = std::make_shared<config::TypedConfig<config::Sidecar>>();
  sidecar->meta.kind = config::Kind::kSidecar;
  sidecar->meta.name = "default";
  sidecar->meta.ns = "shop";
  const auto listen = [&](uint32_t port, const char* endpoint) {
    config::SidecarIngressListener listener;
    listener.port = {port, "HTTP", "http", 0};
    listener.default_endpoint = endpoint;
    sidecar->spec.ingress.push_back(listener);
  };
  listen(9080, "127.0.0.1:9999");
  listen(9081, "0.0.0.0:9999");
  listen(9082, "unix:///app.sock");
  listen(9083, "");
  listen(9084, "no port");
  world_.configs.Put(config::SidecarRef(sidecar));

  const std::vector<std::string> names = Names(Generate());
  EXPECT_THAT(names, Not(Contains("inbound|8080||")));
  EXPECT_THAT(names, Not(Contains("inbound|9084||")));
  const auto endpoint_of = [](const Cluster& cluster) {
    return cluster.load_assignment().endpoints(0).lb_endpoints(0).endpoint().address();
  };
  const Cluster local = Get("inbound|9080||");
  EXPECT_EQ(local.type(), Cluster::STATIC);
  EXPECT_EQ(endpoint_of(local).socket_address().address(), "127.0.0.1");
  EXPECT_EQ(endpoint_of(local).socket_address().port_value(), 9999u);
  EXPECT_FALSE(local.has_upstream_bind_config());
  const Cluster own_address = Get("inbound|9081||");
  EXPECT_EQ(endpoint_of(own_address).socket_address().address(), "10.0.0.9");
  EXPECT_TRUE(own_address.has_upstream_bind_config());
  EXPECT_EQ(endpoint_of(Get("inbound|9082||")).pipe().path(), "/app.sock");
  EXPECT_EQ(Get("inbound|9083||").type(), Cluster::ORIGINAL_DST);
}

TEST_F(CdsTest, CertificatesOfTheProxysMetadataReplaceTheWorkloadsOwn) {
  world_.AddService("web");
  proxy_changes_.push_back([](Proxy& proxy) {
    proxy.metadata.tls_client_cert_chain = "/m/cert.pem";
    proxy.metadata.tls_client_key = "/m/key.pem";
    proxy.metadata.tls_client_root_cert = "/m/root.pem";
  });
  const Cluster cluster = Get(kWeb);
  EXPECT_EQ(cluster.transport_socket_matches_size(), 0);
  const auto context = TlsOf(cluster.transport_socket());
  EXPECT_EQ(context.sni(), kWebSni);
  EXPECT_EQ(context.common_tls_context().tls_certificate_sds_secret_configs(0).name(),
            "file-cert:/m/cert.pem~/m/key.pem");
  EXPECT_EQ(context.common_tls_context().combined_validation_context().validation_context_sds_secret_config().name(),
            "file-root:/m/root.pem");
}

TEST_F(CdsTest, PersistentSessionsReachDrainingEndpoints) {
  auto service = world_.AddService("web");
  EXPECT_FALSE(Get(kWeb).common_lb_config().has_override_host_status());
  service->attributes.labels["istio.io/persistent-session"] = "cookie";
  EXPECT_THAT(Get(kWeb).common_lb_config().override_host_status().statuses(),
              Contains(::envoy::config::core::v3::DRAINING));
}

TEST_F(CdsTest, ConnectionLimitsOfARuleHoldOnTheServersSideToo) {
  OwnInstance(world_.AddService("web"), 8080);
  config::ConnectionPoolSettings::Tcp limits;
  limits.max_connections = 7;
  Rule().traffic_policy.emplace().connection_pool.emplace().tcp = limits;
  PutRule();
  const Cluster cluster = Get("inbound|8080||");
  EXPECT_EQ(cluster.circuit_breakers().thresholds(0).max_connections().value(), 7u);
  EXPECT_EQ(cluster.metadata().filter_metadata().at("istio").fields().count("config"), 1u);
}

TEST_F(CdsTest, WithoutInterceptionThereIsNoInboundCluster) {
  OwnInstance(world_.AddService("web"), 8080);
  proxy_changes_.push_back([](Proxy& proxy) { proxy.metadata.interception_mode = "NONE"; });
  EXPECT_THAT(Names(Generate()), Not(Contains("inbound|8080||")));
}

TEST_F(CdsTest, StockEnvoyIsSparedMetadataExchange) {
  world_.AddService("web");
  EXPECT_EQ(Get(kWeb).filters_size(), 1);
  world_.profile.Set(Change::kUpstreamEnvoy);
  EXPECT_EQ(Get(kWeb).filters_size(), 0);
}

TEST_F(CdsTest, StatNamePatternsNameServiceSubsetAndPort) {
  world_.AddService("web");
  world_.mesh.outbound_cluster_stat_name = "%SERVICE%_%SERVICE_FQDN%_%SERVICE_PORT%_%SERVICE_PORT_NAME%";
  EXPECT_EQ(Get(kWeb).alt_stat_name(), "web.shop_" + kHost + "_80_http");
}

TEST_F(CdsTest, OnlyFullPushesOfWhatMattersConcernClusters) {
  world_.AddService("web");
  push_ = world_.Push();
  const Proxy proxy = GenWorld::Connect(*push_, "c1");
  PushRequest request = GenWorld::Request(push_);
  const auto generator = MakeCdsGenerator({});
  request.configs_updated = {{ConfigKind::kGateway, "g", "shop"}};
  EXPECT_FALSE(generator->Generate(proxy, watched_, request).send);
  request.configs_updated.insert({ConfigKind::kDestinationRule, "d", "shop"});
  EXPECT_TRUE(generator->Generate(proxy, watched_, request).send);
  request.full = false;
  EXPECT_FALSE(generator->Generate(proxy, watched_, request).send);
}

TEST_F(CdsTest, DeltaForAServiceHasItsClustersAndRemovesThoseOfLostPorts) {
  world_.AddService("web");
  world_.AddService("api");
  push_ = world_.Push();
  const Proxy proxy = GenWorld::Connect(*push_, "c1");
  PushRequest request = GenWorld::Request(push_);
  request.configs_updated = {{ConfigKind::kServiceEntry, kHost, "shop"},
                             {ConfigKind::kServiceEntry, "gone.example", "shop"}};
  watched_.resource_names = std::vector<std::string>{kWeb, "outbound|81||" + kHost, "outbound|80||gone.example"};
  const auto out = MakeCdsGenerator({})->GenerateDeltas(proxy, watched_, request);
  EXPECT_TRUE(out.used_delta);
  EXPECT_THAT(Names(out), ElementsAre(kWeb, "BlackHoleCluster", "PassthroughCluster", "InboundPassthroughClusterIpv4"));
  EXPECT_THAT(out.removed, testing::UnorderedElementsAre("outbound|81||" + kHost, "outbound|80||gone.example"));
}

TEST_F(CdsTest, DeltasOfScopesTellServicesThatCameOrWentByNameByProfile) {
  world_.AddService("web");
  world_.AddService("api");
  push_ = world_.Push();
  PushRequest request = GenWorld::Request(push_);
  request.configs_updated = {{ConfigKind::kSidecar, "default", "shop"}};
  watched_.resource_names = std::vector<std::string>{kWeb,
                                                     "outbound|81||" + kHost,
                                                     "outbound|80||gone.example",
                                                     "outbound|80|v1|gone.example",
                                                     "inbound|7000||",
                                                     "BlackHoleCluster"};
  const auto generate = [&](Proxy proxy) {
    proxy.prev_sidecar_scope = proxy.sidecar_scope;
    return MakeCdsGenerator({})->GenerateDeltas(proxy, watched_, request);
  };
  EXPECT_FALSE(generate(GenWorld::Connect(*push_, "c1")).used_delta);
  world_.profile.Set(Change::kDeltasOfScopes);
  request.push = push_ = world_.Push();
  const auto out = generate(GenWorld::Connect(*push_, "c1"));
  EXPECT_TRUE(out.used_delta);
  EXPECT_THAT(Names(out), ElementsAre("outbound|80||api.shop.svc.cluster.local", "BlackHoleCluster",
                                      "PassthroughCluster", "InboundPassthroughClusterIpv4"));
  EXPECT_THAT(out.removed, testing::UnorderedElementsAre("outbound|80||gone.example", "outbound|80|v1|gone.example",
                                                         "inbound|7000||"))
      << "port 81 that web lost stays";
  request.configs_updated = {{ConfigKind::kPeerAuthentication, "p", "shop"}, {ConfigKind::kDestinationRule, "r", "x"}};
  EXPECT_THAT(Names(generate(GenWorld::Connect(*push_, "c1"))), testing::Contains(kWeb));
  request.configs_updated = {{ConfigKind::kPeerAuthentication, "p", "istio-system"}};
  EXPECT_FALSE(generate(GenWorld::Connect(*push_, "c1")).used_delta) << "everybody's";
}

// istiod: cluster_builder.go, buildCluster; so did a real 1.30.3.
TEST_F(CdsTest, ClustersOfPassthroughGatewaysTakeTheMeshsStatNameByProfile) {
  world_.AddService("web");
  world_.mesh.outbound_cluster_stat_name = "%SERVICE_FQDN%:%SERVICE_PORT%";
  const auto stat_name = [&] {
    push_ = world_.Push();
    Proxy proxy = GenWorld::Connect(*push_, "c1", NodeType::kRouter);
    auto merged = std::make_shared<MergedGateway>();
    merged->contains_auto_passthrough_gateways = true;
    proxy.merged_gateway = merged;
    const auto out = MakeCdsGenerator({})->Generate(proxy, watched_, GenWorld::Request(push_));
    for (const Resource& resource : out.resources) {
      ::envoy::config::cluster::v3::Cluster cluster;
      if (!cluster.ParseFromString(std::string(*resource.bytes))) continue;
      if (cluster.name() == "outbound_.80_._." + kHost) return cluster.alt_stat_name();
    }
    return std::string("no such cluster");
  };
  EXPECT_EQ(stat_name(), "");
  world_.profile.Set(Change::kSniClustersNamed);
  EXPECT_EQ(stat_name(), kHost + ":80");
}

// istiod: BuildDeltaClusters with PILOT_FILTER_GATEWAY_CLUSTER_CONFIG; a real 1.30.3 told an AUTO_PASSTHROUGH gateway
// of services that it has no cluster of otherwise.
TEST_F(CdsTest, AGatewayThatHasOnlyWhatItsRoutesLeadToIsToldOfChangedServicesIfItPassesAllThrough) {
  world_.AddService("web");
  world_.profile.Set(Change::kDeltasOfScopes);
  Environment env = world_.Env();
  env.features.filters_gateway_clusters = true;
  push_ = PushContext::Create(env, nullptr, {}, "v1");
  PushRequest request = GenWorld::Request(push_);
  request.configs_updated = {{ConfigKind::kServiceEntry, kHost, "shop"}};
  watched_.resource_names = std::vector<std::string>{};
  const auto told = [&](bool passes_through) {
    Proxy proxy = GenWorld::Connect(*push_, "c1");
    proxy.type = NodeType::kRouter;
    auto merged = std::make_shared<MergedGateway>();
    merged->contains_auto_passthrough_gateways = passes_through;
    proxy.merged_gateway = merged;
    proxy.prev_sidecar_scope = proxy.sidecar_scope;
    return Names(MakeCdsGenerator({})->GenerateDeltas(proxy, watched_, request));
  };
  EXPECT_THAT(told(true), testing::Contains(kWeb));
  EXPECT_THAT(told(false), testing::Not(testing::Contains(kWeb)));
}

TEST_F(CdsTest, AChangedGatewayIsAPushOfClustersToRoutersByProfile) {
  world_.AddService("web");
  const auto sent = [&](NodeType type) {
    push_ = world_.Push();
    PushRequest request = GenWorld::Request(push_);
    request.configs_updated = {{ConfigKind::kGateway, "door", "shop"}};
    Proxy proxy = GenWorld::Connect(*push_, "c1");
    proxy.type = type;
    return MakeCdsGenerator({})->GenerateDeltas(proxy, watched_, request).send;
  };
  EXPECT_FALSE(sent(NodeType::kRouter));
  world_.profile.Set(Change::kGatewaysConcernClusters);
  world_.profile.Set(Change::kDeltasOfScopes);
  EXPECT_TRUE(sent(NodeType::kRouter));
  EXPECT_FALSE(sent(NodeType::kSidecarProxy));
}

TEST_F(CdsTest, CacheServesAPortOnlyWithAllItsSubsets) {
  world_.AddService("web");
  config::Subset subset;
  subset.name = "v1";
  Rule().subsets.push_back(subset);
  PutRule();
  push_ = world_.Push();
  const Proxy proxy = GenWorld::Connect(*push_, "c1");
  const PushRequest request = GenWorld::Request(push_);
  XdsCache cache;
  const auto generator = MakeCdsGenerator({&cache});
  const auto first = generator->Generate(proxy, watched_, request);
  const auto second = generator->Generate(proxy, watched_, request);
  EXPECT_EQ(first.cached, 0);
  EXPECT_EQ(second.cached, 2);
  ASSERT_EQ(Names(first), Names(second));
  EXPECT_EQ(first.resources[1].bytes, second.resources[1].bytes);
  cache.Clear({{ConfigKind::kDestinationRule, "web", "shop"}}, Time(1s));
  EXPECT_EQ(generator->Generate(proxy, watched_, request).cached, 0);
}

// The header and the socket behind it, of a socket that tells who calls.
std::string WrappedBy(const ::envoy::config::core::v3::TransportSocket& socket) {
  if (socket.name() != "envoy.transport_sockets.upstream_proxy_protocol") return "not wrapped: " + socket.name();
  EXPECT_THAT(socket.typed_config().type_url(), testing::EndsWith("proxy_protocol.v3.ProxyProtocolUpstreamTransport"));
  return socket.typed_config().value();
}

TEST_F(CdsTest, ProxyProtocolGoesBeforePlainTextAndBeforeTls) {
  world_.AddService("web");
  Rule().traffic_policy.emplace().proxy_protocol = config::ProxyProtocolVersion::kV2;
  PutRule();
  EXPECT_FALSE(Get(kWeb).has_transport_socket()) << "no field of this release";
  world_.profile.Set(Change::kUpstreamProxyProtocol);
  world_.mesh.enable_auto_mtls = false;
  const std::string plain = WrappedBy(Get(kWeb).transport_socket());
  EXPECT_THAT(plain, testing::HasSubstr("raw_buffer"));
  EXPECT_THAT(plain, testing::HasSubstr(std::string("\x0a\x02\x08\x01", 4))) << "version V2";
  world_.mesh.enable_auto_mtls = true;
  const Cluster mutual = Get(kWeb);
  ASSERT_EQ(mutual.transport_socket_matches_size(), 2);
  EXPECT_THAT(WrappedBy(mutual.transport_socket_matches(0).transport_socket()),
              testing::HasSubstr("UpstreamTlsContext"));
  EXPECT_THAT(WrappedBy(mutual.transport_socket_matches(1).transport_socket()), testing::HasSubstr("raw_buffer"));
}

TEST_F(CdsTest, AFileTellsWhichServersCertificatesAreNoLongerGood) {
  world_.AddService("web");
  auto& tls = Rule().traffic_policy.emplace().tls.emplace();
  tls.mode = ClientTlsMode::kSimple;
  tls.ca_certificates = "/ca.pem";
  tls.ca_crl = "/crl.pem";
  PutRule();
  const auto crl = [&] {
    return TlsOf(Get(kWeb).transport_socket())
        .common_tls_context()
        .combined_validation_context()
        .default_validation_context()
        .crl()
        .filename();
  };
  EXPECT_EQ(crl(), "");
  world_.profile.Set(Change::kRevocationFiles);
  EXPECT_EQ(crl(), "/crl.pem");
}

TEST_F(CdsTest, APortOfSniffedProtocolIsUpgradedByARuleUntil127) {
  world_.AddService("web", "shop", {"x", 80, Protocol::kUnsupported});
  config::ConnectionPoolSettings::Http http;
  http.h2_upgrade_policy = config::ConnectionPoolSettings::Http::H2UpgradePolicy::kUpgrade;
  Rule().traffic_policy.emplace().connection_pool.emplace().http = http;
  PutRule();
  EXPECT_TRUE(HttpOf(Get(kWeb)).explicit_http_config().has_http2_protocol_options());
  world_.profile.Set(Change::kSniffedNotUpgraded);
  EXPECT_TRUE(HttpOf(Get(kWeb)).has_use_downstream_protocol_config());
}

TEST_F(CdsTest, ASidecarsPoolTakesThePlaceOfTheRulesOnTheServersSide) {
  const auto service = world_.AddService("web");
  OwnInstance(service, 8080);
  config::ConnectionPoolSettings::Tcp tcp;
  tcp.max_connections = 5;
  Rule().traffic_policy.emplace().connection_pool.emplace().tcp = tcp;
  PutRule();
  auto sidecar = std::make_shared<config::TypedConfig<config::Sidecar>>();
  sidecar->meta.kind = config::Kind::kSidecar;
  sidecar->meta.name = "default";
  sidecar->meta.ns = "shop";
  sidecar->spec.egress.emplace_back().hosts = {"*/*"};
  tcp.max_connections = 9;
  sidecar->spec.inbound_connection_pool.emplace().tcp = tcp;
  world_.configs.Put(config::SidecarRef(sidecar));
  const auto limit = [&] { return Get("inbound|8080||").circuit_breakers().thresholds(0).max_connections().value(); };
  EXPECT_EQ(limit(), 5u);
  world_.profile.Set(Change::kInboundPoolOfSidecar);
  EXPECT_EQ(limit(), 9u);
}

TEST_F(CdsTest, InboundGoesToLocalhostWhereTheMeshSaysSo) {
  OwnInstance(world_.AddService("web"), 8080);
  world_.mesh.inbound_to_localhost = true;
  EXPECT_EQ(Get("inbound|8080||").type(), Cluster::ORIGINAL_DST);
  world_.profile.Set(Change::kInboundToLocalhost);
  const Cluster cluster = Get("inbound|8080||");
  EXPECT_EQ(cluster.type(), Cluster::STATIC);
  const auto& address = cluster.load_assignment().endpoints(0).lb_endpoints(0).endpoint().address().socket_address();
  EXPECT_EQ(address.address(), "127.0.0.1");
  EXPECT_EQ(address.port_value(), 8080u);
  EXPECT_FALSE(cluster.has_upstream_bind_config());
}

TEST_F(CdsTest, ASubsetHasTheRulesRetryBudgetSinceTheReleaseThatInheritsIt) {
  world_.AddService("web");
  world_.profile.Set(Change::kRetryBudgets);
  Rule().traffic_policy.emplace().retry_budget.emplace().percent = 7;
  config::Subset& subset = Rule().subsets.emplace_back();
  subset.name = "v1";
  subset.traffic_policy.emplace().outlier_detection.emplace();
  PutRule();
  const auto budget = [&] {
    return Get("outbound|80|v1|" + kHost).circuit_breakers().thresholds(0).retry_budget().budget_percent().value();
  };
  EXPECT_EQ(budget(), 0);
  world_.profile.Set(Change::kRetryBudgetsInherited);
  EXPECT_EQ(budget(), 7);
}

TEST_F(CdsTest, IngressClustersOfSidecarsTellAllServicesOfTheirPortOrNoneOrTheirOwnByProfile) {
  OwnInstance(world_.AddService("web"), 8080);
  auto sidecar = std::make_shared<config::TypedConfig<config::Sidecar>>();
  sidecar->meta.kind = config::Kind::kSidecar;
  sidecar->meta.name = "default";
  sidecar->meta.ns = "shop";
  for (const uint32_t port : {80u, 8080u, 9080u}) {
    config::SidecarIngressListener listener;
    listener.port = {port, "HTTP", "http", 0};
    listener.default_endpoint = "127.0.0.1:9999";
    sidecar->spec.ingress.push_back(listener);
  }
  world_.configs.Put(config::SidecarRef(sidecar));
  const auto told = [&](const char* name) {
    const Cluster cluster = Get(name);
    const auto istio = cluster.metadata().filter_metadata().find("istio");
    return istio == cluster.metadata().filter_metadata().end()
               ? -1
               : istio->second.fields().at("services").list_value().values_size();
  };
  EXPECT_EQ(told("inbound|80||"), 1) << "by the service's port";
  EXPECT_EQ(told("inbound|8080||"), 0);
  world_.profile.Set(Change::kNoMetadataOfNoService);
  EXPECT_EQ(told("inbound|80||"), -1);
  world_.profile.Set(Change::kIngressClustersTellService);
  EXPECT_EQ(told("inbound|8080||"), 1) << "by the workload's port";
  EXPECT_EQ(told("inbound|9080||"), -1);
}

// A wildcard of resolution DYNAMIC_DNS with one port.
ServiceRef AddWildcard(GenWorld& world, Port port) {
  auto service = world.AddService("any", "shop", std::move(port));
  service->hostname = "*.example.com";
  service->default_address = std::string(kUnspecifiedIp);
  service->resolution = Resolution::kDynamicDns;
  service->mesh_external = true;
  service->attributes.registry = Provider::kExternal;
  return service;
}

TEST_F(CdsTest, AWildcardThatIsResolvedHasAClusterThatLooksNamesUpForHttpAndTlsAlone) {
  const auto service = AddWildcard(world_, {"http", 80, Protocol::kHttp});
  const auto more = std::const_pointer_cast<Service>(service);
  more->ports.push_back({"tls", 443, Protocol::kTls});
  more->ports.push_back({"tcp", 9000, Protocol::kTcp});
  EXPECT_THAT(Names(Generate()), testing::IsSupersetOf({"outbound|80||*.example.com", "outbound|443||*.example.com"}));
  EXPECT_THAT(Names(Generate()), Not(Contains("outbound|9000||*.example.com")));
  const Cluster cluster = Get("outbound|80||*.example.com");
  EXPECT_EQ(cluster.cluster_type().name(), "envoy.clusters.dynamic_forward_proxy");
  EXPECT_EQ(cluster.lb_policy(), Cluster::CLUSTER_PROVIDED);
  EXPECT_THAT(cluster.cluster_type().typed_config().value(), testing::HasSubstr("*.example.com_dfp_dns_cache"));
  EXPECT_FALSE(cluster.has_load_assignment());
  EXPECT_FALSE(cluster.has_eds_cluster_config());
}

TEST_F(CdsTest, AWildcardThatIsResolvedHasNoSubsetsAndNoBalancer) {
  AddWildcard(world_, {"http", 80, Protocol::kHttp});
  rule_.host = "*.example.com";
  rule_.subsets.emplace_back().name = "v1";
  rule_.traffic_policy.emplace().load_balancer.emplace().simple = config::LoadBalancerSettings::Simple::kRandom;
  PutRule();
  EXPECT_THAT(Names(Generate()), Not(Contains("outbound|80|v1|*.example.com")));
  EXPECT_EQ(Get("outbound|80||*.example.com").lb_policy(), Cluster::CLUSTER_PROVIDED);
}

// A real istiod 1.30.3 ended with it (nil pointer).
TEST_F(CdsTest, OutlierDetectionOfNamesThatAreLookedUpIsToldAsThePanicThatItIs) {
  AddWildcard(world_, {"http", 80, Protocol::kHttp});
  rule_.host = "*.example.com";
  rule_.traffic_policy.emplace().connection_pool.emplace();
  PutRule();
  push_ = world_.Push();
  EXPECT_TRUE(IstiodPanics(*push_).empty());
  rule_.traffic_policy->outlier_detection.emplace();
  PutRule();
  push_ = world_.Push();
  ASSERT_EQ(IstiodPanics(*push_).size(), 1u);
  EXPECT_THAT(Describe(IstiodPanics(*push_)[0]), testing::HasSubstr("applyOutlierDetection"));
}

TEST_F(CdsTest, ToAWildcardThatIsResolvedTlsChecksTheNameThatWasAskedForUnlessItIsToCheckNothing) {
  AddWildcard(world_, {"http", 80, Protocol::kHttp});
  rule_.host = "*.example.com";
  rule_.traffic_policy.emplace().tls.emplace().mode = ClientTlsMode::kSimple;
  PutRule();
  world_.profile.Set(Change::kAutoSni);
  world_.profile.Set(Change::kInsecureSkipVerify);
  // The cache's IPv4 alone, then allow_insecure_cluster_options.
  const std::string insecure("\x10\x01\x10\x01", 4);
  const Cluster checks = Get("outbound|80||*.example.com");
  EXPECT_TRUE(HttpOf(checks).upstream_http_protocol_options().auto_sni());
  EXPECT_TRUE(HttpOf(checks).upstream_http_protocol_options().auto_san_validation());
  EXPECT_THAT(checks.cluster_type().typed_config().value(), Not(testing::EndsWith(insecure)));
  rule_.traffic_policy->tls->insecure_skip_verify = true;
  PutRule();
  const Cluster trusts = Get("outbound|80||*.example.com");
  EXPECT_FALSE(HttpOf(trusts).upstream_http_protocol_options().auto_san_validation());
  EXPECT_THAT(trusts.cluster_type().typed_config().value(), testing::EndsWith(insecure));
}

}  // namespace
}  // namespace wavetank::pilot
