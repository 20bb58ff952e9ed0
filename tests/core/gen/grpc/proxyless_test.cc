#include "core/gen/grpc/proxyless.h"

#include <algorithm>

#include "core/model/proxyless.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/transport_sockets/tls/v3/tls.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::envoy::config::cluster::v3::Cluster;
using RoutesPb = ::envoy::config::route::v3::RouteConfiguration;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Listener = ::envoy::config::listener::v3::Listener;
using Manager = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using ::envoy::extensions::transport_sockets::tls::v3::CommonTlsContext;
using ::envoy::extensions::transport_sockets::tls::v3::DownstreamTlsContext;
using ::envoy::extensions::transport_sockets::tls::v3::UpstreamTlsContext;
using TlsMode = config::ClientTlsSettings::Mode;

const std::string kEchoHost = GenWorld::Host("echo");
const std::string kEcho = "outbound|7070||" + kEchoHost;
const std::string kServer = std::string(kGrpcServerListenerPrefix) + "10.0.0.9:9000";

class Proxyless : public testing::Test {
 protected:
  Proxyless() { world_.AddService("echo", "shop", {"grpc", 7070, Protocol::kGrpc})->default_address = "240.1.2.3"; }

  GeneratedResources Generate(XdsType type, const std::vector<std::string>& names) {
    push_ = world_.Push();
    Proxy proxy = GenWorld::Connect(*push_, "c1", NodeType::kSidecarProxy, labels_);
    proxy.dns_domain = "shop.svc.cluster.local";
    proxy.metadata.generator = kGrpcGenerator;
    proxy.service_instances = own_;
    WatchedResource watched;
    watched.type = type;
    watched.resource_names = names;
    return MakeProxylessGenerator()->Generate(proxy, watched, GenWorld::Request(push_));
  }

  template <typename Message>
  std::vector<Message> Get(XdsType type, const std::vector<std::string>& names) {
    const GeneratedResources out = Generate(type, names);
    EXPECT_TRUE(out.send);
    std::vector<Message> messages;
    for (const Resource& resource : out.resources) {
      EXPECT_TRUE(messages.emplace_back().ParseFromString(std::string(*resource.bytes)));
    }
    return messages;
  }
  std::vector<std::string> Names(XdsType type, const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const Resource& resource : Generate(type, names).resources) out.emplace_back(resource.name);
    return out;
  }
  std::vector<std::string> Listeners(const std::vector<std::string>& names) { return Names(XdsType::kLds, names); }

  // The proxy itself serves the port.
  void OwnInstance(uint32_t endpoint_port) {
    const ServiceRef service = world_.discovery.services.front();
    ServiceInstance instance{service, service->ports[0], GenWorld::Endpoint("10.0.0.9", GenWorld::Workload("c1"))};
    instance.endpoint.endpoint_port = endpoint_port;
    own_.push_back(instance);
  }
  void Serve(config::PeerAuthentication::Mode mode) {
    config::PeerAuthentication policy;
    policy.mtls = mode;
    world_.AddPeerAuthentication(policy);
  }
  bool ServesTls() {
    const auto listener = Get<Listener>(XdsType::kLds, {kServer}).at(0);
    EXPECT_EQ(listener.filter_chains_size(), 1);
    return listener.filter_chains(0).has_transport_socket();
  }

  GenWorld world_;
  PushContextRef push_;
  Labels labels_;
  std::vector<ServiceInstance> own_;
};

template <typename Message>
Message Unpack(const google::protobuf::Any& any) {
  Message out;
  EXPECT_TRUE(any.UnpackTo(&out));
  return out;
}

TEST_F(Proxyless, AListenerOfATargetNamesItsRouteConfigurationAndNoAddressIsBound) {
  const Listener listener = Get<Listener>(XdsType::kLds, {kEchoHost + ":7070"}).at(0);
  EXPECT_EQ(listener.name(), kEchoHost + ":7070");
  EXPECT_EQ(listener.address().socket_address().address(), "240.1.2.3");
  EXPECT_EQ(listener.address().socket_address().port_value(), 7070u);
  EXPECT_EQ(listener.filter_chains_size(), 0);
  const Manager manager = Unpack<Manager>(listener.api_listener().api_listener());
  EXPECT_EQ(manager.rds().route_config_name(), kEcho);
  EXPECT_TRUE(manager.rds().config_source().has_ads());
  ASSERT_EQ(manager.http_filters_size(), 2);
  EXPECT_EQ(manager.http_filters(0).name(), "envoy.filters.http.fault");
  EXPECT_EQ(manager.http_filters(1).name(), "envoy.filters.http.router");
}

TEST_F(Proxyless, AServiceIsFoundByItsShortNamesWhichListenersKeep) {
  EXPECT_THAT(Listeners({"echo:7070"}), ElementsAre("echo:7070"));
  EXPECT_THAT(Listeners({"echo.shop:7070"}), ElementsAre("echo.shop:7070"));
  EXPECT_THAT(Listeners({"echo.shop.svc:7070"}), ElementsAre("echo.shop.svc:7070"));
  EXPECT_THAT(Listeners({"echo.other:7070"}), IsEmpty());
  EXPECT_THAT(Listeners({"echo:7070", kEchoHost + ":7070"}), ElementsAre("echo:7070", kEchoHost + ":7070"));
}

TEST_F(Proxyless, ANameWithoutPortMeansAllAndOneMoreWithAPortChangesNothing) {
  auto second = world_.AddService("two", "shop", {"grpc", 80, Protocol::kGrpc});
  second->ports.push_back({"other", 81, Protocol::kGrpc});
  const std::string two = GenWorld::Host("two");
  EXPECT_THAT(Listeners({two + ":81"}), ElementsAre(two + ":81"));
  EXPECT_THAT(Listeners({two}), ElementsAre(two + ":80", two + ":81"));
  EXPECT_THAT(Listeners({two, two + ":81"}), ElementsAre(two + ":80", two + ":81"));
  EXPECT_THAT(Listeners({two + ":81", two}), ElementsAre(two + ":80", two + ":81"));
  EXPECT_THAT(Listeners({two + ":90"}), IsEmpty());
  // Ports belong to the service, whichever of its names they came with.
  EXPECT_THAT(Listeners({"two:80", two + ":81"}), ElementsAre("two:80", "two:81", two + ":80", two + ":81"));
}

TEST_F(Proxyless, NoNamesAtAllMeanAllListenersAndNoClusters) {
  world_.AddService("two");
  EXPECT_THAT(Listeners({}), ElementsAre(kEchoHost + ":7070", GenWorld::Host("two") + ":80"));
  EXPECT_THAT(Names(XdsType::kCds, {}), IsEmpty());
}

TEST_F(Proxyless, AServersListenerRoutesNothingOnward) {
  OwnInstance(9000);
  const Listener listener = Get<Listener>(XdsType::kLds, {kServer}).at(0);
  EXPECT_EQ(listener.name(), kServer);
  EXPECT_EQ(listener.address().socket_address().address(), "10.0.0.9");
  EXPECT_EQ(listener.address().socket_address().port_value(), 9000u);
  EXPECT_EQ(listener.listener_filters_size(), 0);
  ASSERT_EQ(listener.filter_chains_size(), 1);
  const auto& chain = listener.filter_chains(0);
  EXPECT_EQ(chain.name(), "inbound-plaintext");
  EXPECT_FALSE(chain.has_filter_chain_match());
  ASSERT_EQ(chain.filters_size(), 1);
  EXPECT_EQ(chain.filters(0).name(), "inbound-hcmplaintext");
  const Manager manager = Unpack<Manager>(chain.filters(0).typed_config());
  ASSERT_EQ(manager.route_config().virtual_hosts_size(), 1);
  EXPECT_THAT(manager.route_config().virtual_hosts(0).domains(), ElementsAre("*"));
  EXPECT_TRUE(manager.route_config().virtual_hosts(0).routes(0).has_non_forwarding_action());
  ASSERT_EQ(manager.http_filters_size(), 1);
  EXPECT_EQ(manager.http_filters(0).name(), "envoy.filters.http.router");
}

TEST_F(Proxyless, APortThatTheWorkloadDoesNotServeHasNoListener) {
  OwnInstance(9001);
  const std::string prefix(kGrpcServerListenerPrefix);
  EXPECT_THAT(Listeners({kServer, prefix + "10.0.0.9", prefix + "10.0.0.9:x", prefix + "10.0.0.9:99999999999"}),
              IsEmpty());
  EXPECT_THAT(Listeners({prefix + "[::]:9001"}), ElementsAre(prefix + "[::]:9001"));
}

TEST_F(Proxyless, AServerTakesTlsWhenItMustOrWhenClientsAreToldThatItDoes) {
  using Mode = config::PeerAuthentication::Mode;
  OwnInstance(9000);
  EXPECT_FALSE(ServesTls());  // PERMISSIVE
  labels_ = {{"security.istio.io/tlsMode", "istio"}};
  EXPECT_TRUE(ServesTls());
  Serve(Mode::kDisable);
  EXPECT_FALSE(ServesTls());
  labels_.clear();
  Serve(Mode::kStrict);
  EXPECT_TRUE(ServesTls());
  const auto chain = Get<Listener>(XdsType::kLds, {kServer}).at(0).filter_chains(0);
  EXPECT_EQ(chain.name(), "inbound-mtls");
  EXPECT_EQ(chain.transport_socket().name(), "envoy.transport_sockets.tls");
  const auto tls = Unpack<DownstreamTlsContext>(chain.transport_socket().typed_config());
  EXPECT_TRUE(tls.require_client_certificate().value());
}

TEST_F(Proxyless, AServersRequestsAreAuthorizedByDenyThenByAllow) {
  using Rbac = ::envoy::extensions::filters::http::rbac::v3::RBAC;
  OwnInstance(9000);
  config::AuthorizationPolicy policy;
  world_.AddAuthorizationPolicy(policy, "shop", "nothing");  // gRPC is not told of policies without rules
  policy.rules.emplace_back().from.emplace_back().principals.values = {"cluster.local/ns/a/sa/b"};
  world_.AddAuthorizationPolicy(policy, "shop", "allow", {{"istio.io/dry-run", "true"}});
  policy.rules[0].from[0].ip_blocks.values = {"no address"};
  world_.AddAuthorizationPolicy(policy, "shop", "broken");
  policy.action = config::AuthorizationPolicy::Action::kDeny;
  world_.AddAuthorizationPolicy(policy, "shop", "deny");
  policy.action = config::AuthorizationPolicy::Action::kAudit;
  world_.AddAuthorizationPolicy(policy, "shop", "audit");
  const Listener listener = Get<Listener>(XdsType::kLds, {kServer}).at(0);
  const Manager manager = Unpack<Manager>(listener.filter_chains(0).filters(0).typed_config());
  ASSERT_EQ(manager.http_filters_size(), 3);
  EXPECT_EQ(manager.http_filters(0).name(), "envoy.filters.http.rbac.DENY");
  EXPECT_EQ(manager.http_filters(1).name(), "envoy.filters.http.rbac");
  EXPECT_EQ(manager.http_filters(2).name(), "envoy.filters.http.router");
  const Rbac deny = Unpack<Rbac>(manager.http_filters(0).typed_config());
  ASSERT_EQ(deny.rules().policies().size(), 1u);
  EXPECT_TRUE(
      deny.rules().policies().at("shop-deny-0").principals(0).and_ids().ids(0).or_ids().ids(0).has_authenticated());
  const Rbac allow = Unpack<Rbac>(manager.http_filters(1).typed_config());
  ASSERT_EQ(allow.rules().policies().size(), 2u);
  EXPECT_EQ(allow.rules().policies().at("shop-allow-0").principals_size(), 1);
  EXPECT_EQ(allow.rules().policies().at("shop-broken-0").principals_size(), 0);
}

TEST_F(Proxyless, AClusterIsOfEndpointsAloneUnlessARuleSaysMore) {
  const Cluster cluster = Get<Cluster>(XdsType::kCds, {kEcho}).at(0);
  EXPECT_EQ(cluster.name(), kEcho);
  EXPECT_EQ(cluster.type(), Cluster::EDS);
  EXPECT_EQ(cluster.eds_cluster_config().service_name(), kEcho);
  EXPECT_TRUE(cluster.eds_cluster_config().eds_config().has_ads());
  EXPECT_FALSE(cluster.has_transport_socket());  // TLS is never automatic here
  EXPECT_FALSE(cluster.has_connect_timeout());
  EXPECT_EQ(cluster.lb_policy(), Cluster::ROUND_ROBIN);
}

// gRPC's certificate providers, as gRFC A29 reads them. Fields that Envoy's API calls deprecated.
std::string ProviderOf(const google::protobuf::Message& message, const std::string& field) {
  const auto* descriptor = message.GetDescriptor()->FindFieldByName(field);
  const auto* reflection = message.GetReflection();
  if (descriptor == nullptr || !reflection->HasField(message, descriptor)) return "none";
  const auto& instance = reflection->GetMessage(message, descriptor);
  const auto text = [&](const char* name) {
    return instance.GetReflection()->GetString(instance, instance.GetDescriptor()->FindFieldByName(name));
  };
  return text("instance_name") + "/" + text("certificate_name");
}

TEST_F(Proxyless, IstioMutualNamesTheClientsOwnProvidersAndTheServersIdentities) {
  world_.SetEndpoints("c1", "echo", {GenWorld::Endpoint("10.1.0.1", GenWorld::Workload("c1"))});
  world_.discovery.services.clear();
  world_.AddService("echo", "shop", {"http", 7070, Protocol::kGrpc});
  config::DestinationRule rule;
  rule.host = kEchoHost;
  rule.traffic_policy.emplace().tls.emplace().mode = TlsMode::kIstioMutual;
  world_.AddRule("echo", rule);
  const Cluster cluster = Get<Cluster>(XdsType::kCds, {kEcho}).at(0);
  EXPECT_EQ(cluster.transport_socket().name(), "envoy.transport_sockets.tls");
  const auto tls = Unpack<UpstreamTlsContext>(cluster.transport_socket().typed_config());
  const CommonTlsContext& common = tls.common_tls_context();
  EXPECT_EQ(ProviderOf(common, "tls_certificate_certificate_provider_instance"), "default/default");
  EXPECT_EQ(ProviderOf(common.combined_validation_context(), "validation_context_certificate_provider_instance"),
            "default/ROOTCA");
  EXPECT_THAT(common.combined_validation_context().default_validation_context().DebugString(),
              testing::HasSubstr("exact: \"spiffe://cluster.local/ns/shop/sa/web\""));
  EXPECT_EQ(common.alpn_protocols_size(), 0);

  rule.traffic_policy->tls->mode = TlsMode::kSimple;
  world_.AddRule("echo", rule);
  EXPECT_FALSE(Get<Cluster>(XdsType::kCds, {kEcho}).at(0).has_transport_socket());
}

TEST_F(Proxyless, SubsetsAreGivenAsAskedForEachWithItsPolicy) {
  config::DestinationRule rule;
  rule.host = kEchoHost;
  for (const char* name : {"v1", "v2"}) rule.subsets.emplace_back().name = name;
  auto& hash = rule.subsets[1].traffic_policy.emplace().load_balancer.emplace().consistent_hash.emplace();
  hash.minimum_ring_size = 7;
  world_.AddRule("echo", rule);
  const std::string v1 = "outbound|7070|v1|" + kEchoHost, v2 = "outbound|7070|v2|" + kEchoHost;
  EXPECT_THAT(Names(XdsType::kCds, {v2, kEcho, v1}), ElementsAre(kEcho, v1, v2));
  const auto two = Get<Cluster>(XdsType::kCds, {"outbound|7070|v3|" + kEchoHost, v2});
  ASSERT_EQ(two.size(), 1u);
  EXPECT_EQ(two[0].name(), v2);
  EXPECT_EQ(two[0].lb_policy(), Cluster::RING_HASH);
  EXPECT_EQ(two[0].ring_hash_lb_config().minimum_ring_size().value(), 7u);
}

TEST_F(Proxyless, AClusterOfNoServiceIsThereWithoutEndpointsAndNamesThatAreNoneAreNot) {
  const std::string nobody = "outbound|80||nobody.shop.svc.cluster.local";
  EXPECT_THAT(Names(XdsType::kCds, {nobody, "nonsense", "outbound|x||" + kEchoHost, "outbound|80||"}),
              ElementsAre(nobody));
  EXPECT_THAT(Names(XdsType::kRds, {"80", "nonsense", kEcho}), ElementsAre(kEcho));
}

TEST_F(Proxyless, RoutesHoldAllHostsOfThePortWithPortsInTheirDomains) {
  world_.AddService("two", "shop", {"grpc", 7070, Protocol::kGrpc});
  world_.AddService("three");
  const RoutesPb routes = Get<RoutesPb>(XdsType::kRds, {kEcho}).at(0);
  EXPECT_EQ(routes.name(), kEcho);
  EXPECT_FALSE(routes.has_validate_clusters());
  EXPECT_FALSE(routes.ignore_port_in_host_matching());
  EXPECT_FALSE(routes.has_max_direct_response_body_size_bytes());
  ASSERT_EQ(routes.virtual_hosts_size(), 2);  // no catch-all either
  EXPECT_THAT(routes.virtual_hosts(0).domains(),
              ElementsAre(kEchoHost, kEchoHost + ":7070", "echo", "echo:7070", "echo.shop.svc", "echo.shop.svc:7070",
                          "echo.shop", "echo.shop:7070", "240.1.2.3", "240.1.2.3:7070"));
  EXPECT_EQ(routes.virtual_hosts(0).routes(0).route().cluster(), kEcho);
  EXPECT_EQ(routes.virtual_hosts(1).name(), GenWorld::Host("two") + ":7070");
}

TEST_F(Proxyless, ATimeoutIsTheStreamsSinceGrpcReadsNoOther) {
  config::VirtualService spec;
  spec.hosts = {kEchoHost, "elsewhere.com"};
  config::HttpRoute& http = spec.http.emplace_back();
  http.route.push_back({{kEchoHost, "v1", 0}, true, 0, std::nullopt});
  http.timeout = 3s;
  auto rule = std::make_shared<config::TypedConfig<config::VirtualService>>();
  rule->meta.kind = config::Kind::kVirtualService;
  rule->meta.name = "vs";
  rule->meta.ns = "shop";
  rule->spec = std::move(spec);
  world_.configs.Put(config::VirtualServiceRef(std::move(rule)));
  const RoutesPb routes = Get<RoutesPb>(XdsType::kRds, {kEcho}).at(0);
  const auto find = [&](const std::string& name) {
    return *std::find_if(routes.virtual_hosts().begin(), routes.virtual_hosts().end(),
                         [&](const auto& host) { return host.name() == name; });
  };
  const auto action = find(kEchoHost + ":7070").routes(0).route();
  EXPECT_EQ(action.cluster(), "outbound|7070|v1|" + kEchoHost);
  EXPECT_EQ(action.max_stream_duration().max_stream_duration().seconds(), 3);
  EXPECT_EQ(action.timeout().seconds(), 3);
  EXPECT_EQ(action.DebugString().find("max_grpc_timeout"), std::string::npos);
  EXPECT_THAT(find("elsewhere.com:7070").domains(), ElementsAre("elsewhere.com", "elsewhere.com:7070"));
}

TEST_F(Proxyless, APushOfEndpointsAloneGeneratesThemAgainToo) {
  push_ = world_.Push();
  Proxy proxy = GenWorld::Connect(*push_, "c1");
  proxy.metadata.generator = kGrpcGenerator;
  WatchedResource watched;
  watched.type = XdsType::kCds;
  watched.resource_names = std::vector<std::string>{kEcho};
  PushRequest request = GenWorld::Request(push_);
  request.full = false;
  EXPECT_TRUE(MakeProxylessGenerator()->Generate(proxy, watched, request).send);
  watched.type = XdsType::kNds;
  EXPECT_FALSE(MakeProxylessGenerator()->Generate(proxy, watched, request).send);
}

TEST(SplitHostPort, TakesWhatGoTakes) {
  std::string host, port;
  EXPECT_TRUE(SplitHostPort("a.b:80", &host, &port));
  EXPECT_EQ(host + " " + port, "a.b 80");
  EXPECT_TRUE(SplitHostPort("[::1]:80", &host, &port));
  EXPECT_EQ(host + " " + port, "::1 80");
  EXPECT_TRUE(SplitHostPort("a:", &host, &port));
  EXPECT_EQ(port, "");
  for (const char* bad : {"a", "::1:80", "[::1]", "[::1]80", "a]:80", "[a:80", "a:[80]", "", "[[::1]]:80"}) {
    EXPECT_FALSE(SplitHostPort(bad, &host, &port)) << bad;
  }
}

}  // namespace
}  // namespace wavetank::pilot
