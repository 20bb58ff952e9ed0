#include "core/profile/changes.h"
#include "tests/core/push/mesh_fixture.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SidecarScopeTest : public MeshTest {
 protected:
  SidecarScopeRef Scope(const std::string& ns, const Labels& labels = {}) {
    Proxy proxy = Sidecar(ns, labels);
    SetSidecarScope(proxy, *(push = Push()));
    return proxy.sidecar_scope;
  }
  PushContextRef push;
};

TEST_F(SidecarScopeTest, WithoutSidecarEverythingVisibleIsSeen) {
  AddService("a", "x");
  AddService("b", "y");
  const SidecarScopeRef scope = Scope("x");
  EXPECT_EQ(scope->sidecar, nullptr);
  EXPECT_THAT(Names(scope->services()), ElementsAre("a.x", "b.y"));
  ASSERT_EQ(scope->egress_listeners.size(), 1u);
  EXPECT_THAT(Names(scope->egress_listeners[0].services), ElementsAre("a.x", "b.y"));
  EXPECT_EQ(scope->outbound_traffic_policy.mode, config::OutboundTrafficPolicy::Mode::kAllowAny);
  EXPECT_TRUE(scope->DependsOnConfig({ConfigKind::kServiceEntry, "b.y.svc.cluster.local", "y"}));
  EXPECT_FALSE(scope->DependsOnConfig({ConfigKind::kServiceEntry, "c.y.svc.cluster.local", "y"}));
  EXPECT_EQ(scope, push->GetSidecarScope(Sidecar("x", {{"any", "label"}}), {})) << "shared by the namespace";
}

TEST_F(SidecarScopeTest, EgressHostsImportByNamespaceAndName) {
  AddService("a", "x");
  AddService("b", "y");
  AddService("c", "y");
  AddService("c", "z");
  Put("Sidecar", "x", "sc", "egress: [{hosts: [\"./*\", \"y/b.y.svc.cluster.local\", \"*/c.z.svc.cluster.local\"]}]");
  const SidecarScopeRef scope = Scope("x");
  EXPECT_THAT(Names(scope->services()), ElementsAre("a.x", "b.y", "c.z"));
  EXPECT_FALSE(scope->DependsOnConfig({ConfigKind::kServiceEntry, "c.y.svc.cluster.local", "y"}));
  EXPECT_TRUE(scope->DependsOnConfig({ConfigKind::kSidecar, "sc", "x"}));
  EXPECT_FALSE(scope->DependsOnConfig({ConfigKind::kSidecar, "other", "x"}));
}

TEST_F(SidecarScopeTest, AListenerWithAPortImportsThatPortAlone) {
  AddService("a", "x", {80, 443});
  AddService("b", "x", {443});
  Put("Sidecar", "x", "sc", R"(egress:
- {port: {number: 80, protocol: HTTP}, hosts: ["*/*"]}
- {port: {number: 9999, protocol: HTTP_PROXY}, hosts: ["*/b.x.svc.cluster.local"]})");
  const SidecarScopeRef scope = Scope("x");
  EXPECT_THAT(Names(scope->egress_listeners[0].services), ElementsAre("a.x"));
  EXPECT_TRUE(scope->egress_listeners[0].match_port);
  EXPECT_FALSE(scope->egress_listeners[1].match_port);
  EXPECT_THAT(Names(scope->services()), ElementsAre("a.x", "b.x:443"));
  EXPECT_EQ(scope->GetEgressListenerForRds(9999, ""), &scope->egress_listeners[1]);
  EXPECT_EQ(scope->GetEgressListenerForRds(1, ""), nullptr);
}

TEST_F(SidecarScopeTest, PortsOfOneServiceAtSeveralListenersAddUp) {
  AddService("a", "x", {80, 443, 8080});
  Put("Sidecar", "x", "sc", R"(egress:
- {port: {number: 443, protocol: HTTP}, hosts: ["*/*"]}
- {port: {number: 80, protocol: HTTP}, hosts: ["*/*"]})");
  EXPECT_THAT(Names(Scope("x")->services()), ElementsAre("a.x:443,80"));
}

TEST_F(SidecarScopeTest, OwnNamespacesServiceWinsAmongEqualHosts) {
  AddService("a", "x")->hostname = "shared.example";
  AddService("b", "y", {80}, {}, 9)->hostname = "shared.example";
  Put("Sidecar", "y", "sc", "egress: [{hosts: [\"*/*\"]}]");
  Put("Sidecar", "z", "sc", "egress: [{hosts: [\"*/*\"]}]");
  EXPECT_THAT(Names(Scope("y")->services()), ElementsAre("b.y"));
  EXPECT_THAT(Names(Scope("z")->services()), ElementsAre("a.x"));
}

TEST_F(SidecarScopeTest, DestinationsOfImportedVirtualServicesAreImported) {
  AddService("front", "x");
  AddService("back", "y", {80, 81});
  AddService("hidden", "y", {80}, Private());
  Put("VirtualService", "x", "vs", R"(hosts: [front]
http: [{route: [{destination: {host: back.y.svc.cluster.local, port: {number: 81}}},
                {destination: {host: hidden.y.svc.cluster.local}}]}])");
  Put("Sidecar", "x", "sc", "egress: [{hosts: [\"./*\"]}]");
  const SidecarScopeRef scope = Scope("x");
  EXPECT_THAT(Names(scope->services()), ElementsAre("front.x", "back.y:81"));
  EXPECT_THAT(ConfigNames(scope->egress_listeners[0].virtual_services), ElementsAre("x/vs"));
  EXPECT_TRUE(scope->DependsOnConfig({ConfigKind::kVirtualService, "vs", "x"}));
}

// istiod: sidecar.go, collectImportedServices; a real 1.30.3 had both ports. The service shows itself to others alone,
// and is the client namespace's own.
TEST_F(SidecarScopeTest, WithoutSidecarPortsThatSeveralRulesLeadToAddUp) {
  AddService("own", "x", {80, 81, 82}, To("y"));
  Put("VirtualService", "x", "one",
      "hosts: [one]\nhttp: [{route: [{destination: {host: own.x.svc.cluster.local, port: {number: 81}}}]}]");
  Put("VirtualService", "x", "two",
      "hosts: [two]\nhttp: [{route: [{destination: {host: own.x.svc.cluster.local, port: {number: 80}}}]}]");
  Profile profile;
  env.profile = &profile;
  EXPECT_THAT(Names(Scope("x")->services()), IsEmpty());
  profile.Set(Change::kDestinationsImported);
  EXPECT_THAT(Names(Scope("x")->services()), ElementsAre("own.x:81,80"));
}

// istiod: push_context.go, doGetSidecarScope. Seen with a real 1.30.3: a gateway that connects after the sidecars of
// its namespace has a cluster of a port that a route leads to and nobody shows it, one that connects before them has
// not.
TEST_F(SidecarScopeTest, AGatewaySeesWhatSidecarsOfItsNamespaceShareOnceOneOfThemHasAsked) {
  AddService("own", "x", {80, 81}, To("y"));
  Put("VirtualService", "x", "one",
      "hosts: [one]\nhttp: [{route: [{destination: {host: own.x.svc.cluster.local, port: {number: 81}}}]}]");
  Profile profile;
  profile.Set(Change::kOneScope);
  profile.Set(Change::kDestinationsImported);
  env.profile = &profile;
  const PushContextRef context = Push();
  EXPECT_THAT(Names(context->GetSidecarScope(Router("x"), {})->services()), IsEmpty());
  const SidecarScopeRef shared = context->GetSidecarScope(Sidecar("x"), {});
  EXPECT_THAT(Names(shared->services()), ElementsAre("own.x:81"));
  EXPECT_EQ(context->GetSidecarScope(Router("x"), {}), shared);
}

TEST_F(SidecarScopeTest, SelectorsComeBeforeTheNamespacesSidecarAndThatBeforeTheMeshs) {
  Put("Sidecar", "istio-system", "mesh", "egress: [{hosts: [\"./*\"]}]");
  EXPECT_EQ(Scope("x")->name, "mesh");
  EXPECT_EQ(Scope("x")->ns, "x") << "'.' is the proxy's namespace";
  Put("Sidecar", "x", "all", "", 1);
  Put("Sidecar", "x", "some", "workloadSelector: {labels: {app: a}}", 2);
  EXPECT_EQ(Scope("x", {{"app", "a"}, {"v", "1"}})->name, "some");
  EXPECT_EQ(Scope("x", {{"app", "b"}})->name, "all");
  EXPECT_EQ(Scope("y")->name, "mesh");
}

TEST_F(SidecarScopeTest, RoutersSeeEverythingWhateverSidecarsSay) {
  AddService("a", "y");
  Put("Sidecar", "x", "sc", "egress: [{hosts: [\"./*\"]}]");
  Proxy router = Router("x");
  SetSidecarScope(router, *Push());
  EXPECT_THAT(Names(router.sidecar_scope->services()), ElementsAre("a.y"));
  EXPECT_EQ(router.prev_sidecar_scope, nullptr);
  const SidecarScopeRef first = router.sidecar_scope;
  SetSidecarScope(router, *Push());
  EXPECT_EQ(router.prev_sidecar_scope, first);
}

TEST_F(SidecarScopeTest, PoliciesOfTheOwnAndTheRootNamespaceConcernAProxy) {
  const SidecarScopeRef scope = Scope("x");
  EXPECT_TRUE(scope->DependsOnConfig({ConfigKind::kAuthorizationPolicy, "p", "x"}));
  EXPECT_TRUE(scope->DependsOnConfig({ConfigKind::kEnvoyFilter, "p", "istio-system"}));
  EXPECT_FALSE(scope->DependsOnConfig({ConfigKind::kEnvoyFilter, "p", "y"}));
  EXPECT_TRUE(scope->DependsOnConfig({ConfigKind::kPeerAuthentication, "p", "y"})) << "anything else concerns all";
}

TEST_F(SidecarScopeTest, OutboundPolicyIsTheSidecarsElseTheMeshs) {
  Mesh("outboundTrafficPolicy: {mode: REGISTRY_ONLY}");
  EXPECT_EQ(Scope("x")->outbound_traffic_policy.mode, config::OutboundTrafficPolicy::Mode::kRegistryOnly);
  Put("Sidecar", "x", "sc", "outboundTrafficPolicy: {mode: ALLOW_ANY}");
  EXPECT_EQ(Scope("x")->outbound_traffic_policy.mode, config::OutboundTrafficPolicy::Mode::kAllowAny);
}

TEST_F(SidecarScopeTest, DependsOnTheDestinationRulesOfItsServices) {
  AddService("a", "y");
  Put("DestinationRule", "y", "dr", "host: a");
  Put("DestinationRule", "y", "none", "host: nobody");
  const SidecarScopeRef scope = Scope("x");
  EXPECT_TRUE(scope->DependsOnConfig({ConfigKind::kDestinationRule, "dr", "y"}));
  EXPECT_FALSE(scope->DependsOnConfig({ConfigKind::kDestinationRule, "none", "y"}));
}

TEST_F(SidecarScopeTest, ASidecarImportsAliasesByTheirOwnNames) {
  AddService("web", "x");
  for (const char* name : {"seen", "unseen"}) {
    const auto alias = AddService(name, "x");
    alias->resolution = Resolution::kAlias;
    alias->attributes.external_name = "web.x.svc.cluster.local";
  }
  EXPECT_EQ(Scope("x")->GetService("web.x.svc.cluster.local")->attributes.aliases.size(), 2u);
  Put("Sidecar", "x", "sc", "egress: [{hosts: [\"./web.x.svc.cluster.local\", \"./seen.x.svc.cluster.local\"]}]");
  EXPECT_THAT(Scope("x")->GetService("web.x.svc.cluster.local")->attributes.aliases,
              ElementsAre(kube::NamespacedName{"x", "seen.x.svc.cluster.local"}));
}

TEST_F(SidecarScopeTest, PeerAuthenticationsConcernWhoSeesServicesOfTheirNamespaceByProfile) {
  AddService("b", "y");
  Put("Sidecar", "x", "sc", "egress: [{hosts: [\"y/*\"]}]");
  const ConfigKey elsewhere{ConfigKind::kPeerAuthentication, "p", "z"}, seen{ConfigKind::kPeerAuthentication, "p", "y"};
  EXPECT_TRUE(Scope("x")->DependsOnConfig(elsewhere));
  Profile profile;
  profile.Set(Change::kPeerAuthenticationsInScopes);
  env.profile = &profile;
  const SidecarScopeRef scope = Scope("x");
  EXPECT_FALSE(scope->DependsOnConfig(elsewhere));
  EXPECT_TRUE(scope->DependsOnConfig(seen));
  EXPECT_TRUE(scope->DependsOnConfig({ConfigKind::kPeerAuthentication, "p", "x"}));
  EXPECT_TRUE(scope->DependsOnConfig({ConfigKind::kPeerAuthentication, "p", "istio-system"}));
}

TEST_F(SidecarScopeTest, ANewPeerAuthenticationMakesScopesAnewByProfile) {
  AddService("a", "x");
  PushRequest request;
  request.configs_updated.insert({ConfigKind::kPeerAuthentication, "p", "x"});
  for (const bool anew : {false, true}) {
    Profile profile;
    profile.Set(Change::kPeerAuthenticationsInScopes, anew);
    env.profile = &profile;
    const PushContextRef before = Push();
    const PushContextRef after = PushContext::Create(env, before.get(), request, "2");
    EXPECT_EQ(before->GetSidecarScope(Sidecar("x"), {}) != after->GetSidecarScope(Sidecar("x"), {}), anew);
  }
}

// --- Several services of one host, by profile ---

class SharedHosts : public SidecarScopeTest {
 protected:
  void Since(std::initializer_list<Change> changes) {
    for (const Change change : changes) profile_.Set(change);
    env.profile = &profile_;
  }
  // Of host shared.example.
  std::shared_ptr<Service> Shared(const std::string& name, const std::string& ns, Provider registry, int second,
                                  std::vector<int> ports = {80}) {
    auto service = AddService(name, ns, std::move(ports), {}, second);
    service->hostname = "shared.example";
    service->attributes.registry = registry;
    return service;
  }
  Profile profile_;
};

TEST_F(SharedHosts, WithoutSidecarTheOwnNamespacesCountsThenKubernetes) {
  Shared("old", "x", Provider::kExternal, 1);
  Shared("kube", "y", Provider::kKubernetes, 2);
  Shared("own", "z", Provider::kExternal, 3);
  EXPECT_THAT(Names(Scope("z")->services()), ElementsAre("old.x", "kube.y", "own.z"));
  Since({Change::kServicesOfHostMerged, Change::kOneScope});
  EXPECT_THAT(Names(Scope("z")->services()), ElementsAre("own.z"));
  EXPECT_THAT(Names(Scope("z")->egress_listeners[0].services), ElementsAre("own.z"));
  EXPECT_EQ(Scope("z")->name, "default-sidecar");
  EXPECT_THAT(Names(Scope("elsewhere")->services()), ElementsAre("kube.y"));
  EXPECT_FALSE(Scope("elsewhere")->DependsOnConfig({ConfigKind::kServiceEntry, "shared.example", "x"}));
}

TEST_F(SharedHosts, RoutersPreferNoNamespaceButKubernetes) {
  Shared("old", "x", Provider::kExternal, 1);
  Shared("own", "z", Provider::kExternal, 3);
  Since({Change::kServicesOfHostMerged, Change::kOneScope});
  Proxy router = Router("z");
  SetSidecarScope(router, *(push = Push()));
  EXPECT_THAT(Names(router.sidecar_scope->services()), ElementsAre("old.x"));
  Shared("kube", "y", Provider::kKubernetes, 2);
  SetSidecarScope(router, *(push = Push()));
  EXPECT_THAT(Names(router.sidecar_scope->services()), ElementsAre("kube.y"));
}

TEST_F(SharedHosts, PortsOfThoseThatAreAlikeAreTheOldestsToo) {
  Shared("old", "x", Provider::kExternal, 1, {80});
  Shared("like", "x", Provider::kExternal, 2, {80, 81});
  Shared("dns", "x", Provider::kExternal, 3, {82})->resolution = Resolution::kDnsLb;
  Shared("labelled", "x", Provider::kExternal, 4, {83})->attributes.labels = {{"a", "b"}};
  Since({Change::kServicesOfHostMerged});
  EXPECT_THAT(Names(Scope("x")->services()), ElementsAre("old.x:80,81"));
  EXPECT_EQ(Names(Scope("x")->egress_listeners[0].services), Names(Scope("x")->services()));
  Since({Change::kOneScope});
  EXPECT_THAT(Names(Scope("x")->services()), ElementsAre("old.x:80,81"));
  EXPECT_EQ(Scope("x")->egress_listeners[0].services.size(), 4u) << "listeners have all of them";
}

TEST_F(SharedHosts, ADestinationOfSeveralNamespacesIsTheFirstOnesOrKubernetesOrTheOldest) {
  AddService("front", "z");
  Put("VirtualService", "z", "vs", R"(hosts: [front]
http: [{route: [{destination: {host: shared.example}}]}])");
  Put("Sidecar", "z", "sc", "egress: [{hosts: [\"./*\"]}]");
  Shared("new", "a", Provider::kExternal, 9);
  Shared("old", "b", Provider::kExternal, 1);
  EXPECT_THAT(Names(Scope("z")->services()), ElementsAre("front.z", "new.a"));
  Since({Change::kBestNamespace});
  EXPECT_THAT(Names(Scope("z")->services()), ElementsAre("front.z", "old.b"));
  Shared("kube", "c", Provider::kKubernetes, 5);
  EXPECT_THAT(Names(Scope("z")->services()), ElementsAre("front.z", "kube.c"));
}

TEST_F(SharedHosts, RoutesForOtherSourceNamespacesImportNothing) {
  AddService("front", "z");
  AddService("back", "y");
  AddService("both", "y");
  Put("VirtualService", "z", "vs", R"(hosts: [front]
http: [{match: [{sourceNamespace: 'y'}], route: [{destination: {host: back.y.svc.cluster.local}}]},
       {match: [{sourceNamespace: 'y'}, {sourceNamespace: z}], route: [{destination: {host: both.y.svc.cluster.local}}]}])");
  Put("Sidecar", "z", "sc", "egress: [{hosts: [\"./*\"]}]");
  EXPECT_THAT(Names(Scope("z")->services()), ElementsAre("front.z", "back.y", "both.y"));
  Since({Change::kDestinationsBySource});
  EXPECT_THAT(Names(Scope("z")->services()), ElementsAre("front.z", "both.y"));
}

}  // namespace
}  // namespace wavetank::pilot
