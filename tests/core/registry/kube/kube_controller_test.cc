#include "core/registry/kube/kube_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/mesh/mesh_networks.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"
#include "tests/core/registry/objects.h"
#include "tests/core/registry/recorded_updater.h"

namespace wavetank::pilot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kWeb[] = "web.shop.svc.cluster.local";
const json kSelector = {{"app", "web"}};

class KubeControllerTest : public ::testing::Test {
 protected:
  explicit KubeControllerTest(std::string_view release = "istio-1.18") : profile(*ParseProfile(release)) {}
  void Start() {
    controller.on_service = [this](const ServiceRef& old, const ServiceRef& now, Event event) {
      services.push_back(now->hostname + (old == nullptr ? " new " : " known ") +
                         std::to_string(static_cast<int>(event)));
    };
    if (networks != nullptr) controller.OnMeshNetworksChanged();
    controller.Start();
    Run();
  }
  void Run(Duration d = 50ms) { kernel.RunUntil(kernel.Now() + d); }
  // What is said while the change is handled.
  std::vector<std::string> After(json object) {
    updater.Take();
    client.Put(std::move(object));
    Run();
    return updater.Take();
  }
  std::vector<std::string> Addresses() const { return updater.Addresses(kShard, kWeb, "shop"); }
  // The first endpoint of web.
  const EndpointProfile& FirstProfile() const {
    return updater.index.Find(kWeb, "shop")->shards.at(kShard)->front().p();
  }
  // A Service, its pod and its slice.
  void PutWeb(const json& labels = kSelector) {
    client.Put(ServiceOf("web", kSelector));
    client.Put(PodOf("web-1", "10.1.0.5", labels));
    client.Put(SliceOf("web", {{"web-1", "10.1.0.5"}}));
  }
  Proxy ProxyAt(const std::string& name, const std::string& ip, const std::string& cluster = "c1") const {
    Proxy out;
    out.id = name + ".shop";
    out.ip_addresses = {ip};
    out.config_namespace = out.metadata.ns = "shop";
    out.metadata.cluster_id = ClusterId(cluster);
    return out;
  }
  config::MeshNetworks::Network& Network(const std::string& name) {
    if (networks == nullptr) networks = std::make_shared<config::MeshNetworks>();
    return networks->networks[name];
  }

  const Profile profile;
  const ShardKey kShard{ClusterId("c1"), Provider::kKubernetes};
  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  RecordedUpdater updater;
  std::shared_ptr<config::MeshNetworks> networks;
  json selectors;
  std::vector<std::string> services;
  KubeController controller{client,
                            host,
                            updater,
                            {.cluster = ClusterId("c1"),
                             .trust_domain = [] { return "cluster.local"; },
                             .discovery_selectors = [this] { return selectors; },
                             .sync_timeout = 30s,
                             .profile = profile},
                            [this] { return networks; }};
};

class KubeControllerOf130Test : public KubeControllerTest {
 protected:
  KubeControllerOf130Test() : KubeControllerTest("istio-1.30") {}
};

// A pod of two addresses behind a Service of both IP families, in a slice for each.
class DualStackKubeControllerTest : public KubeControllerTest {
 protected:
  explicit DualStackKubeControllerTest(std::string_view release = "istio-1.30+dual-stack")
      : KubeControllerTest(release) {}
  void PutBoth(const json& cluster_ips = {"10.96.0.1", "fd00:96::1"}) {
    json service = ServiceOf("web", kSelector);
    service["spec"]["clusterIPs"] = cluster_ips;
    client.Put(std::move(service));
    json pod = PodOf("web-1", "10.1.0.5", kSelector);
    pod["status"]["podIPs"] = {{{"ip", "10.1.0.5"}}, {{"ip", "fd00:1::5"}}};
    client.Put(std::move(pod));
    client.Put(SliceOf("web", {{"web-1", "10.1.0.5"}}));
    json other = SliceOf("web", {{"web-1", "fd00:1::5"}});
    other["metadata"]["name"] = "web-2";
    other["addressType"] = "IPv6";
    client.Put(std::move(other));
    Start();
  }
};
class DualStackKubeControllerOf118Test : public DualStackKubeControllerTest {
 protected:
  DualStackKubeControllerOf118Test() : DualStackKubeControllerTest("istio-1.18+dual-stack") {}
};
class UntoldKubeControllerTest : public DualStackKubeControllerTest {
 protected:
  UntoldKubeControllerTest() : DualStackKubeControllerTest("istio-1.30") {}
};

// istiod: pilot/pkg/serviceregistry/kube/controller/endpointslice.go, updateEndpointCacheForSlice.
TEST_F(DualStackKubeControllerTest, APodOfTwoAddressesIsOneEndpoint) {
  PutBoth();
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080"));
  EXPECT_THAT(FirstProfile().more_addresses, ElementsAre("fd00:1::5"));
}

TEST_F(DualStackKubeControllerTest, BehindAServiceOfOneFamilyItHasAnEndpointForEachSlice) {
  PutBoth({"10.96.0.1"});
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080", "fd00:1::5:8080"));
  EXPECT_THAT(FirstProfile().more_addresses, IsEmpty());
}

TEST_F(DualStackKubeControllerOf118Test, EachAddressIsAnEndpoint) {
  PutBoth();
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080", "fd00:1::5:8080"));
  EXPECT_THAT(FirstProfile().more_addresses, IsEmpty());
}

TEST_F(UntoldKubeControllerTest, WithoutTheFlagEachAddressIsAnEndpoint) {
  PutBoth();
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080", "fd00:1::5:8080"));
}

// --- what registries share

TEST_F(KubeControllerTest, RegistriesThatWatchOnePodShareItsProfileUnlessTheirTrustDomainsDiffer) {
  const KubeController::Options options{.cluster = ClusterId("c1"), .profile = profile};
  RecordedUpdater of_same, of_other;
  KubeController same(client, host, of_same, options, nullptr);
  KubeController::Options foreign = options;
  foreign.trust_domain = [] { return "elsewhere"; };
  KubeController other(client, host, of_other, foreign, nullptr);
  PutWeb();
  same.Start();
  other.Start();
  Start();
  const auto profile_in = [&](const RecordedUpdater& updater_of) {
    return updater_of.index.Find(kWeb, "shop")->shards.at(kShard)->front().profile;
  };
  EXPECT_EQ(profile_in(of_same).get(), &FirstProfile());
  EXPECT_EQ(profile_in(of_other)->service_account, "spiffe://elsewhere/ns/shop/sa/web");
  EXPECT_NE(FirstProfile().service_account, profile_in(of_other)->service_account);
}

TEST_F(KubeControllerTest, APodOfAnotherNetworkByNowHasAnotherProfile) {
  PutWeb();
  Start();
  EXPECT_EQ(FirstProfile().network.str(), "");
  Network("net2").endpoints.push_back({.from_registry = "c1"});
  controller.OnMeshNetworksChanged();
  client.Put(SliceOf("web", {{"web-1", "10.1.0.5"}}));
  Run();
  EXPECT_EQ(FirstProfile().network.str(), "net2");
  EXPECT_EQ(FirstProfile().labels.at("topology.istio.io/network"), "net2");
}

// --- start and stop

TEST_F(KubeControllerTest, HasSyncedWhenEverythingThatWasThereIsHandled) {
  PutWeb();
  int synced = 0;
  controller.on_synced = [&] {
    ++synced;
    EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080"));
  };
  EXPECT_FALSE(controller.HasSynced());
  Start();
  EXPECT_TRUE(controller.synced());
  EXPECT_EQ(synced, 1);
  EXPECT_TRUE(controller.QueueIdle());
}

TEST_F(KubeControllerTest, AnEmptyClusterSyncs) {
  Start();
  EXPECT_TRUE(controller.synced());
  EXPECT_THAT(controller.Services(), IsEmpty());
}

TEST_F(KubeControllerTest, AClusterThatDoesNotAnswerCountsAsSyncedAfterItsTimeout) {
  client.refusing = true;
  Start();
  Run(29s);
  EXPECT_FALSE(controller.HasSynced());
  Run(1s);
  EXPECT_TRUE(controller.HasSynced());
  EXPECT_FALSE(controller.synced()) << "in truth";
  client.refusing = false;
  PutWeb();
  Run(5min);
  EXPECT_TRUE(controller.synced()) << "it goes on trying";
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080"));
}

TEST_F(KubeControllerTest, AStoppedControllerHearsNothingAndKeepsWhatItKnows) {
  PutWeb();
  Start();
  controller.Stop();
  EXPECT_THAT(After(SliceOf("web", {})), IsEmpty());
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080"));
  EXPECT_NE(controller.GetService(kWeb), nullptr);
  EXPECT_TRUE(controller.stopped());
}

// --- services

TEST_F(KubeControllerTest, AServiceComesChangesAndGoesWithItsShard) {
  PutWeb();
  Start();
  ASSERT_NE(controller.GetService(kWeb), nullptr);
  EXPECT_THAT(controller.GetService(kWeb)->cluster_vips.at(ClusterId("c1")), ElementsAre("10.96.0.1"));
  EXPECT_THAT(After(ServiceOf("web", kSelector, "10.96.0.2")), Contains("service web.shop updated"));
  EXPECT_THAT(controller.GetService(kWeb)->cluster_vips.at(ClusterId("c1")), ElementsAre("10.96.0.2"));
  client.Remove(kube::kinds::kService, "shop", "web");
  Run();
  EXPECT_EQ(controller.GetService(kWeb), nullptr);
  EXPECT_THAT(Addresses(), IsEmpty());
  EXPECT_THAT(services,
              ElementsAre(std::string(kWeb) + " new 0", std::string(kWeb) + " known 1", std::string(kWeb) + " new 2"));
}

json ExternalNameOf(const char* name, const char* target) {
  json object = ServiceOf(name, kSelector);
  object["spec"] = {{"type", "ExternalName"},
                    {"externalName", target},
                    {"ports", {{{"name", "http"}, {"port", 80}, {"protocol", "TCP"}}}}};
  return object;
}

TEST_F(KubeControllerTest, AnExternalNameIsTheInstanceOfItsService) {
  client.Put(ExternalNameOf("web", "web.example"));
  Start();
  const std::vector<ServiceInstance> instances = controller.InstancesByPort(*controller.GetService(kWeb), 80);
  ASSERT_EQ(instances.size(), 1u);
  EXPECT_EQ(instances[0].endpoint.address, "web.example");
  EXPECT_THAT(controller.InstancesByPort(*controller.GetService(kWeb), 81), IsEmpty());
}

TEST_F(KubeControllerOf130Test, AnExternalNameIsAnAliasWithoutInstances) {
  client.Put(ExternalNameOf("web", "web.example"));
  Start();
  EXPECT_EQ(controller.GetService(kWeb)->resolution, Resolution::kAlias);
  EXPECT_THAT(controller.InstancesByPort(*controller.GetService(kWeb), 80), IsEmpty());
}

TEST_F(KubeControllerOf130Test, AServiceThatNobodySeesIsToldToNobody) {
  json hidden = ServiceOf("web", kSelector);
  hidden["metadata"]["annotations"] = {{"networking.istio.io/exportTo", "~"}};
  client.Put(hidden);
  Start();
  EXPECT_THAT(services, IsEmpty());
  client.Put(ServiceOf("web", kSelector));
  Run();
  EXPECT_THAT(services, ElementsAre(std::string(kWeb) + " known 1")) << "it can be seen from now on";
  client.Put(hidden);
  Run();
  client.Remove(kube::kinds::kService, "shop", "web");
  Run();
  EXPECT_THAT(services, ElementsAre(std::string(kWeb) + " known 1", std::string(kWeb) + " known 1"));
}

TEST_F(KubeControllerOf130Test, ANamespacesAnnotationReachesItsServices) {
  client.Put(NamespaceOf("shop"));
  client.Put(ServiceOf("web", kSelector));
  Start();
  EXPECT_EQ(controller.GetService(kWeb)->attributes.traffic_distribution, TrafficDistribution::kAny);
  json ns = NamespaceOf("shop");
  ns["metadata"]["annotations"] = {{"networking.istio.io/traffic-distribution", "PreferSameNode"}};
  client.Put(ns);
  Run();
  EXPECT_EQ(controller.GetService(kWeb)->attributes.traffic_distribution, TrafficDistribution::kPreferSameNode);
  EXPECT_THAT(services, ElementsAre(std::string(kWeb) + " new 0", std::string(kWeb) + " known 1"));
}

// --- endpoints

TEST_F(KubeControllerTest, ASliceBeforeItsPodIsHandledAgainWhenThePodIsThere) {
  client.Put(ServiceOf("web", kSelector));
  client.Put(SliceOf("web", {{"web-1", "10.1.0.5"}}));
  Start();
  EXPECT_THAT(Addresses(), IsEmpty());
  After(PodOf("web-1", "10.1.0.5", kSelector));
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080"));
}

TEST_F(KubeControllerTest, ASliceThatGoesBeforeItsPodComesIsForgotten) {
  client.Put(ServiceOf("web", kSelector));
  client.Put(SliceOf("web", {{"web-1", "10.1.0.5"}}));
  Start();
  client.Remove(kube::kinds::kEndpointSlice, "shop", "web-1");
  Run();
  EXPECT_THAT(After(PodOf("web-1", "10.1.0.5", kSelector)), ElementsAre("proxy 10.1.0.5"));
  EXPECT_THAT(Addresses(), IsEmpty());
}

TEST_F(KubeControllerTest, AddressesThatAreNotReadyAreNotTracked) {
  PutWeb();
  Start();
  json slice = SliceOf("web", {{"web-1", "10.1.0.5"}});
  slice["endpoints"][0]["conditions"]["ready"] = false;
  EXPECT_THAT(After(slice), ElementsAre("eds web.shop 0"));
  slice["endpoints"][0].erase("conditions");
  EXPECT_THAT(After(slice), ElementsAre("eds web.shop 1")) << "what is not said counts as ready";
}

TEST_F(KubeControllerTest, AnAddressInTwoSlicesCountsOnce) {
  PutWeb();
  client.Put(PodOf("web-2", "10.1.0.6", kSelector));
  Start();
  json second = SliceOf("web", {{"web-1", "10.1.0.5"}, {"web-2", "10.1.0.6"}});
  second["metadata"]["name"] = "web-2";
  After(second);
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080", "10.1.0.6:8080"));
  client.Remove(kube::kinds::kEndpointSlice, "shop", "web-1");
  Run();
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080", "10.1.0.6:8080")) << "the other slice still has it";
}

TEST_F(KubeControllerTest, AnEndpointOfAHeadlessServiceIsAFullPush) {
  json service = ServiceOf("web", kSelector, "None");
  client.Put(service);
  client.Put(PodOf("web-1", "10.1.0.5", kSelector));
  Start();
  EXPECT_THAT(After(SliceOf("web", {{"web-1", "10.1.0.5"}})),
              ElementsAre("eds web.shop 1", "full headlessendpoint web.shop"));
}

TEST_F(KubeControllerTest, AnEndpointSaysWhereItsPodRuns) {
  client.Put(NodeOf("n1", {{"topology.kubernetes.io/region", "r"}, {"topology.kubernetes.io/zone", "z"}}));
  PutWeb({{"app", "web"}, {"security.istio.io/tlsMode", "istio"}});
  Start();
  EXPECT_EQ(FirstProfile().locality.label, "r/z/");
  EXPECT_EQ(FirstProfile().tls_mode, "istio");
  EXPECT_EQ(FirstProfile().service_account, "spiffe://cluster.local/ns/shop/sa/web");
  EXPECT_EQ(FirstProfile().node_name, "n1");
  EXPECT_EQ(FirstProfile().service_port_name, "http");
}

TEST_F(KubeControllerTest, APodsOwnLocalityLabelBeatsItsNode) {
  client.Put(NodeOf("n1", {{"topology.kubernetes.io/region", "r"}, {"topology.kubernetes.io/zone", "z"}}));
  PutWeb({{"app", "web"}, {"istio-locality", "a.b.c"}});
  Start();
  EXPECT_EQ(FirstProfile().locality.label, "a/b/c");
}

// --- pods

TEST_F(KubeControllerTest, ALabelOfAPodReachesItsProxyAtOnceAndItsEndpointLater) {
  PutWeb();
  Start();
  EXPECT_THAT(After(PodOf("web-1", "10.1.0.5", {{"app", "web"}, {"version", "v2"}})), ElementsAre("proxy 10.1.0.5"));
  EXPECT_THAT(FirstProfile().labels, Not(Contains(::testing::Pair("version", "v2"))));
  After(SliceOf("web", {{"web-1", "10.1.0.5"}}));
  EXPECT_THAT(FirstProfile().labels, Contains(::testing::Pair("version", "v2")));
}

TEST_F(KubeControllerTest, WorkloadsThatServeAreToldOf) {
  std::vector<std::string> told;
  controller.AddWorkloadHandler([&](const WorkloadRef& workload, Event event) {
    told.push_back(workload->name + " " + workload->endpoint.address + " " + std::to_string(static_cast<int>(event)));
    EXPECT_EQ(workload->port_map.at("http"), 8080u);
  });
  json pod = PodOf("web-1", "10.1.0.5", kSelector);
  json unready = pod;
  unready["status"]["conditions"][0]["status"] = "False";
  client.Put(unready);
  Start();
  EXPECT_THAT(told, IsEmpty());
  After(pod);
  After(unready);
  EXPECT_THAT(told, ElementsAre("web-1 10.1.0.5 1", "web-1 10.1.0.5 2"));
}

// --- proxies

TEST_F(KubeControllerTest, AProxyServesWhatSelectsItsPod) {
  PutWeb();
  json other = ServiceOf("other", {{"app", "other"}});
  client.Put(other);
  Start();
  const std::vector<ServiceInstance> instances = controller.GetProxyServiceInstances(ProxyAt("web-1", "10.1.0.5"));
  ASSERT_EQ(instances.size(), 1u);
  EXPECT_EQ(instances[0].service->hostname, kWeb);
  EXPECT_EQ(instances[0].endpoint.endpoint_port, 8080u);
  EXPECT_THAT(controller.GetProxyServiceInstances(ProxyAt("web-1", "10.1.0.5", "c2")), IsEmpty());
  EXPECT_THAT(controller.GetProxyServiceInstances(Proxy()), IsEmpty()) << "it has no address yet";
}

TEST_F(KubeControllerTest, OfPortsThatLeadToOneTargetTheFirstIsServed) {
  json service = ServiceOf("web", kSelector);
  service["spec"]["ports"].push_back({{"name", "http-2"}, {"port", 81}, {"protocol", "TCP"}, {"targetPort", 8080}});
  service["spec"]["ports"].push_back({{"name", "http-3"}, {"port", 82}, {"protocol", "TCP"}, {"targetPort", "http"}});
  service["spec"]["ports"].push_back({{"name", "http-4"}, {"port", 83}, {"protocol", "TCP"}, {"targetPort", "none"}});
  client.Put(service);
  client.Put(PodOf("web-1", "10.1.0.5", kSelector));
  Start();
  const std::vector<ServiceInstance> instances = controller.GetProxyServiceInstances(ProxyAt("web-1", "10.1.0.5"));
  ASSERT_EQ(instances.size(), 1u);
  EXPECT_EQ(instances[0].service_port.port, 80);
}

TEST_F(KubeControllerTest, AProxyWithoutItsPodServesWhatItsLabelsSay) {
  client.Put(ServiceOf("web", kSelector));
  Start();
  Proxy proxy = ProxyAt("web-9", "10.1.0.9");
  EXPECT_THAT(controller.GetProxyServiceInstances(proxy), IsEmpty());
  proxy.labels = {{"app", "web"}};
  EXPECT_EQ(controller.GetProxyServiceInstances(proxy).size(), 1u);
  EXPECT_EQ(controller.GetProxyWorkloadLabels(proxy), std::nullopt);
}

TEST_F(KubeControllerTest, AServiceSelectsWorkloadEntriesLikePods) {
  PutWeb();
  Start();
  WorkloadInstance vm;
  vm.name = "vm";
  vm.ns = "shop";
  vm.kind = WorkloadInstance::Kind::kWorkloadEntry;
  vm.endpoint.address = "192.0.2.9";
  vm.endpoint.profile = std::make_shared<EndpointProfile>(EndpointProfile{.labels = {{"app", "web"}}});
  controller.OnWorkloadInstance(std::make_shared<WorkloadInstance>(vm), Event::kAdd);
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080", "192.0.2.9:8080"));
  controller.OnWorkloadInstance(std::make_shared<WorkloadInstance>(vm), Event::kDelete);
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080"));
}

// --- networks

TEST_F(KubeControllerTest, ALabelBeatsTheSystemNamespaceWhichBeatsMeshNetworks) {
  Network("from-registry").endpoints.push_back({.from_registry = "c1"});
  Start();
  EXPECT_EQ(controller.NetworkOf("10.1.0.5", {}).str(), "from-registry");
  After(NamespaceOf("istio-system", {{"topology.istio.io/network", "from-namespace"}}));
  EXPECT_EQ(controller.NetworkOf("10.1.0.5", {}).str(), "from-namespace");
  EXPECT_EQ(controller.NetworkOf("10.1.0.5", {{"topology.istio.io/network", "own"}}).str(), "own");
}

TEST_F(KubeControllerTest, OfNestedRangesTheWidestGivesTheNetwork) {
  Network("narrow").endpoints.push_back({.from_cidr = "10.1.0.0/16"});
  Network("wide").endpoints.push_back({.from_cidr = "10.0.0.0/8"});
  Start();
  EXPECT_EQ(controller.NetworkOf("10.1.0.5", {}).str(), "wide");
  EXPECT_EQ(controller.NetworkOf("192.0.2.1", {}).str(), "");
  EXPECT_EQ(controller.NetworkOf("vm.example", {}).str(), "");
}

TEST_F(KubeControllerTest, TheSystemNamespacesNewNetworkIsThatOfAllItsEndpoints) {
  client.Put(NamespaceOf("shop"));
  PutWeb();
  Start();
  EXPECT_EQ(FirstProfile().network.str(), "");
  EXPECT_THAT(After(NamespaceOf("istio-system", {{"topology.istio.io/network", "n1"}})), Contains("eds web.shop 1"));
  EXPECT_EQ(FirstProfile().network.str(), "n1");
  EXPECT_THAT(After(NamespaceOf("shop", {{"topology.istio.io/network", "n2"}})), IsEmpty());
}

TEST_F(KubeControllerTest, NewMeshNetworksHoldForEndpointsThatAreThere) {
  PutWeb();
  Start();
  Network("n1").endpoints.push_back({.from_registry = "c1"});
  controller.OnMeshNetworksChanged();
  Run();
  EXPECT_EQ(FirstProfile().network.str(), "n1");
}

// --- gateways

json GatewayService(const json& labels) {
  json out = ServiceOf("gw", {{"app", "gw"}});
  out["metadata"]["labels"] = labels;
  out["spec"]["type"] = "LoadBalancer";
  out["status"] = {{"loadBalancer", {{"ingress", {{{"ip", "198.51.100.1"}}}}}}};
  return out;
}

TEST_F(KubeControllerTest, ALabelledLoadBalancerIsAGatewayUntilItGoes) {
  int changes = 0;
  controller.on_gateways_changed = [&] { ++changes; };
  Start();
  EXPECT_THAT(After(GatewayService({{"topology.istio.io/network", "n1"}})), Contains("full networks"));
  const NetworkGateway expected{NetworkId("n1"), ClusterId("c1"), "198.51.100.1", 15443};
  EXPECT_THAT(controller.Gateways(), ElementsAre(expected));
  json port = GatewayService({{"topology.istio.io/network", "n1"}, {"networking.istio.io/gatewayPort", "443"}});
  After(port);
  ASSERT_EQ(controller.Gateways().size(), 1u);
  EXPECT_EQ(controller.Gateways()[0].port, 443u);
  client.Remove(kube::kinds::kService, "shop", "gw");
  Run();
  EXPECT_THAT(controller.Gateways(), IsEmpty());
  EXPECT_EQ(changes, 3);
}

// 1.18.2 looks at Services that have an address only.
TEST_F(KubeControllerTest, AGatewayThatLosesItsLastAddressKeepsIt) {
  client.Put(GatewayService({{"topology.istio.io/network", "n1"}}));
  Start();
  json without = GatewayService({{"topology.istio.io/network", "n1"}});
  without.erase("status");
  EXPECT_THAT(After(without), Not(Contains("full networks")));
  EXPECT_EQ(controller.Gateways().size(), 1u);
}

TEST_F(KubeControllerTest, MeshNetworksNamesAGatewayByItsService) {
  Network("n1").endpoints.push_back({.from_registry = "c1"});
  Network("n1").gateways.push_back({.registry_service_name = "gw.shop.svc.cluster.local", .port = 8443});
  client.Put(GatewayService(json::object()));
  Start();
  EXPECT_THAT(controller.Gateways(),
              ElementsAre(NetworkGateway{NetworkId("n1"), ClusterId("c1"), "198.51.100.1", 8443}));
}

TEST_F(KubeControllerTest, ANodePortGatewayHasTheAddressesOfTheNodesItSelects) {
  json service = GatewayService({{"topology.istio.io/network", "n1"}});
  service["metadata"]["annotations"] = {{"traffic.istio.io/nodeSelector", R"({"edge": "yes"})"}};
  service["spec"]["type"] = "NodePort";
  service["spec"]["ports"] = {{{"name", "tls"}, {"port", 15443}, {"nodePort", 30443}, {"protocol", "TCP"}}};
  service.erase("status");
  client.Put(service);
  client.Put(NodeOf("n1", {{"edge", "yes"}}, "198.51.100.11"));
  client.Put(NodeOf("n2", {{"edge", "no"}}, "198.51.100.12"));
  Start();
  EXPECT_THAT(controller.Gateways(),
              ElementsAre(NetworkGateway{NetworkId("n1"), ClusterId("c1"), "198.51.100.11", 30443}));
  EXPECT_THAT(After(NodeOf("n2", {{"edge", "yes"}}, "198.51.100.12")), ElementsAre("full service"));
  EXPECT_EQ(controller.Gateways().size(), 2u);
}

// --- discovery selectors

TEST_F(KubeControllerTest, ANamespaceThatIsSelectedNoMoreHasNothing) {
  client.Put(NamespaceOf("shop", {{"mesh", "yes"}}));
  PutWeb();
  selectors = json::array({{{"matchLabels", {{"mesh", "yes"}}}}});
  controller.OnMeshConfigChanged();
  Start();
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080"));
  EXPECT_THAT(After(NamespaceOf("shop", {{"mesh", "no"}})), Contains("service web.shop deleted"));
  EXPECT_EQ(controller.GetService(kWeb), nullptr);
  After(NamespaceOf("shop", {{"mesh", "yes"}}));
  EXPECT_NE(controller.GetService(kWeb), nullptr);
  EXPECT_THAT(Addresses(), ElementsAre("10.1.0.5:8080"));
}

// Found by a random mesh: a Service of a remote cluster that went in the instant in which its namespace was left out
// stayed for ever. A real 1.30.3 had it no more.
TEST_F(KubeControllerTest, AServiceThatIsDeletedWhileItsNamespaceIsLeftOutIsGone) {
  client.Put(NamespaceOf("shop"));
  PutWeb();
  Start();
  ASSERT_NE(controller.GetService(kWeb), nullptr);
  selectors = json::array({{{"matchLabels", {{"mesh", "yes"}}}}});
  // The deletions are heard, and left out, before the queue gets to the namespace.
  host.RunAfter(1ms, [this] { controller.OnMeshConfigChanged(); });
  client.Remove(kube::kinds::kService, "shop", "web");
  client.Remove(kube::kinds::kEndpointSlice, "shop", "web-1");
  kernel.RunUntil(kernel.Now() + 1s);
  EXPECT_EQ(controller.GetService(kWeb), nullptr);
  // Nor do its endpoints come back with another Service of its name.
  selectors = nullptr;
  controller.OnMeshConfigChanged();
  client.Put(ServiceOf("web", {{"app", "other"}}));
  kernel.RunUntil(kernel.Now() + 1s);
  ASSERT_NE(controller.GetService(kWeb), nullptr);
  EXPECT_THAT(Addresses(), IsEmpty());
}

}  // namespace
}  // namespace wavetank::pilot
