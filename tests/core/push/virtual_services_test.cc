#include "core/profile/changes.h"
#include "core/push/delegates.h"
#include "core/push/virtual_service_index.h"
#include "tests/core/push/mesh_fixture.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class VirtualServicesTest : public MeshTest {};

TEST_F(VirtualServicesTest, GatewayNamesInAllTheirForms) {
  EXPECT_EQ(ResolveGatewayName("gw", "ns"), "ns/gw");
  EXPECT_EQ(ResolveGatewayName("./gw", "ns"), "ns/gw");
  EXPECT_EQ(ResolveGatewayName("other/gw", "ns"), "other/gw");
  EXPECT_EQ(ResolveGatewayName("gw.other.svc.cluster.local", "ns"), "other/gw");
  EXPECT_EQ(ResolveGatewayName("gw.other", "ns"), "other/gw");
}

TEST_F(VirtualServicesTest, BoundToTheMeshUnlessGatewaysAreNamed) {
  Put("VirtualService", "ns", "plain", "hosts: [a]");
  Put("VirtualService", "ns", "gateway", "hosts: [a]\ngateways: [gw]");
  Put("VirtualService", "ns", "both", "hosts: [a]\ngateways: [gw, mesh]");
  const PushContextRef push = Push();
  EXPECT_THAT(ConfigNames(push->VirtualServicesForGateway("x", "mesh")), ElementsAre("ns/both", "ns/plain"));
  EXPECT_THAT(ConfigNames(push->VirtualServicesForGateway("x", "ns/gw")), ElementsAre("ns/both", "ns/gateway"));
}

TEST_F(VirtualServicesTest, ExportToDecidesWhoSeesThem) {
  Put("VirtualService", "ns", "own", "hosts: [a]\nexportTo: [\".\"]");
  Put("VirtualService", "ns", "friend", "hosts: [a]\nexportTo: [x]");
  Put("VirtualService", "ns", "hidden", "hosts: [a]\nexportTo: [\"~\"]");
  Put("VirtualService", "ns", "all", "hosts: [a]\nexportTo: [\"*\"]");
  const PushContextRef push = Push();
  EXPECT_THAT(ConfigNames(push->VirtualServicesForGateway("ns", "mesh")), ElementsAre("ns/own", "ns/all"));
  EXPECT_THAT(ConfigNames(push->VirtualServicesForGateway("x", "mesh")), ElementsAre("ns/friend", "ns/all"));
  EXPECT_THAT(ConfigNames(push->VirtualServicesForGateway("y", "mesh")), ElementsAre("ns/all"));
}

// istiod: push_context.go, initVirtualServices. A real 1.30.3 gave the route to the namespace that the mesh names.
TEST_F(VirtualServicesTest, ADefaultExportThatNamesNamespacesCountsSince1303) {
  Put("VirtualService", "ns", "silent", "hosts: [a]");
  Put("VirtualService", "ns", "said", "hosts: [a]\nexportTo: [\".\"]");
  Profile profile;
  env.profile = &profile;
  const auto seen = [&](const char* defaults, const char* from) {
    Mesh(defaults);
    return ConfigNames(Push()->VirtualServicesForGateway(from, "mesh"));
  };
  EXPECT_THAT(seen("defaultVirtualServiceExportTo: [x]", "x"), ElementsAre());
  profile.Set(Change::kDefaultExportsNameNamespaces);
  EXPECT_THAT(seen("defaultVirtualServiceExportTo: [x]", "x"), ElementsAre("ns/silent"));
  EXPECT_THAT(seen("defaultVirtualServiceExportTo: [x]", "ns"), ElementsAre("ns/said"));
  EXPECT_THAT(seen("defaultVirtualServiceExportTo: [\".\", ns]", "ns"), ElementsAre("ns/said", "ns/silent"))
      << "its own namespace, once";
  EXPECT_THAT(seen("defaultVirtualServiceExportTo: [\"~\"]", "ns"), ElementsAre("ns/said"));
  EXPECT_THAT(seen("{}", "x"), ElementsAre("ns/silent"));
}

// istiod: push_context.go, VirtualServicesForGateway ("consumer override"); virtualservice.go, SelectVirtualServices.
TEST_F(VirtualServicesTest, OwnRoutesOfTheGatewayApiComeFirstForSidecarsWithASidecarSince124) {
  AddService("a", "b");
  Put("VirtualService", "b", "older", "hosts: [a.b.svc.cluster.local]", 1);
  const auto route = std::get<config::VirtualServiceRef>(
      config::ParseYaml(config::ConfigYaml("VirtualService", "x", "own", "hosts: [a.b.svc.cluster.local]", 2)));
  auto own = std::make_shared<config::TypedConfig<config::VirtualService>>(*route);
  own->meta.annotations["internal.istio.io/route-semantics"] = "gateway";
  configs.Put(config::VirtualServiceRef(std::move(own)));
  Profile profile;
  profile.Set(Change::kGatewayApiMeshPorts);
  env.profile = &profile;
  const auto rules = [&] {
    const PushContextRef push = Push();
    Proxy proxy = Sidecar("x");
    SetSidecarScope(proxy, *push);
    return ConfigNames(proxy.sidecar_scope->egress_listeners.at(0).virtual_services);
  };
  EXPECT_THAT(rules(), ElementsAre("x/own", "b/older"));
  Put("Sidecar", "x", "default", "egress: [{hosts: [\"*/*\"]}]");
  EXPECT_THAT(rules(), ElementsAre("b/older", "x/own"));
  profile.Set(Change::kSidecarsOwnRoutesFirst);
  EXPECT_THAT(rules(), ElementsAre("x/own", "b/older"));
}

TEST_F(VirtualServicesTest, ShortNamesAreResolvedEverywhere) {
  Put("VirtualService", "ns", "vs", R"(hosts: [a, x.example]
http:
- match: [{gateways: [gw]}]
  route: [{destination: {host: b}}]
  mirror: {host: c}
tcp: [{route: [{destination: {host: d}}]}]
tls: [{match: [{sniHosts: [e], gateways: [mesh]}], route: [{destination: {host: e}}]}])");
  const config::VirtualService spec = Push()->VirtualServicesForGateway("ns", "mesh")[0]->spec;
  EXPECT_THAT(spec.hosts, ElementsAre("a.ns.svc.cluster.local", "x.example"));
  EXPECT_THAT(spec.http[0].match[0].gateways, ElementsAre("ns/gw"));
  EXPECT_EQ(spec.http[0].route[0].destination.host, "b.ns.svc.cluster.local");
  EXPECT_EQ(spec.http[0].mirror->host, "c.ns.svc.cluster.local");
  EXPECT_EQ(spec.tcp[0].route[0].destination.host, "d.ns.svc.cluster.local");
  EXPECT_THAT(spec.tls[0].match[0].gateways, ElementsAre("mesh"));
  EXPECT_THAT(spec.tls[0].match[0].sni_hosts, ElementsAre("e"));
}

TEST_F(VirtualServicesTest, DelegatesRoutesStandWhereTheRootNamesThem) {
  Put("VirtualService", "ns", "root", R"(hosts: [a]
http:
- name: r
  match: [{uri: {prefix: /x}}]
  delegate: {name: d, namespace: team}
  timeout: 3s
- route: [{destination: {host: z}}])");
  Put("VirtualService", "team", "d", R"(http:
- name: one
  match: [{uri: {exact: /x/1}}]
  route: [{destination: {host: b}}]
- match: [{uri: {prefix: /y}}]
  route: [{destination: {host: c}}]
- route: [{destination: {host: d}}]
  timeout: 9s)");
  const PushContextRef push = Push();
  const auto list = push->VirtualServicesForGateway("ns", "mesh");
  ASSERT_THAT(ConfigNames(list), ElementsAre("ns/root"));
  const std::vector<config::HttpRoute>& http = list[0]->spec.http;
  ASSERT_EQ(http.size(), 3u) << "the route whose match contradicts the root's is left out";
  EXPECT_EQ(http[0].name, "r-one");
  EXPECT_EQ(http[0].match[0].uri->value, "/x/1");
  EXPECT_EQ(http[0].route[0].destination.host, "b.team.svc.cluster.local") << "in the delegate's namespace";
  EXPECT_EQ(http[0].timeout, Duration(std::chrono::seconds(3)));
  EXPECT_EQ(http[1].name, "r");
  EXPECT_EQ(http[1].match[0].uri->value, "/x");
  EXPECT_EQ(http[1].timeout, Duration(std::chrono::seconds(9)));
  EXPECT_EQ(http[2].route[0].destination.host, "z.ns.svc.cluster.local");
  Proxy proxy = Sidecar("ns");
  SetSidecarScope(proxy, *push);
  EXPECT_TRUE(proxy.sidecar_scope->DependsOnConfig({ConfigKind::kVirtualService, "d", "team"}));
}

TEST_F(VirtualServicesTest, ADelegateThatIsNotExportedOrMissingLeavesNothing) {
  Put("VirtualService", "ns", "root",
      "hosts: [a]\nhttp: [{delegate: {name: d, namespace: team}}, {delegate: {name: e}}]");
  Put("VirtualService", "team", "d", "exportTo: [\".\"]\nhttp: [{route: [{destination: {host: b}}]}]");
  EXPECT_THAT(Push()->VirtualServicesForGateway("ns", "mesh")[0]->spec.http, IsEmpty());
  Put("VirtualService", "team", "d", "exportTo: [ns]\nhttp: [{route: [{destination: {host: b}}]}]");
  EXPECT_EQ(Push()->VirtualServicesForGateway("ns", "mesh")[0]->spec.http.size(), 1u);
}

TEST_F(VirtualServicesTest, MatchesContradictAsIstiodSees) {
  const auto merges = [](std::string_view root, std::string_view leaf) {
    const auto match = [](std::string_view yaml) {
      config::HttpRoute route;
      route.match = config::ParseAs<config::VirtualService>(
                        config::ConfigYaml("VirtualService", "ns", "vs",
                                           "hosts: [a]\nhttp: [{match: [" + std::string(yaml) + "]}]"))
                        ->spec.http[0]
                        .match;
      return route;
    };
    return !MergeHttpRoutes(match(root), {match(leaf)}).empty();
  };
  EXPECT_TRUE(merges("{uri: {prefix: /a}}", "{uri: {prefix: /a/b}}"));
  EXPECT_FALSE(merges("{uri: {prefix: /a/b}}", "{uri: {prefix: /a}}"));
  EXPECT_TRUE(merges("{uri: {exact: /a}}", "{uri: {exact: /a}}"));
  EXPECT_FALSE(merges("{uri: {exact: /a}}", "{uri: {prefix: /a}}"));
  EXPECT_FALSE(merges("{uri: {regex: .*}}", "{uri: {exact: /a}}"));
  EXPECT_FALSE(merges("{uri: {prefix: /}}", "{uri: {regex: .*}}"));
  EXPECT_TRUE(merges("{headers: {x: {exact: a}}}", "{headers: {y: {regex: .*}}}"));
  EXPECT_FALSE(merges("{headers: {x: {exact: a}}}", "{headers: {x: {exact: b}}}"));
  EXPECT_FALSE(merges("{port: 80}", "{port: 81}"));
  EXPECT_TRUE(merges("{port: 80}", "{}"));
  EXPECT_FALSE(merges("{sourceNamespace: a}", "{}"));
  EXPECT_FALSE(merges("{gateways: [a]}", "{gateways: [a, b]}"));
  EXPECT_FALSE(merges("{ignoreUriCase: true}", "{}"));
}

}  // namespace
}  // namespace wavetank::pilot
