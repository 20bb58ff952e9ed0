#include "core/profile/changes.h"
#include "tests/core/push/mesh_fixture.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class MergeGatewaysTest : public MeshTest {
 protected:
  // "bind:port/protocol" of each listener with the Gateways' server names.
  std::vector<std::string> Listeners(const MergedGateway& merged) {
    std::vector<std::string> out;
    for (const ServerPort& port : merged.server_ports) {
      std::string text = port.bind + ":" + std::to_string(port.number) + "/" + port.protocol;
      for (const GatewayServer* server : merged.merged_servers.at(port).servers) text += " " + server->server.name;
      out.push_back(text);
    }
    return out;
  }
  std::shared_ptr<const MergedGateway> Merge() {
    Proxy router = Router("istio-system", {{"istio", "gw"}});
    router.verified_identity = "spiffe://td/ns/istio-system/sa/gw";
    discovery.proxy_instances = instances;
    SetServiceInstances(router, discovery);
    SetGatewaysForProxy(router, *Push());
    return router.merged_gateway;
  }
  void Gateway(std::string_view name, std::string_view servers, int second = 0) {
    Put("Gateway", "istio-system", name, "selector: {istio: gw}\nservers:\n" + std::string(servers), second);
  }
  std::vector<ServiceInstance> instances;
};

TEST_F(MergeGatewaysTest, OnlyGatewaysWhoseSelectorMatchesCount) {
  EXPECT_EQ(Merge(), nullptr);
  Put("Gateway", "x", "other", "selector: {istio: other}\nservers: [{port: {number: 1, protocol: TCP}}]");
  EXPECT_EQ(Merge(), nullptr);
  Put("Gateway", "x", "any", "servers: [{name: any, port: {number: 2, protocol: TCP, name: t}, hosts: [\"*\"]}]");
  EXPECT_THAT(Listeners(*Merge()), ElementsAre(":2/TCP any"));
}

TEST_F(MergeGatewaysTest, ScopedToNamespacesAGatewayIsOfItsOwnNamespacesRoutersAlone) {
  Put("Gateway", "x", "any", "servers: [{name: any, port: {number: 2, protocol: TCP, name: t}, hosts: [\"*\"]}]");
  Gateway("own", "- {name: own, port: {number: 3, protocol: TCP, name: t}, hosts: [\"*\"]}");
  EXPECT_THAT(Listeners(*Merge()), ElementsAre(":2/TCP any", ":3/TCP own"));
  env.features.gateways_by_namespace = true;
  EXPECT_THAT(Listeners(*Merge()), ElementsAre(":3/TCP own"));
}

TEST_F(MergeGatewaysTest, AutoPassthroughIsSeen) {
  Gateway("cross-network",
          "- {name: c, port: {number: 15443, name: tls, protocol: TLS}, tls: {mode: AUTO_PASSTHROUGH}, hosts: "
          "[\"*.local\"]}");
  const auto merged = Merge();
  EXPECT_TRUE(merged->contains_auto_passthrough_gateways);
  EXPECT_THAT(Listeners(*merged), ElementsAre(":15443/TLS c"));
  const GatewayServer* server = merged->merged_servers.begin()->second.servers[0];
  EXPECT_THAT(server->sni_hosts, ElementsAre("*.local"));
  EXPECT_EQ(server->gateway_name, "istio-system/cross-network");
  EXPECT_EQ(server->route_name, "");
}

TEST_F(MergeGatewaysTest, HttpServersOfOnePortShareARoute) {
  Gateway("a", "- {name: one, port: {number: 80, name: http, protocol: HTTP}, hosts: [a]}");
  Gateway("b",
          "- {name: two, port: {number: 80, name: http2, protocol: HTTP2}, hosts: [b]}\n"
          "- {name: three, port: {number: 80, name: tcp, protocol: TCP}, hosts: [c]}",
          1);
  const auto merged = Merge();
  EXPECT_THAT(Listeners(*merged), ElementsAre(":80/HTTP one two"));
  EXPECT_THAT(merged->servers_by_route_name.at("http.80"), SizeIs(2));
  EXPECT_THAT(merged->port_map.at(80), ElementsAre(80));
}

TEST_F(MergeGatewaysTest, AnotherBindIsAnotherListener) {
  Gateway("a",
          "- {name: one, port: {number: 80, name: http, protocol: HTTP}, hosts: [a]}\n"
          "- {name: two, bind: 1.1.1.1, port: {number: 80, name: http, protocol: HTTP}, hosts: [a]}");
  const auto merged = Merge();
  EXPECT_THAT(Listeners(*merged), ElementsAre(":80/HTTP one", "1.1.1.1:80/HTTP two"));
  EXPECT_EQ(merged->merged_servers.at({80, "HTTP", "1.1.1.1"}).route_name, "http.80.1.1.1.1");
}

// istiod: mergeGateways, addPlainTextServer.
TEST_F(MergeGatewaysTest, AServerWithoutTlsJoinsTheFirstOfItsPortAndSince129TheLastOneOfItsBind) {
  Profile profile;
  env.profile = &profile;
  Gateway("a",
          "- {name: all, port: {number: 80, name: http, protocol: HTTP}, hosts: [a]}\n"
          "- {name: grpc, bind: 1.1.1.1, port: {number: 80, name: grpc, protocol: GRPC}, hosts: [a]}\n"
          "- {name: http, bind: 1.1.1.1, port: {number: 80, name: http, protocol: HTTP}, hosts: [b]}");
  EXPECT_THAT(Listeners(*Merge()), ElementsAre(":80/HTTP all", "1.1.1.1:80/GRPC grpc", "1.1.1.1:80/HTTP http"));
  profile.Set(Change::kLastPlainBindMerges);
  const auto merged = Merge();
  EXPECT_THAT(Listeners(*merged), ElementsAre(":80/HTTP all", "1.1.1.1:80/GRPC grpc http"));
  EXPECT_THAT(merged->servers_by_route_name.at("http.80.1.1.1.1"), SizeIs(2));
}

TEST_F(MergeGatewaysTest, AServerWithoutTlsBehindOneWithItIsServedSince129) {
  Profile profile;
  env.profile = &profile;
  Gateway("a",
          "- {name: tls, port: {number: 443, name: x, protocol: TLS}, tls: {mode: PASSTHROUGH}, hosts: [a]}\n"
          "- {name: plain, port: {number: 443, name: z, protocol: HTTP}, hosts: [c]}");
  EXPECT_THAT(Merge()->servers_by_route_name, SizeIs(1));
  EXPECT_THAT(Merge()->unserved, SizeIs(1));
  profile.Set(Change::kLastPlainBindMerges);
  const auto merged = Merge();
  EXPECT_THAT(merged->unserved, IsEmpty());
  EXPECT_EQ(merged->merged_servers.at({443, "HTTP", ""}).route_name, "http.443") << "it has a filter chain of its own";
}

TEST_F(MergeGatewaysTest, TlsServersWithAHostThatIsTakenAreSkipped) {
  Gateway("a",
          "- {name: one, port: {number: 443, name: x, protocol: HTTPS}, tls: {mode: SIMPLE}, hosts: [a, b]}\n"
          "- {name: two, port: {number: 443, name: 'y', protocol: HTTPS}, tls: {mode: SIMPLE}, hosts: [b, c]}\n"
          "- {name: three, port: {number: 443, name: z, protocol: TLS}, tls: {mode: PASSTHROUGH}, hosts: [c]}");
  const auto merged = Merge();
  EXPECT_THAT(Listeners(*merged), ElementsAre(":443/HTTPS one", ":443/TLS three"));
  EXPECT_THAT(merged->servers_by_route_name, SizeIs(1));
  EXPECT_EQ(merged->servers_by_route_name.begin()->first, "https.443.x.a.istio-system");
}

TEST_F(MergeGatewaysTest, HttpsServersOfOneNameAreNotMerged) {
  Gateway("a",
          "- {name: one, port: {number: 443, name: x, protocol: HTTPS}, tls: {mode: SIMPLE}, hosts: [a]}\n"
          "- {name: two, port: {number: 443, name: x, protocol: HTTPS}, tls: {mode: SIMPLE}, hosts: [b]}");
  EXPECT_THAT(Listeners(*Merge()), ElementsAre(":443/HTTPS one"));
}

TEST_F(MergeGatewaysTest, WhatAFirstServerInPlainTextKeepsOutIsTold) {
  const auto unserved = [&] {
    const auto merged = Merge();
    std::vector<std::string> out;
    for (const auto& [server, first] : merged->unserved)
      out.push_back(server->server.name + " by " + first->server.name);
    return out;
  };
  Gateway("a",
          "- {name: http, port: {number: 80, name: http, protocol: HTTP}, hosts: [a]}\n"
          "- {name: grpc, port: {number: 80, name: grpc, protocol: GRPC}, hosts: [b]}\n"
          "- {name: tcp, port: {number: 80, name: tcp, protocol: TCP}, hosts: [c]}\n"
          "- {name: bound, bind: 1.1.1.1, port: {number: 80, name: h, protocol: HTTP}, hosts: [c]}\n"
          "- {name: tls, port: {number: 443, name: x, protocol: TLS}, tls: {mode: PASSTHROUGH}, hosts: [a]}\n"
          "- {name: clear, port: {number: 443, name: 'y', protocol: TCP}, hosts: [b]}\n"
          "- {name: late, port: {number: 443, name: z, protocol: HTTP}, hosts: [c]}");
  EXPECT_THAT(unserved(), ElementsAre("tcp by http", "late by tls"));
  Gateway("b",
          "- {name: one, port: {number: 90, name: t, protocol: TCP}, hosts: [a]}\n"
          "- {name: two, port: {number: 90, name: u, protocol: TCP}, hosts: [b]}",
          1);
  EXPECT_THAT(unserved(), ElementsAre("tcp by http", "late by tls", "two by one"));
}

TEST_F(MergeGatewaysTest, PortsAreTheTargetPortsOfTheRoutersService) {
  const auto service = AddService("gw", "istio-system", {80});
  instances.push_back({service, service->ports[0], {}});
  instances.back().endpoint.endpoint_port = 8080;
  Gateway("a", "- {name: one, port: {number: 80, name: http, protocol: HTTP}, hosts: [a]}");
  EXPECT_THAT(Listeners(*Merge()), ElementsAre(":8080/HTTP one"));
  EXPECT_THAT(Merge()->port_map.at(8080), ElementsAre(80));
  service->attributes.labels["experimental.istio.io/disable-gateway-port-translation"] = "true";
  EXPECT_THAT(Listeners(*Merge()), ElementsAre(":80/HTTP one"));
}

TEST_F(MergeGatewaysTest, AGatewayThatNamesServicesIsThatOfTheirPodsAtAllTheirPorts) {
  const auto put = [&](std::string_view services) {
    std::string yaml = config::ConfigYaml("Gateway", "istio-system", "a",
                                          "servers:\n"
                                          "- {name: one, port: {number: 80, name: http, protocol: HTTP}, hosts: [a]}\n"
                                          "- {name: two, port: {number: 90, name: b, protocol: HTTP}, hosts: [a]}");
    yaml.insert(yaml.find("\nspec:"),
                "\n  annotations: {internal.istio.io/gateway-service: \"" + std::string(services) + "\"}");
    configs.Put(config::ParseYaml(yaml));
  };
  put("other.istio-system.svc.cluster.local");
  const auto service = AddService("gw", "istio-system", {80});
  for (const uint32_t port : {8080u, 8081u}) {
    instances.push_back({service, service->ports[0], {}});
    instances.back().endpoint.endpoint_port = port;
  }
  EXPECT_EQ(Merge(), nullptr) << "its selector, which takes all, does not count";
  put("gw.istio-system.svc.cluster.local,x.example.com");
  EXPECT_THAT(Listeners(*Merge()), ElementsAre(":8080/HTTP one", ":8081/HTTP one"))
      << "and a port that the Service does not have is none";
}

TEST_F(MergeGatewaysTest, HostsLoseWhatTheyNeedNot) {
  Gateway("a",
          "- {name: one, port: {number: 80, name: http, protocol: HTTP}, hosts: [./a, \"*/b\", x/c, d]}\n"
          "- {name: two, port: {number: 81, name: http, protocol: HTTP}, hosts: [a, \"*/*\"]}\n"
          "- {name: no-port, hosts: [a]}");
  const auto merged = Merge();
  EXPECT_THAT(merged->merged_servers.at({80, "HTTP", ""}).servers[0]->server.hosts,
              ElementsAre("istio-system/a", "b", "x/c", "d"));
  EXPECT_THAT(merged->merged_servers.at({81, "HTTP", ""}).servers[0]->server.hosts, ElementsAre("*"));
}

TEST_F(MergeGatewaysTest, CredentialsOfTheRoutersOwnNamespaceAreVerified) {
  Gateway(
      "a",
      "- {port: {number: 443, name: x, protocol: HTTPS}, tls: {mode: MUTUAL, credentialName: c}, hosts: [a]}\n"
      "- {port: {number: 444, name: x, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: \"kubernetes://o/c\"}, "
      "hosts: [a]}");
  Put("Gateway", "other", "b",
      "selector: {istio: gw}\nservers: [{port: {number: 445, name: x, protocol: HTTPS}, tls: {mode: SIMPLE, "
      "credentialName: d}, hosts: [a]}]");
  EXPECT_THAT(Merge()->verified_certificate_references, ElementsAre("kubernetes://c", "kubernetes://c-cacert"));
}

TEST(GatewayRouteNameTest, IsReadBack) {
  const GatewayRouteName https = ParseGatewayRdsRouteName("https.443.name.gw.ns");
  EXPECT_EQ(https.port_number, 443);
  EXPECT_EQ(https.port_name, "name");
  EXPECT_EQ(https.gateway_name, "gw");
  EXPECT_EQ(https.gateway_namespace, "ns");
  EXPECT_EQ(ParseGatewayRdsRouteName("http.8080.1.1.1.1").port_number, 8080);
  EXPECT_EQ(ParseGatewayRdsRouteName("80").port_number, 0);
}

}  // namespace
}  // namespace wavetank::pilot
