#include "core/registry/service_conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/profile/profile.h"
#include "tests/core/registry/objects.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::shared_ptr<Service> Converted(const json& object) {
  const kube::ObjectRef parsed = kube::Object::FromJson(object).value();
  return ConvertKubeService(*parsed, kube::ParseService(*parsed), "cluster.local", ClusterId("c1"), "cluster.local");
}

TEST(ConvertProtocolTest, TheNameUpToItsHyphenDecidesUnlessAppProtocolDoes) {
  EXPECT_EQ(ConvertProtocol(80, "http", "TCP", ""), Protocol::kHttp);
  EXPECT_EQ(ConvertProtocol(80, "http2-api", "TCP", ""), Protocol::kHttp2);
  EXPECT_EQ(ConvertProtocol(80, "tcp", "TCP", "grpc"), Protocol::kGrpc);
  EXPECT_EQ(ConvertProtocol(80, "gRPC-Web-api", "TCP", ""), Protocol::kGrpcWeb);
  EXPECT_EQ(ConvertProtocol(80, "web", "TCP", ""), Protocol::kUnsupported);
  EXPECT_EQ(ConvertProtocol(80, "http", "UDP", "http"), Protocol::kUdp);
}

TEST(ConvertProtocolTest, PortsWhereTheServerSpeaksFirstAreTcp) {
  for (const int port : {25, 53, 3306, 27017}) EXPECT_EQ(ConvertProtocol(port, "web", "TCP", ""), Protocol::kTcp);
  EXPECT_EQ(ConvertProtocol(3306, "http", "TCP", ""), Protocol::kHttp) << "a name counts more";
}

TEST(ConvertKubeServiceTest, HasAddressPortsAndSelector) {
  const auto service = Converted(ServiceOf("web", {{"app", "web"}}, "10.96.0.9"));
  EXPECT_EQ(service->hostname, "web.shop.svc.cluster.local");
  EXPECT_EQ(service->default_address, "10.96.0.9");
  EXPECT_THAT(service->cluster_vips, ElementsAre(Pair(ClusterId("c1"), ElementsAre("10.96.0.9"))));
  ASSERT_EQ(service->ports.size(), 1u);
  EXPECT_EQ(service->ports[0].protocol, Protocol::kHttp);
  EXPECT_THAT(service->attributes.label_selectors, ElementsAre(Pair("app", "web")));
  EXPECT_EQ(service->resolution, Resolution::kClientSideLb);
}

TEST(ConvertKubeServiceTest, AHeadlessServiceHasNoAddressAndPassesThrough) {
  const auto service = Converted(ServiceOf("web", {{"app", "web"}}, "None"));
  EXPECT_TRUE(service->Passthrough());
  EXPECT_EQ(service->default_address, "0.0.0.0");
}

TEST(ConvertKubeServiceTest, ASecondFamilysAddressFollowsTheFirst) {
  json object = ServiceOf("web", {{"app", "web"}}, "10.96.0.9");
  object["spec"]["clusterIPs"] = {"10.96.0.9", "fd00::9", "fd00::a"};
  EXPECT_THAT(Converted(object)->cluster_vips.at(ClusterId("c1")), ElementsAre("10.96.0.9", "fd00::9", "fd00::a"));
}

TEST(ConvertKubeServiceTest, ALoadBalancersAddressesAreItsIngressThenItsExternalIps) {
  json object = ServiceOf("gw", {{"app", "gw"}});
  object["spec"]["type"] = "LoadBalancer";
  object["spec"]["externalIPs"] = json::array({"203.0.113.9"});
  object["status"] = {{"loadBalancer", {{"ingress", {{{"hostname", "gw.example"}}, {{"ip", "198.51.100.1"}}}}}}};
  EXPECT_THAT(Converted(object)->attributes.cluster_external_addresses,
              ElementsAre(Pair(ClusterId("c1"), ElementsAre("gw.example", "198.51.100.1", "203.0.113.9"))));
}

TEST(ConvertKubeServiceTest, AnnotationsNameServiceAccountsAndWhoSeesIt) {
  json object = ServiceOf("web", {{"app", "web"}});
  object["metadata"]["annotations"] = {{"alpha.istio.io/canonical-serviceaccounts", "a,b"},
                                       {"alpha.istio.io/kubernetes-serviceaccounts", "web"},
                                       {"networking.istio.io/exportTo", ".,other"}};
  const auto service = Converted(object);
  EXPECT_THAT(service->service_accounts, ElementsAre("a", "b", "spiffe://cluster.local/ns/shop/sa/web"));
  EXPECT_TRUE(service->attributes.export_to.is_private);
  EXPECT_THAT(service->attributes.export_to.namespaces, ElementsAre("other"));
}

TEST(AugmentLabelsTest, AddsWhatIsKnownAndNothingElse) {
  Labels labels = {{"app", "web"}};
  AugmentLabels(labels, ClusterId("c1"), "r/z", "", NetworkId("n1"));
  EXPECT_THAT(labels, ElementsAre(Pair("app", "web"), Pair("topology.istio.io/cluster", "c1"),
                                  Pair("topology.istio.io/network", "n1"), Pair("topology.kubernetes.io/region", "r"),
                                  Pair("topology.kubernetes.io/zone", "z")));
}

TEST(SelectorMatchesTest, AnEmptySelectorSelectsNothing) {
  EXPECT_FALSE(SelectorMatches({}, {{"app", "web"}}));
  EXPECT_TRUE(SelectorMatches({{"app", "web"}}, {{"app", "web"}, {"version", "v1"}}));
  EXPECT_FALSE(SelectorMatches({{"app", "web"}, {"version", "v2"}}, {{"app", "web"}, {"version", "v1"}}));
}

TEST(ParseNodeSelectorTest, OneValueThatIsNoTextRefusesTheWhole) {
  EXPECT_THAT(ParseNodeSelector(R"({"edge": "yes"})"), ElementsAre(Pair("edge", "yes")));
  EXPECT_THAT(ParseNodeSelector(R"({"edge": "yes", "n": 1})"), IsEmpty());
  EXPECT_THAT(ParseNodeSelector("[1]"), IsEmpty());
  EXPECT_THAT(ParseNodeSelector("{"), IsEmpty());
}

TEST(LocalityFromLabelTest, DotsBecomeSlashesUnlessSlashesAreThere) {
  EXPECT_EQ(LocalityFromLabel("r.z.s"), "r/z/s");
  EXPECT_EQ(LocalityFromLabel("r/z.1/s"), "r/z.1/s");
}

TEST(EndpointOfWorkloadTest, ANamedPortOfTheWorkloadBeatsTheServicesTarget) {
  WorkloadInstance workload;
  workload.endpoint.profile = std::make_shared<EndpointProfile>();
  const Port port{"http", 80, Protocol::kHttp};
  EXPECT_EQ(EndpointOfWorkload(workload, port, {8080, "http", false})->endpoint_port, 8080u);
  EXPECT_EQ(EndpointOfWorkload(workload, port, {0, "web", true}), std::nullopt) << "a name that it does not have";
  workload.port_map = {{"http", 9090}, {"web", 9091}};
  EXPECT_EQ(EndpointOfWorkload(workload, port, {8080, "http", false})->endpoint_port, 9090u);
  EXPECT_EQ(EndpointOfWorkload(workload, port, {0, "web", true})->endpoint_port, 9091u);
  EXPECT_EQ(EndpointOfWorkload(workload, port, {})->endpoint_port, 80u);
}

WorkloadInstance VmAt(const std::string& ns, const std::string& name) {
  WorkloadInstance out;
  out.name = name;
  out.ns = ns;
  out.endpoint.address = "192.0.2.1";
  return out;
}

TEST(WorkloadForProxyTest, OfSeveralAtOneAddressTheProxysOwnNameThenItsNamespaceDecides) {
  const std::map<kube::NamespacedName, WorkloadInstance> workloads = {
      {{"a", "vm"}, VmAt("a", "vm")}, {{"b", "vm"}, VmAt("b", "vm")}, {{"b", "vm2"}, VmAt("b", "vm2")}};
  Proxy proxy;
  proxy.ip_addresses = {"192.0.2.1"};
  proxy.id = "other.c";
  EXPECT_EQ(WorkloadForProxy(workloads, proxy), &workloads.at({"a", "vm"}));
  proxy.config_namespace = "b";
  EXPECT_EQ(WorkloadForProxy(workloads, proxy), &workloads.at({"b", "vm"}));
  proxy.id = "vm2.b";
  proxy.metadata.ns = "b";
  EXPECT_EQ(WorkloadForProxy(workloads, proxy), &workloads.at({"b", "vm2"}));
  proxy.ip_addresses = {"192.0.2.2"};
  EXPECT_EQ(WorkloadForProxy(workloads, proxy), nullptr);
}

TEST(TrafficDistributionTest, TheFieldCountsBeforeAnnotationsAndTheServicesBeforeItsNamespaces) {
  using T = TrafficDistribution;
  const Profile last = *ParseProfile("istio-1.30");
  const auto annotated = [](const char* value) { return Labels{{"networking.istio.io/traffic-distribution", value}}; };
  EXPECT_EQ(DistributionOf("PreferClose", {}, {}, last), T::kPreferSameZone);
  EXPECT_EQ(DistributionOf("PreferSameNode", annotated("preferclose"), {}, last), T::kPreferSameNode);
  EXPECT_EQ(DistributionOf("", annotated("PreferSameZone"), annotated("PreferSameNode"), last), T::kPreferSameZone);
  EXPECT_EQ(DistributionOf("", annotated("nonsense"), annotated("PreferSameNode"), last), T::kAny);
  EXPECT_EQ(DistributionOf("nonsense", {}, annotated("PreferSameNode"), last), T::kPreferSameNode);
}

TEST(TrafficDistributionTest, ReleasesKnowMoreAndMoreOfIt) {
  using T = TrafficDistribution;
  const Labels annotated = {{"networking.istio.io/traffic-distribution", "PreferClose"}};
  EXPECT_EQ(DistributionOf("PreferClose", annotated, annotated, *ParseProfile("istio-1.24")), T::kAny);
  const Profile first = *ParseProfile("istio-1.24+traffic-distribution");
  EXPECT_EQ(DistributionOf("PreferClose", {}, {}, first), T::kPreferClose);
  EXPECT_EQ(DistributionOf("", annotated, {}, first), T::kPreferClose);
  EXPECT_EQ(DistributionOf("PreferSameZone", {}, {}, first), T::kAny);
  EXPECT_EQ(DistributionOf("", {}, annotated, first), T::kAny);
}

}  // namespace
}  // namespace wavetank::pilot
