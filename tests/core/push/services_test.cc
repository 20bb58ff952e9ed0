#include "core/profile/changes.h"
#include "tests/core/push/mesh_fixture.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ServicesTest : public MeshTest {};

TEST_F(ServicesTest, ExportToDecidesWhoSeesAService) {
  AddService("everyone", "a");
  AddService("own", "a", {80}, Private());
  AddService("friend", "a", {80}, To("b"));
  AddService("hidden", "a", {80}, Nowhere());
  const PushContextRef push = Push();
  EXPECT_THAT(Names(push->ServicesExportedTo("a")), ElementsAre("own.a", "everyone.a"));
  EXPECT_THAT(Names(push->ServicesExportedTo("b")), ElementsAre("friend.a", "everyone.a"));
  EXPECT_THAT(Names(push->ServicesExportedTo("c")), ElementsAre("everyone.a"));
  EXPECT_TRUE(push->IsServiceVisible(*discovery.services[2], "b"));
  EXPECT_FALSE(push->IsServiceVisible(*discovery.services[2], "a"));
  EXPECT_FALSE(push->IsServiceVisible(*discovery.services[3], "a"));
}

// istiod: push_context.go, initServiceRegistry; endpointshards.go, CopyEndpoints. After a swap of registries a real
// 1.30.3 had no endpoints of the remote cluster there, though the registry knew them.
TEST_F(ServicesTest, InstancesAreTheRegistriesAndSince120ThoseOfTheEndpointIndex) {
  const auto service = AddService("db", "ns", {80});
  service->resolution = Resolution::kPassthrough;
  const auto endpoint = [&](const char* address, const char* port_name, int entry_port) {
    EndpointProfile profile;
    profile.service_port_name = port_name;
    profile.entry_port = entry_port;
    return IstioEndpoint{address, 80, 0, HealthStatus::kHealthy, std::make_shared<const EndpointProfile>(profile)};
  };
  discovery.instances.push_back({service, service->ports[0], endpoint("10.0.0.1", "http-80", 0)});
  endpoints.UpdateServiceEndpoints(
      {ClusterId("c2"), Provider::kKubernetes}, service->hostname, "ns",
      {endpoint("10.0.0.2", "http-80", 0), endpoint("10.0.0.3", "other", 0), endpoint("10.0.0.4", "other", 80)});
  Profile profile;
  env.profile = &profile;
  const auto addresses = [&] {
    std::vector<std::string> out;
    for (const ServiceInstance& instance : Push()->ServiceInstancesByPort(*service, 80, {}))
      out.push_back(instance.endpoint.address);
    return out;
  };
  EXPECT_THAT(addresses(), ElementsAre("10.0.0.1"));
  profile.Set(Change::kInstancesOfIndex);
  EXPECT_THAT(addresses(), ElementsAre("10.0.0.2", "10.0.0.4")) << "by the port's name, a ServiceEntry's by its number";
  endpoints.DeleteShard({ClusterId("c2"), Provider::kKubernetes});
  EXPECT_THAT(addresses(), IsEmpty());
}

// istiod: push_context.go, extraServicesForProxy; a real 1.30.3 sent them to gateways without any route.
TEST_F(ServicesTest, ClustersOfProvidersAreForGatewaysWithARouteAndSince125ForAll) {
  AddService("als", "ns");
  AddService("zipkin", "a");
  AddService("other", "ns");
  Mesh(R"(extensionProviders:
- {name: one, envoyHttpAls: {service: als.ns.svc.cluster.local, port: 80}}
- {name: two, zipkin: {service: a/zipkin.a.svc.cluster.local, port: 80}}
- {name: three, zipkin: {service: elsewhere/other.ns.svc.cluster.local, port: 80}})");
  Profile profile;
  env.profile = &profile;
  env.features.filters_gateway_clusters = true;
  const auto services = [&] {
    Proxy router = Router("ns");
    const PushContextRef push = Push();
    SetSidecarScope(router, *push);
    return Names(push->GatewayServices(router));
  };
  EXPECT_THAT(services(), IsEmpty());
  profile.Set(Change::kProvidersOfEveryGateway);
  EXPECT_THAT(services(), ElementsAre("als.ns", "zipkin.a")) << "none is of the namespace that the last one names";
}

TEST_F(ServicesTest, OlderServicesComeFirstAndNamesDecideTies) {
  AddService("z", "a", {80}, {}, 1);
  AddService("b", "x", {80}, {}, 5);
  AddService("b", "a", {80}, {}, 5);
  AddService("a", "z", {80}, {}, 5);
  EXPECT_THAT(Names(Push()->GetAllServices()), ElementsAre("z.a", "a.z", "b.a", "b.x"));
}

TEST_F(ServicesTest, TiesGoByNameAndNamespaceWithADotBetweenUnlessTheProfileTakesNamesAlone) {
  AddService("web", "z");
  AddService("web-canary", "a");
  EXPECT_THAT(Names(Push()->GetAllServices()), ElementsAre("web-canary.a", "web.z"));  // '-' comes before '.'
  Profile profile;
  profile.Set(Change::kNameBeforeNamespace);
  env.profile = &profile;
  EXPECT_THAT(Names(Push()->GetAllServices()), ElementsAre("web.z", "web-canary.a"));
}

TEST_F(ServicesTest, MeshDefaultForExportToMayBePrivate) {
  Mesh("defaultServiceExportTo: [\".\"]");
  AddService("quiet", "a");
  AddService("loud", "a", {80}, Public());
  const PushContextRef push = Push();
  EXPECT_THAT(Names(push->ServicesExportedTo("a")), ElementsAre("quiet.a", "loud.a"));
  EXPECT_THAT(Names(push->ServicesExportedTo("b")), ElementsAre("loud.a"));
}

TEST_F(ServicesTest, AServiceEntryDoesNotHideTheKubernetesServiceOfItsHost) {
  AddService("a", "ns")->attributes.registry = Provider::kExternal;
  AddService("a", "ns", {81}, {}, 3);
  Proxy proxy = Sidecar("ns");
  SetSidecarScope(proxy, *Push());
  EXPECT_THAT(Names(std::vector{proxy.sidecar_scope->GetService("a.ns.svc.cluster.local")}), ElementsAre("a.ns:81"));
}

TEST_F(ServicesTest, KubeSystemTheApiServerAndIstiodAreClusterLocal) {
  const PushContextRef push = Push();
  Service service;
  for (const char* local : {"dns.kube-system.svc.cluster.local", "kubernetes.default.svc.cluster.local",
                            "istiod.istio-system.svc.cluster.local"}) {
    service.hostname = local;
    EXPECT_TRUE(push->IsClusterLocal(service)) << local;
  }
  service.hostname = "a.ns.svc.cluster.local";
  EXPECT_FALSE(push->IsClusterLocal(service));
}

TEST_F(ServicesTest, ServiceSettingsMakeHostsClusterLocalAndFreeDefaults) {
  Mesh(R"(serviceSettings:
- {settings: {clusterLocal: true}, hosts: ["*.ns.svc.cluster.local"]}
- {settings: {clusterLocal: false}, hosts: ["*.kube-system.svc.cluster.local"]}
)");
  const PushContextRef push = Push();
  Service service;
  service.hostname = "a.ns.svc.cluster.local";
  EXPECT_TRUE(push->IsClusterLocal(service));
  service.hostname = "dns.kube-system.svc.cluster.local";
  EXPECT_FALSE(push->IsClusterLocal(service));
}

TEST_F(ServicesTest, ServiceAccountsCarryTheAliasesOfTheTrustDomain) {
  Mesh("trustDomainAliases: [old]");
  const auto service = AddService("a", "ns", {80, 53});
  service->ports[1].protocol = Protocol::kUdp;
  service->service_accounts = {"dns.example"};
  auto profile = std::make_shared<EndpointProfile>();
  profile->service_account = "spiffe://td/ns/ns/sa/x";
  IstioEndpoint endpoint;
  endpoint.profile = profile;
  endpoints.UpdateServiceEndpoints({ClusterId("c"), Provider::kKubernetes}, service->hostname, "ns", {endpoint});
  const PushContextRef push = Push();
  EXPECT_THAT(push->ServiceAccounts(service->hostname, "ns", 80),
              ElementsAre("dns.example", "spiffe://old/ns/ns/sa/x", "spiffe://td/ns/ns/sa/x"));
  EXPECT_THAT(push->ServiceAccounts(service->hostname, "ns", 53), IsEmpty()) << "UDP";
  EXPECT_THAT(push->ServiceAccounts(service->hostname, "other", 80), IsEmpty());
}

TEST_F(ServicesTest, InstancesAreThoseOfTheTimeThatTheServicesWereRead) {
  const auto headless = AddService("h", "ns");
  headless->resolution = Resolution::kPassthrough;
  auto profile = std::make_shared<EndpointProfile>();
  profile->labels = {{"version", "v1"}};
  ServiceInstance instance{headless, headless->ports[0], {}};
  instance.endpoint.profile = profile;
  discovery.instances = {instance};
  const PushContextRef push = Push();
  discovery.instances.clear();
  EXPECT_EQ(push->ServiceInstancesByPort(*headless, 80, {}).size(), 1u);
  EXPECT_EQ(push->ServiceInstancesByPort(*headless, 80, {{"version", "v1"}}).size(), 1u);
  EXPECT_EQ(push->ServiceInstancesByPort(*headless, 80, {{"version", "v2"}}).size(), 0u);
  EXPECT_EQ(push->ServiceInstancesByPort(*headless, 81, {}).size(), 0u);
}

TEST_F(ServicesTest, AnAliasIsAnotherNameOfWhatItLeadsToAtLast) {
  AddService("web", "a");
  const auto alias = [&](const std::string& name, const std::string& ns, const std::string& target) {
    const auto service = AddService(name, ns);
    service->resolution = Resolution::kAlias;
    service->attributes.external_name = target;
  };
  alias("one", "b", "web.a.svc.cluster.local");
  alias("two", "a", "one.b.svc.cluster.local");
  alias("loop", "a", "pool.a.svc.cluster.local");
  alias("pool", "a", "loop.a.svc.cluster.local");
  alias("outside", "a", "example.com");
  const PushContextRef push = Push();
  const ServiceRef web = push->ServiceInNamespace("web.a.svc.cluster.local", "a");
  EXPECT_THAT(web->attributes.aliases, ElementsAre(kube::NamespacedName{"a", "two.a.svc.cluster.local"},
                                                   kube::NamespacedName{"b", "one.b.svc.cluster.local"}));
  EXPECT_THAT(push->ServiceInNamespace("loop.a.svc.cluster.local", "a")->attributes.aliases, IsEmpty());

  std::set<ConfigKey> changed = {{ConfigKind::kServiceEntry, "two.a.svc.cluster.local", "a"}};
  push->AddConcrete(changed);
  EXPECT_TRUE(changed.contains({ConfigKind::kServiceEntry, "web.a.svc.cluster.local", "a"}));
  changed = {{ConfigKind::kServiceEntry, "outside.a.svc.cluster.local", "a"}};
  push->AddConcrete(changed);
  EXPECT_EQ(changed.size(), 1u);
}

TEST_F(ServicesTest, OfOneHostAndNamespaceTheLatestCountsOrTheOldestByProfile) {
  const auto add = [&](int second, Provider registry, int port) {
    const auto service = AddService("a", "ns", {port}, {}, second);
    service->attributes.registry = registry;
    service->service_accounts = {"account-" + std::to_string(second)};
    return service;
  };
  const auto first = add(1, Provider::kExternal, 80), second = add(2, Provider::kExternal, 81);
  const auto known = [&] { return Push()->ServiceInNamespace(first->hostname, "ns"); };
  EXPECT_EQ(known(), second);
  Profile profile;
  profile.Set(Change::kOldestServiceStays);
  env.profile = &profile;
  EXPECT_EQ(known(), first);
  EXPECT_THAT(Push()->ServiceAccounts(first->hostname, "ns", 80), ElementsAre("account-2")) << "whichever port";
  const auto kube = add(3, Provider::kKubernetes, 82);
  add(4, Provider::kKubernetes, 83);
  EXPECT_EQ(known(), kube);
}

}  // namespace
}  // namespace wavetank::pilot
