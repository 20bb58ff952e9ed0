#include "core/gen/lds/lds.h"
#include "core/profile/changes.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::envoy::config::listener::v3::FilterChain;
using ::envoy::config::listener::v3::Listener;
using ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using ::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
using ::envoy::extensions::transport_sockets::tls::v3::DownstreamTlsContext;
using ::testing::ElementsAre;
using ServerTlsMode = config::ServerTlsSettings::Mode;

class LdsGateway : public ::testing::Test {
 protected:
  static config::Server Server(const std::string& name, uint32_t port, const std::string& protocol,
                               std::vector<std::string> hosts, std::optional<ServerTlsMode> mode = std::nullopt) {
    config::Server out;
    out.port = {port, protocol, name, 0};
    out.has_port = true;
    out.hosts = std::move(hosts);
    if (mode) out.tls.emplace().mode = *mode;
    return out;
  }

  void AddGateway(std::vector<config::Server> servers, const std::string& name = "gw") {
    auto gateway = std::make_shared<config::TypedConfig<config::Gateway>>();
    gateway->meta.kind = config::Kind::kGateway;
    gateway->meta.name = name;
    gateway->meta.ns = "shop";
    gateway->spec.servers = std::move(servers);
    gateway->spec.selector = {{"istio", "gw"}};
    world_.configs.Put(config::GatewayRef(std::move(gateway)));
  }

  void AddVirtualService(config::VirtualService spec) {
    auto rule = std::make_shared<config::TypedConfig<config::VirtualService>>();
    rule->meta.kind = config::Kind::kVirtualService;
    rule->meta.name = "vs";
    rule->meta.ns = "shop";
    rule->spec = std::move(spec);
    world_.configs.Put(config::VirtualServiceRef(std::move(rule)));
  }

  std::vector<Listener> Generate() {
    const PushContextRef push = world_.Push();
    const Proxy proxy = world_.Connect(*push, "c1", NodeType::kRouter, {{"istio", "gw"}});
    std::vector<Listener> out;
    for (const Resource& r : MakeLdsGenerator()->Generate(proxy, {}, world_.Request(push)).resources) {
      EXPECT_TRUE(out.emplace_back().ParseFromString(std::string(*r.bytes)));
    }
    return out;
  }

  static std::string Cluster(const FilterChain& chain) {
    TcpProxy proxy;
    return chain.filters(chain.filters_size() - 1).typed_config().UnpackTo(&proxy) ? proxy.cluster() : "not TCP";
  }

  GenWorld world_;
};

TEST_F(LdsGateway, RouterWithoutGatewayHasNoListener) { EXPECT_TRUE(Generate().empty()); }

TEST_F(LdsGateway, AutoPassthroughHasAChainPerServicePort) {
  auto web = world_.AddService("web");
  web->ports.push_back({"grpc", 9000, Protocol::kGrpc});
  web->ports.push_back({"dns", 53, Protocol::kUdp});
  AddGateway({Server("tls", 15443, "TLS", {"*.local"}, ServerTlsMode::kAutoPassthrough)});
  const auto listeners = Generate();
  ASSERT_EQ(listeners.size(), 1u);
  const Listener& l = listeners[0];
  EXPECT_EQ(l.name(), "0.0.0.0_15443");
  ASSERT_EQ(l.filter_chains_size(), 2);
  const FilterChain& chain = l.filter_chains(0);
  EXPECT_THAT(chain.filter_chain_match().server_names(), ElementsAre("outbound_.80_._.web.shop.svc.cluster.local"));
  // Istio's ALPN is required: nothing passes without mutual TLS.
  EXPECT_THAT(chain.filter_chain_match().application_protocols(),
              ElementsAre("istio", "istio-peer-exchange", "istio-http/1.0", "istio-http/1.1", "istio-h2"));
  EXPECT_FALSE(chain.has_transport_socket());
  EXPECT_EQ(Cluster(chain), "outbound_.80_._.web.shop.svc.cluster.local");
  EXPECT_EQ(Cluster(l.filter_chains(1)), "outbound_.9000_._.web.shop.svc.cluster.local");
  EXPECT_EQ(l.listener_filters(0).name(), "envoy.filters.listener.tls_inspector");
}

TEST_F(LdsGateway, AutoPassthroughServesSubsetsButNoExternalService) {
  world_.AddService("web");
  world_.AddService("outside")->mesh_external = true;
  config::DestinationRule rule;
  rule.host = GenWorld::Host("web");
  rule.subsets.push_back({"v1", {{"version", "v1"}}, std::nullopt});
  world_.AddRule("web", rule);
  AddGateway({Server("tls", 15443, "TLS", {"*.local"}, ServerTlsMode::kAutoPassthrough)});
  const Listener l = Generate().at(0);
  ASSERT_EQ(l.filter_chains_size(), 2);
  EXPECT_EQ(Cluster(l.filter_chains(1)), "outbound_.80_.v1_.web.shop.svc.cluster.local");
}

TEST_F(LdsGateway, AutoPassthroughServesOnlyTheServersHosts) {
  world_.AddService("web", "shop");
  world_.AddService("other", "elsewhere");
  AddGateway({Server("tls", 15443, "TLS", {"*.shop.svc.cluster.local"}, ServerTlsMode::kAutoPassthrough)});
  EXPECT_EQ(Generate().at(0).filter_chains_size(), 1);
}

TEST_F(LdsGateway, PlainHttpServersOfAPortShareOneRoute) {
  AddGateway({Server("http", 8080, "HTTP", {"a.example"}), Server("http2", 8080, "HTTP", {"b.example"})});
  const auto listeners = Generate();
  ASSERT_EQ(listeners.size(), 1u);
  ASSERT_EQ(listeners[0].filter_chains_size(), 1);
  const FilterChain& chain = listeners[0].filter_chains(0);
  EXPECT_EQ(chain.filters(0).name(), "istio_authn");
  HttpConnectionManager hcm;
  ASSERT_TRUE(chain.filters(1).typed_config().UnpackTo(&hcm));
  EXPECT_EQ(hcm.rds().route_config_name(), "http.8080");
  EXPECT_TRUE(hcm.use_remote_address().value());
  EXPECT_EQ(hcm.forward_client_cert_details(), HttpConnectionManager::SANITIZE_SET);
  EXPECT_FALSE(listeners[0].has_bind_to_port());
}

TEST_F(LdsGateway, HttpsServerEndsTlsWithItsCredential) {
  config::Server server = Server("https", 443, "HTTPS", {"a.example"}, ServerTlsMode::kSimple);
  server.tls->credential_name = "a-cert";
  AddGateway({server});
  const FilterChain chain = Generate().at(0).filter_chains(0);
  EXPECT_THAT(chain.filter_chain_match().server_names(), ElementsAre("a.example"));
  DownstreamTlsContext context;
  ASSERT_TRUE(chain.transport_socket().typed_config().UnpackTo(&context));
  EXPECT_EQ(context.common_tls_context().tls_certificate_sds_secret_configs(0).name(), "kubernetes://a-cert");
  EXPECT_FALSE(context.require_client_certificate().value());
  HttpConnectionManager hcm;
  ASSERT_TRUE(chain.filters(chain.filters_size() - 1).typed_config().UnpackTo(&hcm));
  EXPECT_EQ(hcm.rds().route_config_name(), "https.443.https.gw.shop");
}

// istiod 1.18 takes the number of the mesh's enum for one of Envoy's, which counts TLS 1.0 and 1.1, too.
TEST_F(LdsGateway, MeshWideMinimumTlsVersionComesOutTwoVersionsLower) {
  using Version = config::MeshConfig::TlsSettings::Version;
  using ::envoy::extensions::transport_sockets::tls::v3::TlsParameters;
  const auto minimum = [&](Version mesh, config::ServerTlsSettings::Version server) {
    world_.mesh.tls_defaults.min_protocol_version = mesh;
    config::Server https = Server("https", 443, "HTTPS", {"a.example"}, ServerTlsMode::kSimple);
    https.tls->credential_name = "a-cert";
    https.tls->min_protocol_version = server;
    AddGateway({https});
    DownstreamTlsContext context;
    EXPECT_TRUE(Generate().at(0).filter_chains(0).transport_socket().typed_config().UnpackTo(&context));
    return context.common_tls_context().tls_params().tls_minimum_protocol_version();
  };
  using Own = config::ServerTlsSettings::Version;
  EXPECT_EQ(minimum(Version::kTls12, Own::kAuto), TlsParameters::TLSv1_0);
  EXPECT_EQ(minimum(Version::kTls13, Own::kAuto), TlsParameters::TLSv1_1);
  EXPECT_EQ(minimum(Version::kTls13, Own::kTls12), TlsParameters::TLSv1_2);
}

TEST_F(LdsGateway, TcpServerNeedsAVirtualServiceThatSaysWhereTo) {
  world_.AddService("db", "shop", {"tcp", 5432, Protocol::kTcp});
  AddGateway({Server("tcp", 5432, "TCP", {"*"})});
  EXPECT_TRUE(Generate().empty());
  config::VirtualService rule;
  rule.hosts = {"*"};
  rule.gateways = {"gw"};
  rule.tcp.emplace_back().route.push_back({{GenWorld::Host("db"), "", 5432}, true, 0});
  AddVirtualService(rule);
  const auto listeners = Generate();
  ASSERT_EQ(listeners.size(), 1u);
  EXPECT_EQ(Cluster(listeners[0].filter_chains(0)), "outbound|5432||db.shop.svc.cluster.local");
}

TEST_F(LdsGateway, PoliciesOfConnectionsStandBeforeWhatMeasuresThemSince120) {
  world_.AddService("db", "shop", {"tcp", 5432, Protocol::kTcp});
  AddGateway({Server("tcp", 5432, "TCP", {"*"})});
  config::VirtualService rule;
  rule.hosts = {"*"};
  rule.gateways = {"gw"};
  rule.tcp.emplace_back().route.push_back({{GenWorld::Host("db"), "", 5432}, true, 0});
  AddVirtualService(rule);
  config::Telemetry metrics;
  metrics.metrics.emplace_back().providers = {"prometheus"};
  world_.AddTelemetry(metrics);
  config::AuthorizationPolicy policy;
  policy.action = config::AuthorizationPolicy::Action::kDeny;
  policy.rules.emplace_back().to.emplace_back().ports.values = {"1"};
  world_.AddAuthorizationPolicy(policy);
  const auto names = [&] {
    std::vector<std::string> out;
    const std::vector<Listener> listeners = Generate();
    for (const auto& filter : listeners.at(0).filter_chains(0).filters()) out.push_back(filter.name());
    return out;
  };
  world_.profile.Set(Change::kNoIstioAuthn);
  EXPECT_THAT(names(), ElementsAre("istio.stats", "envoy.filters.network.rbac", "envoy.filters.network.tcp_proxy"));
  world_.profile.Set(Change::kGatewayPoliciesFirst);
  EXPECT_THAT(names(), ElementsAre("envoy.filters.network.rbac", "istio.stats", "envoy.filters.network.tcp_proxy"));
}

// istiod: gateway.go, buildGatewayConnectionManager; listener_builder.go, buildHTTPConnectionManager.
TEST_F(LdsGateway, WhatItTellsAndBelievesOfClientsFollowsFromTheMesh) {
  AddGateway({Server("http", 80, "HTTP", {"*"})});
  const auto manager = [&] {
    HttpConnectionManager out;
    const Listener listener = Generate().at(0);
    const auto& filters = listener.filter_chains(0).filters();
    EXPECT_TRUE(filters.at(filters.size() - 1).typed_config().UnpackTo(&out));
    return out;
  };
  world_.mesh = **config::ApplyMeshConfigDefaults(
      "defaultConfig: {gatewayTopology: {forwardClientCertDetails: FORWARD_ONLY}, proxyHeaders: {server: {value: "
      "me}}}");
  EXPECT_TRUE(manager().has_set_current_client_cert_details());
  EXPECT_EQ(manager().server_name(), "istio-envoy") << "of releases before 1.20";
  for (const Change change : {Change::kProxyHeaders, Change::kCertDetailsIfForwarded}) world_.profile.Set(change);
  EXPECT_FALSE(manager().has_set_current_client_cert_details()) << "nothing is added to what is forwarded alone";
  EXPECT_EQ(manager().server_name(), "me");
  world_.networks = std::make_shared<const config::MeshNetworks>(*config::ParseMeshNetworks(
      "networks: {n2: {endpoints: [{fromCidr: 10.2.0.0/16}, {fromRegistry: c2}]}, n1: {endpoints: [{fromCidr: "
      "10.10.0.0/16}, {fromCidr: 10.1.0.0/16}]}}"));
  EXPECT_FALSE(manager().has_internal_address_config());
  world_.profile.Set(Change::kInternalAddressesOfNetworks);
  std::vector<std::string> ranges;
  const HttpConnectionManager with_ranges = manager();
  for (const auto& range : with_ranges.internal_address_config().cidr_ranges())
    ranges.push_back(range.address_prefix() + "/" + std::to_string(range.prefix_len().value()));
  EXPECT_THAT(ranges, ElementsAre("10.1.0.0/16", "10.2.0.0/16", "10.10.0.0/16"));
}

TEST_F(LdsGateway, PassthroughServerRoutesBySniAndTakesEachNameOnce) {
  world_.AddService("web");
  AddGateway({Server("tls", 8443, "TLS", {"*"}, ServerTlsMode::kPassthrough)});
  config::VirtualService rule;
  rule.hosts = {"web.example"};
  rule.gateways = {"gw"};
  for (int i = 0; i < 2; ++i) {
    config::TlsRoute& route = rule.tls.emplace_back();
    route.match.emplace_back().sni_hosts = {"web.example"};
    route.route.push_back({{GenWorld::Host("web"), "", 80}, true, 0});
  }
  AddVirtualService(rule);
  const Listener l = Generate().at(0);
  ASSERT_EQ(l.filter_chains_size(), 1);  // Envoy would refuse a second of the same name
  EXPECT_THAT(l.filter_chains(0).filter_chain_match().server_names(), ElementsAre("web.example"));
}

// Of the server's first chain.
DownstreamTlsContext TlsOf(const std::vector<Listener>& listeners) {
  DownstreamTlsContext out;
  if (listeners.empty()) return out;
  EXPECT_TRUE(listeners[0].filter_chains(0).transport_socket().typed_config().UnpackTo(&out));
  return out;
}

TEST_F(LdsGateway, AClientNeedNotShowACertificateWhereTheModeIsOptional) {
  config::Server server = Server("https", 443, "HTTPS", {"a.example"}, ServerTlsMode::kOptionalMutual);
  server.tls->credential_name = "cert";
  AddGateway({server});
  EXPECT_TRUE(Generate().empty()) << "no word of this release: the Gateway cannot be read";
  world_.profile.Set(Change::kOptionalMutual);
  const DownstreamTlsContext tls = TlsOf(Generate());
  EXPECT_FALSE(tls.require_client_certificate().value());
  EXPECT_EQ(tls.common_tls_context().combined_validation_context().validation_context_sds_secret_config().name(),
            "kubernetes://cert-cacert");
}

TEST_F(LdsGateway, AServerHasSeveralCertificatesAndRootsOfAnotherNameSinceTheReleasesThatReadThem) {
  config::Server server = Server("https", 443, "HTTPS", {"a.example"}, ServerTlsMode::kMutual);
  server.tls->credential_name = "old";
  server.tls->credential_names = {"rsa", "ecdsa"};
  server.tls->ca_cert_credential_name = "roots";
  AddGateway({server});
  const auto names = [&] {
    std::vector<std::string> out;
    const auto common = TlsOf(Generate()).common_tls_context();
    for (const auto& secret : common.tls_certificate_sds_secret_configs()) out.push_back(secret.name());
    out.push_back(common.combined_validation_context().validation_context_sds_secret_config().name());
    return out;
  };
  EXPECT_THAT(names(), ElementsAre("kubernetes://old", "kubernetes://old-cacert"));
  world_.profile.Set(Change::kSeveralCertificates);
  EXPECT_THAT(names(), ElementsAre("kubernetes://rsa", "kubernetes://ecdsa", "kubernetes://rsa-cacert"));
  world_.profile.Set(Change::kCaByItsOwnName);
  EXPECT_THAT(names(), ElementsAre("kubernetes://rsa", "kubernetes://ecdsa", "kubernetes://roots"));
}

TEST_F(LdsGateway, CertificatesOfFilesMayBeSeveralAndRevoked) {
  config::Server server = Server("https", 443, "HTTPS", {"a.example"}, ServerTlsMode::kMutual);
  server.tls->ca_certificates = "/ca.pem";
  server.tls->ca_crl = "/crl.pem";
  server.tls->tls_certificates = {{"/rsa.pem", "/rsa.key"}, {"/ec.pem", "/ec.key"}};
  AddGateway({server});
  for (const Change change : {Change::kSeveralCertificates, Change::kRevocationFiles}) world_.profile.Set(change);
  const auto common = TlsOf(Generate()).common_tls_context();
  ASSERT_EQ(common.tls_certificate_sds_secret_configs_size(), 2);
  EXPECT_EQ(common.tls_certificate_sds_secret_configs(0).name(), "file-cert:/rsa.pem~/rsa.key");
  EXPECT_EQ(common.tls_certificate_sds_secret_configs(1).name(), "file-cert:/ec.pem~/ec.key");
  EXPECT_EQ(common.combined_validation_context().default_validation_context().crl().filename(), "/crl.pem");
}

}  // namespace
}  // namespace wavetank::pilot
