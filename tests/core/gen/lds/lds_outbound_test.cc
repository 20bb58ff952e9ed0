#include "core/gen/lds/lds.h"
#include "core/profile/changes.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::envoy::config::listener::v3::FilterChain;
using ::envoy::config::listener::v3::Listener;
using ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using ::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
using ::testing::ElementsAre;

class LdsOutbound : public ::testing::Test {
 protected:
  std::shared_ptr<Service> Add(const std::string& name, Protocol protocol, int port, const std::string& vip) {
    auto service = world_.AddService(name, "shop", {"p", port, protocol});
    service->default_address = vip;
    return service;
  }

  std::map<std::string, Listener> Generate() {
    const PushContextRef push = world_.Push();
    const Proxy proxy = world_.Connect(*push, "c1");
    std::map<std::string, Listener> out;
    for (const Resource& r : MakeLdsGenerator()->Generate(proxy, {}, world_.Request(push)).resources) {
      Listener listener;
      EXPECT_TRUE(listener.ParseFromString(std::string(*r.bytes)));
      EXPECT_EQ(listener.name(), r.name);
      EXPECT_TRUE(out.emplace(r.name, listener).second) << r.name << " twice";
    }
    return out;
  }

  static std::string TcpCluster(const FilterChain& chain) {
    TcpProxy proxy;
    return chain.filters(chain.filters_size() - 1).typed_config().UnpackTo(&proxy) ? proxy.cluster() : "not TCP";
  }
  static std::string RouteName(const FilterChain& chain) {
    HttpConnectionManager hcm;
    return chain.filters(chain.filters_size() - 1).typed_config().UnpackTo(&hcm) ? hcm.rds().route_config_name()
                                                                                 : "not HTTP";
  }

  GenWorld world_;
};

TEST_F(LdsOutbound, AnAliasHasNoListenerAndIsMatchedByItsNameInTheOneOfItsTarget) {
  Add("web", Protocol::kTls, 443, "0.0.0.0");
  const auto alias = Add("old", Protocol::kTcp, 9000, "0.0.0.0");
  alias->resolution = Resolution::kAlias;
  alias->attributes.external_name = GenWorld::Host("web");
  const auto listeners = Generate();
  EXPECT_FALSE(listeners.contains("0.0.0.0_9000"));
  ASSERT_TRUE(listeners.contains("0.0.0.0_443"));
  const auto& names = listeners.at("0.0.0.0_443").filter_chains(0).filter_chain_match().server_names();
  EXPECT_THAT(names, ::testing::IsSupersetOf({GenWorld::Host("web"), GenWorld::Host("old")}));
}

// istiod: proxy_headers.go, GetProxyHeaders. As a real 1.30.3 wrote them.
TEST_F(LdsOutbound, ProxyHeadersSayWhatAProxyAddsToMessages) {
  Add("a", Protocol::kHttp, 80, "240.0.0.1");
  world_.mesh = **config::ApplyMeshConfigDefaults(
      "defaultConfig: {proxyHeaders: {server: {disabled: true}, requestId: {disabled: true}, envoyDebugHeaders: "
      "{disabled: true}, metadataExchangeHeaders: {mode: IN_MESH}, xForwardedPort: {enabled: true}}}");
  const auto manager = [&] {
    HttpConnectionManager out;
    const Listener listener = Generate().at("0.0.0.0_80");
    const auto& filters = listener.filter_chains(0).filters();
    EXPECT_TRUE(filters.at(filters.size() - 1).typed_config().UnpackTo(&out));
    return out;
  };
  EXPECT_FALSE(manager().has_generate_request_id()) << "of releases before 1.20";
  for (const Change change : {Change::kProxyHeaders, Change::kPeerMetadataFilter}) world_.profile.Set(change);
  const HttpConnectionManager out = manager();
  EXPECT_FALSE(out.generate_request_id().value());
  EXPECT_TRUE(out.has_generate_request_id());
  EXPECT_EQ(out.server_header_transformation(), HttpConnectionManager::PASS_THROUGH);
  EXPECT_THAT(out.http_filters(0).typed_config().value(), ::testing::HasSubstr("skip_external_clusters"));
  EXPECT_THAT(out.http_filters(out.http_filters_size() - 1).typed_config().value(),
              ::testing::Not(::testing::IsEmpty()))
      << "the router's own headers are left out";
  EXPECT_FALSE(out.append_x_forwarded_port());
  world_.profile.Set(Change::kForwardedHostAndPort);
  EXPECT_TRUE(manager().append_x_forwarded_port());
}

TEST_F(LdsOutbound, HttpServicesOfAPortShareOneWildcardListener) {
  Add("a", Protocol::kHttp, 80, "240.0.0.1");
  Add("b", Protocol::kGrpc, 80, "240.0.0.2");
  const auto listeners = Generate();
  ASSERT_TRUE(listeners.contains("0.0.0.0_80"));
  EXPECT_FALSE(listeners.contains("240.0.0.1_80"));
  const Listener& l = listeners.at("0.0.0.0_80");
  ASSERT_EQ(l.filter_chains_size(), 1);
  EXPECT_EQ(RouteName(l.filter_chains(0)), "80");
  EXPECT_FALSE(l.bind_to_port().value());
}

TEST_F(LdsOutbound, WildcardHttpPortLetsOtherTrafficPass) {
  Add("a", Protocol::kHttp, 80, "240.0.0.1");
  const Listener l = Generate().at("0.0.0.0_80");
  const auto& match = l.filter_chains(0).filter_chain_match();
  EXPECT_THAT(match.application_protocols(), ElementsAre("http/1.1", "h2c"));
  EXPECT_EQ(match.transport_protocol(), "raw_buffer");
  EXPECT_EQ(TcpCluster(l.default_filter_chain()), "PassthroughCluster");
  ASSERT_EQ(l.listener_filters_size(), 2);
  EXPECT_EQ(l.listener_filters(0).name(), "envoy.filters.listener.tls_inspector");
  EXPECT_EQ(l.listener_filters(1).name(), "envoy.filters.listener.http_inspector");
  EXPECT_TRUE(l.continue_on_listener_filters_timeout());
}

TEST_F(LdsOutbound, TcpServiceHasAListenerAtItsAddressWithoutInspection) {
  Add("db", Protocol::kTcp, 5432, "240.0.0.3");
  const Listener l = Generate().at("240.0.0.3_5432");
  ASSERT_EQ(l.filter_chains_size(), 1);
  EXPECT_EQ(TcpCluster(l.filter_chains(0)), "outbound|5432||db.shop.svc.cluster.local");
  EXPECT_EQ(l.listener_filters_size(), 0);
  EXPECT_FALSE(l.has_listener_filters_timeout());
  EXPECT_FALSE(l.has_default_filter_chain());
}

TEST_F(LdsOutbound, ARulesIdleTimeoutOfTcpIsItsTcpProxysFrom121On) {
  Add("db", Protocol::kTcp, 5432, "240.0.0.3");
  config::DestinationRule rule;
  rule.host = "db.shop.svc.cluster.local";
  config::ConnectionPoolSettings::Tcp tcp;
  tcp.idle_timeout = std::chrono::seconds(90);
  rule.traffic_policy.emplace().connection_pool.emplace().tcp = tcp;
  world_.AddRule("db", std::move(rule));
  const auto idle = [&] {
    TcpProxy proxy;
    const Listener l = Generate().at("240.0.0.3_5432");
    const FilterChain& chain = l.filter_chains(0);
    EXPECT_TRUE(chain.filters(chain.filters_size() - 1).typed_config().UnpackTo(&proxy));
    return proxy.idle_timeout().seconds();
  };
  EXPECT_EQ(idle(), 0);
  world_.profile.Set(Change::kTcpIdleTimeout);
  EXPECT_EQ(idle(), 90);
}

TEST_F(LdsOutbound, UndeclaredProtocolIsSniffedAtTheServicesAddress) {
  Add("any", Protocol::kUnsupported, 9000, "240.0.0.4");
  const Listener l = Generate().at("240.0.0.4_9000");
  ASSERT_EQ(l.filter_chains_size(), 1);
  EXPECT_EQ(RouteName(l.filter_chains(0)), "any.shop.svc.cluster.local:9000");
  // What does not look like HTTP goes to the service too, not past it.
  EXPECT_EQ(TcpCluster(l.default_filter_chain()), "outbound|9000||any.shop.svc.cluster.local");
}

TEST_F(LdsOutbound, UdpHasNoListener) {
  Add("dns", Protocol::kUdp, 53, "240.0.0.5");
  const auto listeners = Generate();
  for (const auto& [name, listener] : listeners) EXPECT_EQ(name.find("_53"), std::string::npos) << name;
}

TEST_F(LdsOutbound, HttpOverTcpOfOneAddressInspects) {
  // Both without an address of their own, hence on the wildcard.
  Add("tcp", Protocol::kTcp, 7000, "0.0.0.0");
  Add("web", Protocol::kHttp, 7000, "240.0.0.6");
  const Listener l = Generate().at("0.0.0.0_7000");
  EXPECT_EQ(RouteName(l.filter_chains(0)), "7000");
  EXPECT_EQ(TcpCluster(l.default_filter_chain()), "outbound|7000||tcp.shop.svc.cluster.local");
}

TEST_F(LdsOutbound, TheFirstOfTwoTcpServicesAtOneAddressWins) {
  Add("first", Protocol::kTcp, 7000, "0.0.0.0");
  Add("second", Protocol::kTcp, 7000, "0.0.0.0");
  const Listener l = Generate().at("0.0.0.0_7000");
  ASSERT_EQ(l.filter_chains_size(), 1);
  EXPECT_EQ(TcpCluster(l.filter_chains(0)), "outbound|7000||first.shop.svc.cluster.local");
}

TEST_F(LdsOutbound, MongoSharesNoPortWithAProtocolThatIsInspected) {
  Add("mongo", Protocol::kMongo, 7000, "0.0.0.0");
  Add("web", Protocol::kHttp, 7000, "240.0.0.6");
  const Listener l = Generate().at("0.0.0.0_7000");
  ASSERT_EQ(l.filter_chains_size(), 1);
  EXPECT_EQ(l.filter_chains(0).filters(0).name(), "envoy.filters.network.mongo_proxy");
  EXPECT_EQ(l.listener_filters_size(), 0);
}

TEST_F(LdsOutbound, TlsServicesWithoutAddressAreToldApartByName) {
  Add("one", Protocol::kHttps, 443, "0.0.0.0");
  Add("two", Protocol::kHttps, 443, "0.0.0.0");
  const Listener l = Generate().at("0.0.0.0_443");
  ASSERT_EQ(l.filter_chains_size(), 2);
  EXPECT_THAT(l.filter_chains(0).filter_chain_match().server_names(), ElementsAre("one.shop.svc.cluster.local"));
  EXPECT_EQ(l.listener_filters(0).name(), "envoy.filters.listener.tls_inspector");
}

TEST_F(LdsOutbound, HeadlessTcpServiceHasAListenerPerInstanceButNotForTheProxyItself) {
  auto service = Add("db", Protocol::kTcp, 5432, "0.0.0.0");
  service->resolution = Resolution::kPassthrough;
  for (const char* address : {"10.0.0.1", "10.0.0.9"}) {
    IstioEndpoint endpoint = GenWorld::Endpoint(address, GenWorld::Workload("c1"));
    world_.discovery.instances.push_back({service, service->ports[0], endpoint});
  }
  const auto listeners = Generate();
  EXPECT_TRUE(listeners.contains("10.0.0.1_5432"));
  EXPECT_FALSE(listeners.contains("10.0.0.9_5432"));
  EXPECT_FALSE(listeners.contains("0.0.0.0_5432"));
}

TEST_F(LdsOutbound, HeadlessServiceWithoutInstancesTakesNoPort) {
  auto service = Add("db", Protocol::kTcp, 5432, "0.0.0.0");
  service->resolution = Resolution::kPassthrough;
  for (const auto& [name, listener] : Generate()) EXPECT_EQ(name.find("_5432"), std::string::npos) << name;
}

TEST_F(LdsOutbound, RedirectedTrafficToTheListenPortItselfIsDropped) {
  const Listener l = Generate().at("virtualOutbound");
  EXPECT_TRUE(l.use_original_dst().value());
  EXPECT_EQ(l.address().socket_address().port_value(), 15001u);
  EXPECT_EQ(l.filter_chains(0).filter_chain_match().destination_port().value(), 15001u);
  EXPECT_EQ(TcpCluster(l.filter_chains(0)), "BlackHoleCluster");
  EXPECT_EQ(TcpCluster(l.filter_chains(1)), "PassthroughCluster");
}

TEST_F(LdsOutbound, RegistryOnlyMeansNowhereForUnknownDestinations) {
  world_.mesh.outbound_traffic_policy = config::OutboundTrafficPolicy::Mode::kRegistryOnly;
  Add("a", Protocol::kHttp, 80, "240.0.0.1");
  const auto listeners = Generate();
  EXPECT_EQ(TcpCluster(listeners.at("virtualOutbound").filter_chains(1)), "BlackHoleCluster");
  EXPECT_EQ(TcpCluster(listeners.at("0.0.0.0_80").default_filter_chain()), "BlackHoleCluster");
}

TEST_F(LdsOutbound, StockEnvoyProfileLeavesOutWhatOnlyIstioProxyKnows) {
  Add("a", Protocol::kHttp, 80, "240.0.0.1");
  world_.profile.Set(Change::kUpstreamEnvoy);
  for (const auto& [name, listener] : Generate()) {
    EXPECT_EQ(listener.DebugString().find("istio.alpn"), std::string::npos) << name;
    EXPECT_EQ(listener.DebugString().find("metadata_exchange"), std::string::npos) << name;
    EXPECT_EQ(listener.DebugString().find("istio_authn"), std::string::npos) << name;
  }
}

TEST_F(LdsOutbound, EndpointUpdatesConcernNoListener) {
  const PushContextRef push = world_.Push();
  PushRequest request = world_.Request(push);
  request.full = false;
  EXPECT_FALSE(MakeLdsGenerator()->Generate(world_.Connect(*push, "c1"), {}, request).send);
}

TEST_F(LdsOutbound, TheHttpProxysListenerHasTheMeshConfigsNumberInItsName) {
  world_.mesh.proxy_http_port = -1;
  const auto listeners = Generate();
  ASSERT_TRUE(listeners.contains("127.0.0.1_-1"));
  EXPECT_EQ(listeners.at("127.0.0.1_-1").address().socket_address().port_value(), 4294967295u);
}

std::vector<std::string> FilterNames(const FilterChain& chain) {
  std::vector<std::string> out;
  for (const auto& filter : chain.filters()) out.push_back(filter.name());
  return out;
}

TEST_F(LdsOutbound, WhereAWildcardIsResolvedItsPortLooksHostsUpBeforeTheRouter) {
  const auto any = Add("any", Protocol::kHttp, 80, "0.0.0.0");
  any->hostname = "*.example.com";
  any->resolution = Resolution::kDynamicDns;
  HttpConnectionManager hcm;
  const Listener l = Generate().at("0.0.0.0_80");
  const FilterChain& chain = l.filter_chains(0);
  ASSERT_TRUE(chain.filters(chain.filters_size() - 1).typed_config().UnpackTo(&hcm));
  ASSERT_GE(hcm.http_filters_size(), 2);
  EXPECT_EQ(hcm.http_filters(hcm.http_filters_size() - 2).name(), "envoy.filters.http.dynamic_forward_proxy");
  EXPECT_EQ(hcm.http_filters(hcm.http_filters_size() - 1).name(), "envoy.filters.http.router");
}

TEST_F(LdsOutbound, WhereAWildcardIsResolvedTlsIsMatchedByNameAndTheClientsOwnPoliciesStandBefore) {
  const auto any = Add("any", Protocol::kTls, 443, "240.240.0.1");
  any->hostname = "*.example.com";
  any->resolution = Resolution::kDynamicDns;
  world_.AddAuthorizationPolicy({});
  const Listener l = Generate().at("240.240.0.1_443");
  EXPECT_THAT(l.filter_chains(0).filter_chain_match().server_names(), ElementsAre("*.example.com"));
  EXPECT_THAT(FilterNames(l.filter_chains(0)),
              ElementsAre("envoy.filters.network.rbac", "envoy.extensions.filters.network.sni_dynamic_forward_proxy",
                          "envoy.filters.network.tcp_proxy"));
  EXPECT_EQ(l.listener_filters(0).name(), "envoy.filters.listener.tls_inspector");
}

}  // namespace
}  // namespace wavetank::pilot
