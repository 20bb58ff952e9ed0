#include <set>

#include "core/gen/lds/lds.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::envoy::config::listener::v3::FilterChain;
using ::envoy::config::listener::v3::Listener;
using ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using ::envoy::extensions::transport_sockets::tls::v3::DownstreamTlsContext;
using ::testing::ElementsAre;
using PeerMode = config::PeerAuthentication::Mode;

class LdsInbound : public ::testing::Test {
 protected:
  // The proxy's workload serves `target` behind a service port of that protocol.
  void Serve(const std::string& name, Protocol protocol, int port, uint32_t target) {
    auto service = world_.AddService(name, "shop", {"p", port, protocol});
    IstioEndpoint endpoint = GenWorld::Endpoint("10.0.0.9", GenWorld::Workload("c1"));
    endpoint.endpoint_port = target;
    instances_.push_back({service, service->ports[0], endpoint});
  }

  void Require(PeerMode mode, std::map<uint32_t, PeerMode> ports = {}) {
    config::PeerAuthentication policy;
    policy.mtls = mode;
    if (!ports.empty()) {
      policy.selector = Labels{{"app", "web"}};
      policy.port_level_mtls = std::move(ports);
    }
    world_.AddPeerAuthentication(policy);
  }

  Listener Generate(const std::string& version = "1.18.2") {
    const PushContextRef push = world_.Push();
    Proxy proxy = world_.Connect(*push, "c1", NodeType::kSidecarProxy, {{"app", "web"}});
    proxy.service_instances = instances_;
    proxy.metadata.istio_version = version;
    for (const Resource& r : MakeLdsGenerator()->Generate(proxy, {}, world_.Request(push)).resources) {
      Listener listener;
      EXPECT_TRUE(listener.ParseFromString(std::string(*r.bytes)));
      if (r.name == "virtualInbound") return listener;
    }
    ADD_FAILURE() << "no virtualInbound";
    return {};
  }

  // Chains of one destination port as "transport/alpn,... tls|plain http|tcp".
  static std::vector<std::string> Chains(const Listener& listener, uint32_t port) {
    std::vector<std::string> out;
    for (const FilterChain& chain : listener.filter_chains()) {
      const auto& match = chain.filter_chain_match();
      if (match.destination_port().value() != port) continue;
      std::string text = match.transport_protocol() + "/";
      for (const std::string& alpn : match.application_protocols()) text += alpn + ",";
      text += chain.has_transport_socket() ? " tls" : " plain";
      const std::string& last = chain.filters(chain.filters_size() - 1).name();
      text += last == "envoy.filters.network.http_connection_manager" ? " http" : " tcp";
      out.push_back(text);
    }
    return out;
  }

  GenWorld world_;
  std::vector<ServiceInstance> instances_;
};

constexpr char kAllIstio[] = "istio,istio-peer-exchange,istio-http/1.0,istio-http/1.1,istio-h2,";

TEST_F(LdsInbound, PermissiveHttpPortTakesPlainTextAndMutualTls) {
  Serve("web", Protocol::kHttp, 80, 8080);
  EXPECT_THAT(Chains(Generate(), 8080),
              ElementsAre(std::string("tls/") + kAllIstio + " tls http", "raw_buffer/ plain http"));
}

TEST_F(LdsInbound, PermissiveTcpPortAlsoPassesTheApplicationsOwnTls) {
  Serve("db", Protocol::kTcp, 5432, 5432);
  EXPECT_THAT(Chains(Generate(), 5432),
              ElementsAre(std::string("tls/") + kAllIstio + " tls tcp", "tls/ plain tcp", "raw_buffer/ plain tcp"));
}

TEST_F(LdsInbound, PermissiveSniffedPortHasFiveChains) {
  Serve("any", Protocol::kUnsupported, 9000, 9000);
  EXPECT_THAT(Chains(Generate(), 9000),
              ElementsAre("tls/istio-http/1.0,istio-http/1.1,istio-h2, tls http", "raw_buffer/http/1.1,h2c, plain http",
                          "tls/istio-peer-exchange,istio, tls tcp", "raw_buffer/ plain tcp", "tls/ plain tcp"));
}

TEST_F(LdsInbound, StrictPortTakesMutualTlsOnly) {
  Serve("web", Protocol::kHttp, 80, 8080);
  Serve("db", Protocol::kTcp, 5432, 5432);
  Require(PeerMode::kStrict);
  const Listener listener = Generate();
  EXPECT_THAT(Chains(listener, 8080), ElementsAre("tls/ tls http"));
  EXPECT_THAT(Chains(listener, 5432), ElementsAre("tls/ tls tcp"));
  // And so does everything else.
  EXPECT_THAT(Chains(listener, 0), ElementsAre("tls/istio-http/1.0,istio-http/1.1,istio-h2, tls http", "tls/ tls tcp"));
}

TEST_F(LdsInbound, DisabledMtlsTakesPlainTextOnly) {
  Serve("web", Protocol::kHttp, 80, 8080);
  Require(PeerMode::kDisable);
  EXPECT_THAT(Chains(Generate(), 8080), ElementsAre("raw_buffer/ plain http"));
}

TEST_F(LdsInbound, PortLevelModeReachesPortsThatNoServiceNames) {
  Serve("web", Protocol::kHttp, 80, 8080);
  Require(PeerMode::kStrict, {{8080, PeerMode::kDisable}, {7777, PeerMode::kDisable}});
  const Listener listener = Generate();
  EXPECT_THAT(Chains(listener, 8080), ElementsAre("raw_buffer/ plain http"));
  EXPECT_THAT(Chains(listener, 7777), ElementsAre("raw_buffer/http/1.1,h2c, plain http", "raw_buffer/ plain tcp"));
}

TEST_F(LdsInbound, ChainsOfPortsComeInOrderAfterThoseForEverythingElse) {
  Serve("b", Protocol::kTcp, 90, 9090);
  Serve("a", Protocol::kTcp, 80, 8080);
  const Listener listener = Generate();
  std::vector<uint32_t> ports;
  for (const FilterChain& chain : listener.filter_chains()) {
    const uint32_t port = chain.filter_chain_match().destination_port().value();
    if (ports.empty() || ports.back() != port) ports.push_back(port);
  }
  EXPECT_THAT(ports, ElementsAre(15006u, 0u, 8080u, 9090u));
}

TEST_F(LdsInbound, TheOlderServiceDecidesTheProtocolOfASharedPort) {
  Serve("old", Protocol::kTcp, 80, 8080);
  Serve("new", Protocol::kHttp, 81, 8080);
  EXPECT_THAT(Chains(Generate(), 8080), ElementsAre(::testing::_, "tls/ plain tcp", "raw_buffer/ plain tcp"));
}

TEST_F(LdsInbound, InspectorsAreOffWhereNoChainNeedsThem) {
  Serve("db", Protocol::kTcp, 5432, 5432);
  Require(PeerMode::kDisable);
  const Listener listener = Generate();
  // Plain text only: nothing for the TLS inspector to find.
  ASSERT_EQ(listener.listener_filters_size(), 2);
  EXPECT_EQ(listener.listener_filters(0).name(), "envoy.filters.listener.original_dst");
  const auto& http = listener.listener_filters(1);
  EXPECT_EQ(http.name(), "envoy.filters.listener.http_inspector");
  ASSERT_EQ(http.filter_disabled().or_match().rules_size(), 2);
  EXPECT_EQ(http.filter_disabled().or_match().rules(0).destination_port_range().start(), 5432);
  EXPECT_EQ(http.filter_disabled().or_match().rules(1).destination_port_range().start(), 15006);
}

TEST_F(LdsInbound, MutualTlsTrustsPeersOfTheMeshsTrustDomains) {
  Serve("web", Protocol::kHttp, 80, 8080);
  world_.mesh.trust_domain = "td1";
  world_.mesh.trust_domain_aliases = {"td0"};
  const Listener listener = Generate();
  for (const FilterChain& chain : listener.filter_chains()) {
    if (!chain.has_transport_socket()) continue;
    DownstreamTlsContext context;
    ASSERT_TRUE(chain.transport_socket().typed_config().UnpackTo(&context));
    EXPECT_TRUE(context.require_client_certificate().value());
    const auto& common = context.common_tls_context();
    EXPECT_EQ(common.tls_certificate_sds_secret_configs(0).name(), "default");
    EXPECT_EQ(common.combined_validation_context().validation_context_sds_secret_config().name(), "ROOTCA");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const auto& names = common.combined_validation_context().default_validation_context().match_subject_alt_names();
#pragma GCC diagnostic pop
    ASSERT_EQ(names.size(), 2);
    EXPECT_EQ(names[0].prefix(), "spiffe://td1/");
    EXPECT_EQ(names[1].prefix(), "spiffe://td0/");
  }
}

TEST_F(LdsInbound, ProxiesBefore117HaveNoNetworkAuthenticationFilter) {
  Serve("web", Protocol::kHttp, 80, 8080);
  const auto first_filters = [&](const std::string& version) {
    std::set<std::string> out;
    const Listener listener = Generate(version);
    for (const FilterChain& chain : listener.filter_chains()) {
      if (chain.name() != "virtualInbound-blackhole") out.insert(chain.filters(0).name());
    }
    return out;
  };
  for (const char* version : {"1.16.7", "release-1.16", "1.9"}) {
    EXPECT_THAT(first_filters(version), ElementsAre("istio.metadata_exchange")) << version;
  }
  for (const char* version : {"1.17.0-alpha.1", "1.18.2", "2.0", "", "latest", "10.1"}) {
    EXPECT_THAT(first_filters(version), ElementsAre("istio_authn")) << version;
  }
}

TEST_F(LdsInbound, HttpGoesToTheInboundClusterWithoutTimeout) {
  Serve("web", Protocol::kHttp2, 80, 8080);
  const Listener listener = Generate();
  for (const FilterChain& chain : listener.filter_chains()) {
    if (chain.filter_chain_match().destination_port().value() != 8080) continue;
    HttpConnectionManager hcm;
    ASSERT_TRUE(chain.filters(chain.filters_size() - 1).typed_config().UnpackTo(&hcm));
    EXPECT_EQ(hcm.stat_prefix(), "inbound_0.0.0.0_8080");
    EXPECT_TRUE(hcm.has_http2_protocol_options());
    const auto& host = hcm.route_config().virtual_hosts(0);
    EXPECT_EQ(host.name(), "inbound|http|80");
    EXPECT_EQ(host.routes(0).route().cluster(), "inbound|8080||");
    EXPECT_TRUE(host.routes(0).route().has_timeout());
    EXPECT_EQ(host.routes(0).route().timeout().seconds(), 0);
    EXPECT_EQ(host.routes(0).decorator().operation(), "web.shop.svc.cluster.local:80/*");
  }
}

}  // namespace
}  // namespace wavetank::pilot
