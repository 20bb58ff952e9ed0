#include "core/registry/service_entry/service_entry_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/profile/changes.h"
#include "core/registry/service_entry/auto_allocate.h"

namespace wavetank::pilot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Keeps what registries say, in words, and the endpoints by host.
class Recorder final : public XdsUpdater {
 public:
  void EdsUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                 EndpointList endpoints) override {
    said.push_back("eds " + std::string(hostname));
    Store(shard, hostname, ns, std::move(endpoints));
  }
  void EdsCacheUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                      EndpointList endpoints) override {
    said.push_back("cache " + std::string(hostname));
    Store(shard, hostname, ns, std::move(endpoints));
  }
  void SvcUpdate(const ShardKey&, std::string_view hostname, std::string_view, Event event) override {
    static constexpr const char* kEvents[] = {"add", "update", "delete"};
    said.push_back("service " + std::string(hostname) + " " + kEvents[static_cast<int>(event)]);
  }
  void ConfigUpdate(PushRequest request) override {
    std::string text = "full";
    for (const ConfigKey& key : request.configs_updated) text += " " + key.name;
    said.push_back(text);
  }
  void ProxyUpdate(const ClusterId&, std::string_view ip) override { said.push_back("proxy " + std::string(ip)); }
  void RemoveShard(const ShardKey&) override {}

  std::vector<std::string> Take() { return std::exchange(said, {}); }
  std::vector<std::string> Addresses(const std::string& hostname) const {
    std::vector<std::string> out;
    const auto it = shard_of.find(hostname);
    if (it == shard_of.end()) return out;
    for (const IstioEndpoint& endpoint : it->second) {
      out.push_back(endpoint.address + ":" + std::to_string(endpoint.endpoint_port));
    }
    return out;
  }

  std::vector<std::string> said;
  std::map<std::string, EndpointList> shard_of;

 private:
  void Store(const ShardKey& shard, std::string_view hostname, std::string_view, EndpointList list) {
    EXPECT_EQ(shard.provider, Provider::kExternal);
    shard_of[std::string(hostname)] = std::move(list);
  }
};

using Entry = config::TypedConfig<config::ServiceEntry>;
using Workload = config::TypedConfig<config::WorkloadEntry>;

class ServiceEntryControllerTest : public ::testing::Test {
 protected:
  static Entry MakeEntry(const std::string& name, const std::string& host,
                         config::ServiceEntry::Resolution resolution) {
    Entry out;
    out.meta.kind = config::Kind::kServiceEntry;
    out.meta.name = name;
    out.meta.ns = "shop";
    out.spec.hosts = {host};
    out.spec.addresses = {"192.0.2.80"};
    out.spec.ports = {{.number = 80, .protocol = "HTTP", .name = "http", .target_port = 8080}};
    out.spec.resolution = resolution;
    return out;
  }
  static Workload MakeWorkload(const std::string& name, const std::string& address, kube::Labels labels) {
    Workload out;
    out.meta.kind = config::Kind::kWorkloadEntry;
    out.meta.name = name;
    out.meta.ns = "shop";
    out.meta.labels = std::move(labels);
    out.spec.address = address;
    return out;
  }
  static WorkloadRef MakePod(const std::string& name, const std::string& ip, kube::Labels labels) {
    WorkloadInstance out;
    out.name = name;
    out.ns = "shop";
    auto profile = std::make_shared<EndpointProfile>();
    profile->labels = std::move(labels);
    profile->ns = "shop";
    out.endpoint.address = ip;
    out.endpoint.profile = std::move(profile);
    return std::make_shared<const WorkloadInstance>(std::move(out));
  }
  void Put(const Entry& entry) { store_.Put(std::make_shared<const Entry>(entry)); }
  void Put(const Workload& entry) { store_.Put(std::make_shared<const Workload>(entry)); }
  static config::WorkloadEntry At(const std::string& address) {
    config::WorkloadEntry out;
    out.address = address;
    return out;
  }

  static constexpr auto kStatic = config::ServiceEntry::Resolution::kStatic;
  static constexpr auto kDns = config::ServiceEntry::Resolution::kDns;

  config::ConfigStore store_;
  Recorder updater_;
  ServiceEntryController controller_{store_, updater_, {.cluster = ClusterId("cluster1")}};
};

TEST_F(ServiceEntryControllerTest, NewEntryIsAFullPushAndFillsItsShard) {
  Entry entry = MakeEntry("db", "db.test", kStatic);
  entry.spec.endpoints = {At("10.0.0.1"), At("10.0.0.2")};
  Put(entry);
  EXPECT_THAT(updater_.Take(), ElementsAre("service db.test add", "cache db.test", "full db.test"));
  EXPECT_THAT(updater_.Addresses("db.test"), ElementsAre("10.0.0.1:8080", "10.0.0.2:8080"));
}

TEST_F(ServiceEntryControllerTest, OtherEndpointsOfTheSameServiceAreNoFullPush) {
  Entry entry = MakeEntry("db", "db.test", kStatic);
  entry.spec.endpoints = {At("10.0.0.1")};
  Put(entry);
  updater_.Take();
  entry.spec.endpoints = {At("10.0.0.3")};
  Put(entry);
  EXPECT_THAT(updater_.Take(), ElementsAre("eds db.test"));
  EXPECT_THAT(updater_.Addresses("db.test"), ElementsAre("10.0.0.3:8080"));
}

TEST_F(ServiceEntryControllerTest, EndpointsThatAllGoStayInTheShard) {
  // 1.18.2 looks for the services to update among the new endpoints, of which there are none.
  Entry entry = MakeEntry("db", "db.test", kStatic);
  entry.spec.endpoints = {At("10.0.0.1")};
  Put(entry);
  updater_.Take();
  entry.spec.endpoints = {};
  Put(entry);
  EXPECT_THAT(updater_.Take(), IsEmpty());
  EXPECT_THAT(updater_.Addresses("db.test"), ElementsAre("10.0.0.1:8080"));
}

TEST_F(ServiceEntryControllerTest, EndpointsWithHostNamesNeedAFullPush) {
  Entry entry = MakeEntry("api", "api.test", kDns);
  entry.spec.endpoints = {At("one.test")};
  Put(entry);
  updater_.Take();
  entry.spec.endpoints = {At("two.test")};
  Put(entry);
  EXPECT_THAT(updater_.Take(), ElementsAre("full api.test"));
}

TEST_F(ServiceEntryControllerTest, AllocatedAddressMakesEveryUpdateAFullPush) {
  Entry entry = MakeEntry("db", "db.test", kStatic);
  entry.spec.addresses = {};
  entry.spec.endpoints = {At("10.0.0.1")};
  Put(entry);
  ASSERT_EQ(controller_.Services().size(), 1u);  // a push context asks, and addresses are allocated
  EXPECT_EQ(controller_.Services()[0]->auto_allocated_ipv4.substr(0, 8), "240.240.");
  updater_.Take();
  entry.spec.endpoints = {At("10.0.0.2")};
  Put(entry);
  EXPECT_THAT(updater_.Take(), ElementsAre("service db.test update", "cache db.test", "full db.test"));
}

TEST_F(ServiceEntryControllerTest, AnAddressIsNeverGivenTwiceNorOneThatIsWrittenDownByProfile) {
  config::ConfigStore store;
  Recorder updater;
  const ServiceEntryController controller(store, updater,
                                          {.cluster = ClusterId("cluster1"), .profile = *ParseProfile("istio-1.30")});
  const auto put = [&](const std::string& name, const std::vector<std::string>& addresses = {}) {
    Entry entry = MakeEntry(name, name + ".test", kStatic);
    entry.spec.addresses = addresses;
    store.Put(std::make_shared<const Entry>(entry));
    return controller.GetService(name + ".test")->auto_allocated_ipv4;
  };
  EXPECT_EQ(put("a"), "240.240.0.1");
  EXPECT_EQ(put("b"), "240.240.0.2");
  store.Delete(config::Kind::kServiceEntry, "a", "shop");
  EXPECT_EQ(put("a"), "240.240.0.3");
  EXPECT_EQ(put("fixed", {"240.240.0.4"}), "");
  EXPECT_EQ(put("c"), "240.240.0.5");
  EXPECT_EQ(put("b"), "240.240.0.2");
}

class KeptInMemory final : public AddressKeeper {
 public:
  std::map<kube::NamespacedName, AllocatedAddresses> kept;
  std::map<kube::NamespacedName, AllocatedAddresses> Kept() const override { return kept; }
  void Keep(const kube::NamespacedName& entry, const AllocatedAddresses& addresses) override {
    kept[entry] = addresses;
  }
};

TEST_F(ServiceEntryControllerTest, AddressesOutliveItWhereTheyAreKept) {
  KeptInMemory keeper;
  keeper.kept = {{{"shop", "late"}, {{"late.test", 1}}}, {{"shop", "twin"}, {{"twin.test", 1}}}};
  config::ConfigStore store;
  Recorder updater;
  const ServiceEntryController controller(
      store, updater, {.cluster = ClusterId("cluster1"), .profile = *ParseProfile("istio-1.30"), .addresses = &keeper});
  const auto put = [&](const std::string& name) {
    Entry entry = MakeEntry(name, name + ".test", kStatic);
    entry.spec.addresses = {};
    store.Put(std::make_shared<const Entry>(entry));
    return controller.GetService(name + ".test")->auto_allocated_ipv4;
  };
  EXPECT_EQ(put("early"), "240.240.0.2") << "the first is kept for one that is not here yet";
  EXPECT_EQ(put("late"), "240.240.0.1");
  EXPECT_EQ(put("twin"), "240.240.0.3") << "what two have, one of them loses";
  EXPECT_EQ(keeper.kept.at({"shop", "early"}), (AllocatedAddresses{{"early.test", 2}}));
  Entry fixed = MakeEntry("early", "early.test", kStatic);
  store.Put(std::make_shared<const Entry>(fixed));
  EXPECT_TRUE(keeper.kept.at({"shop", "early"}).empty());
}

TEST_F(ServiceEntryControllerTest, ANamespacesTrafficDistributionHoldsForItsEntriesByProfile) {
  config::ConfigStore store;
  Recorder updater;
  Labels annotations;
  ServiceEntryController controller(store, updater,
                                    {.cluster = ClusterId("cluster1"),
                                     .profile = *ParseProfile("istio-1.30"),
                                     .namespace_annotations = [&](const std::string&) { return annotations; }});
  store.Put(std::make_shared<const Entry>(MakeEntry("db", "db.test", kStatic)));
  EXPECT_EQ(controller.GetService("db.test")->attributes.traffic_distribution, TrafficDistribution::kAny);
  annotations = {{"networking.istio.io/traffic-distribution", "PreferClose"}};
  controller.OnNamespaceAnnotations("shop");
  EXPECT_EQ(controller.GetService("db.test")->attributes.traffic_distribution, TrafficDistribution::kPreferSameZone);
  EXPECT_THAT(updater.Take(), Contains("full db.test"));
}

TEST_F(ServiceEntryControllerTest, ShardGoesWithTheLastEntryOfAHost) {
  Entry first = MakeEntry("one", "db.test", kStatic), second = MakeEntry("two", "db.test", kStatic);
  first.spec.endpoints = {At("10.0.0.1")};
  second.spec.endpoints = {At("10.0.0.2")};
  Put(first);
  Put(second);
  EXPECT_THAT(updater_.Addresses("db.test"), UnorderedElementsAre("10.0.0.1:8080", "10.0.0.2:8080"));
  updater_.Take();
  store_.Delete(config::Kind::kServiceEntry, "one", "shop");
  EXPECT_THAT(updater_.Take(), ElementsAre("cache db.test", "full db.test"));
  EXPECT_THAT(updater_.Addresses("db.test"), ElementsAre("10.0.0.2:8080"));
  store_.Delete(config::Kind::kServiceEntry, "two", "shop");
  EXPECT_THAT(updater_.Take(), ElementsAre("service db.test delete", "full db.test"));
}

TEST_F(ServiceEntryControllerTest, WorkloadEntriesAndPodsAreSelectedByLabels) {
  Entry entry = MakeEntry("vm", "vm.test", kStatic);
  entry.spec.workload_selector = kube::Labels{{"app", "vm"}};
  Put(entry);
  Put(MakeWorkload("vm-1", "10.0.0.1", {{"app", "vm"}}));
  Put(MakeWorkload("other", "10.0.0.9", {{"app", "other"}}));
  controller_.OnWorkloadInstance(MakePod("pod-1", "10.1.0.1", {{"app", "vm"}}), Event::kAdd);
  EXPECT_THAT(updater_.Addresses("vm.test"), UnorderedElementsAre("10.0.0.1:8080", "10.1.0.1:8080"));
  controller_.OnWorkloadInstance(MakePod("pod-1", "10.1.0.1", {{"app", "vm"}}), Event::kDelete);
  EXPECT_THAT(updater_.Addresses("vm.test"), ElementsAre("10.0.0.1:8080"));
  store_.Delete(config::Kind::kWorkloadEntry, "vm-1", "shop");
  EXPECT_THAT(updater_.Addresses("vm.test"), IsEmpty());
}

TEST_F(ServiceEntryControllerTest, EntryThatComesAfterItsWorkloadsFindsThem) {
  Put(MakeWorkload("vm-1", "10.0.0.1", {{"app", "vm"}}));
  controller_.OnWorkloadInstance(MakePod("pod-1", "10.1.0.1", {{"app", "vm"}}), Event::kAdd);
  Entry entry = MakeEntry("vm", "vm.test", kStatic);
  entry.spec.workload_selector = kube::Labels{{"app", "vm"}};
  Put(entry);
  EXPECT_THAT(updater_.Addresses("vm.test"), UnorderedElementsAre("10.0.0.1:8080", "10.1.0.1:8080"));
}

TEST_F(ServiceEntryControllerTest, WorkloadEntryThatLosesItsLabelLeaves) {
  Entry entry = MakeEntry("vm", "vm.test", kStatic);
  entry.spec.workload_selector = kube::Labels{{"app", "vm"}};
  Put(entry);
  Put(MakeWorkload("vm-1", "10.0.0.1", {{"app", "vm"}}));
  updater_.Take();
  Put(MakeWorkload("vm-1", "10.0.0.1", {{"app", "none"}}));
  EXPECT_THAT(updater_.Take(), ElementsAre("proxy 10.0.0.1", "eds vm.test"));
  EXPECT_THAT(updater_.Addresses("vm.test"), IsEmpty());
}

TEST_F(ServiceEntryControllerTest, WorkloadOfAnotherNamespaceIsNotSelected) {
  Entry entry = MakeEntry("vm", "vm.test", kStatic);
  entry.spec.workload_selector = kube::Labels{{"app", "vm"}};
  Put(entry);
  Workload foreign = MakeWorkload("vm-1", "10.0.0.1", {{"app", "vm"}});
  foreign.meta.ns = "bank";
  Put(foreign);
  EXPECT_THAT(updater_.Addresses("vm.test"), IsEmpty());
}

TEST_F(ServiceEntryControllerTest, KubernetesIsToldOfWorkloadsWithAddressesOnly) {
  std::vector<std::string> told;
  controller_.AddWorkloadHandler([&](const WorkloadRef& w, Event) { told.push_back(w->endpoint.address); });
  Put(MakeWorkload("vm-1", "10.0.0.1", {{"app", "vm"}}));
  Put(MakeWorkload("vm-2", "vm.example", {{"app", "vm"}}));
  EXPECT_THAT(told, ElementsAre("10.0.0.1"));
}

TEST_F(ServiceEntryControllerTest, PortOfTheWorkloadGoesBeforeThatOfTheEntry) {
  Entry entry = MakeEntry("db", "db.test", kStatic);
  config::WorkloadEntry own_port = At("10.0.0.1");
  own_port.ports = {{"http", 9999}};
  entry.spec.endpoints = {own_port, At("unix:///run/db.sock")};
  Put(entry);
  EXPECT_THAT(updater_.Addresses("db.test"), ElementsAre("10.0.0.1:9999", "/run/db.sock:0"));
}

TEST_F(ServiceEntryControllerTest, RoundRobinHasOneEndpointPerPort) {
  Entry entry = MakeEntry("rr", "rr.test", config::ServiceEntry::Resolution::kDnsRoundRobin);
  entry.spec.endpoints = {At("one.test"), At("two.test")};
  Put(entry);
  const Service& service = *controller_.Services().at(0);
  const std::vector<ServiceInstance> instances = controller_.InstancesByPort(service, 80);
  ASSERT_EQ(instances.size(), 1u);
  EXPECT_EQ(instances[0].endpoint.address, "one.test");
}

TEST_F(ServiceEntryControllerTest, PrefixOfOneAddressIsThatAddress) {
  Entry entry = MakeEntry("net", "net.test", kStatic);
  entry.spec.addresses = {"192.0.2.7/32", "198.51.100.0/24", "nonsense"};
  Put(entry);
  std::vector<std::string> addresses;
  for (const ServiceRef& service : controller_.Services()) addresses.push_back(service->default_address);
  EXPECT_THAT(addresses, ElementsAre("192.0.2.7", "198.51.100.0/24"));
}

ServiceRef Named(const std::string& hostname) {
  auto out = std::make_shared<Service>();
  out->hostname = hostname;
  out->default_address = std::string(kUnspecifiedIp);
  out->attributes.ns = "sample";
  return out;
}

TEST(AutoAllocateTest, AddressesAreThoseOfIstiod) {
  // As recorded from istiod 1.18.2.
  EXPECT_THAT(AutoAllocateIps({Named("api.ext.test"), Named("bare.ext.test"), Named("rr.ext.test")}),
              ElementsAre("240.240.51.216", "240.240.199.81", "240.240.7.87"));
}

TEST(AutoAllocateTest, NoAddressEndsIn0Or255AndNoneIsGivenTwice) {
  std::vector<ServiceRef> services;
  for (int i = 0; i < 20000; ++i) services.push_back(Named("host" + std::to_string(i) + ".test"));
  const std::vector<std::string> addresses = AutoAllocateIps(services);
  std::set<std::string> seen;
  for (const std::string& address : addresses) {
    const std::string last = address.substr(address.rfind('.') + 1);
    EXPECT_TRUE(seen.insert(address).second) << address;
    EXPECT_NE(last, "0");
    EXPECT_NE(last, "255");
  }
}

TEST(AutoAllocateTest, WildcardsAndFixedAddressesGetNone) {
  auto fixed = std::make_shared<Service>(*Named("fixed.test"));
  fixed->default_address = "192.0.2.1";
  auto original = std::make_shared<Service>(*Named("none.test"));
  original->resolution = Resolution::kPassthrough;
  EXPECT_THAT(AutoAllocateIps({Named("*.wild.test"), fixed, original}), ElementsAre("", "", ""));
}

TEST_F(ServiceEntryControllerTest, AReleaseThatCannotReadDynamicDnsGoesOnWithWhatWasThere) {
  Entry entry = MakeEntry("any", "*.example.com", kDns);
  Put(entry);
  ASSERT_EQ(controller_.Services().size(), 1u);
  entry.spec.resolution = config::ServiceEntry::Resolution::kDynamicDns;
  entry.spec.addresses = {};
  Put(entry);
  ASSERT_EQ(controller_.Services().size(), 1u);
  EXPECT_EQ(controller_.Services()[0]->resolution, Resolution::kDnsLb);
}

TEST(DynamicDnsTest, AWildcardIsGivenAnAddressByTheControllerAlone) {
  Profile profile;
  profile.Set(Change::kDynamicDns);
  const auto address = [](const Profile& of) {
    config::ConfigStore store;
    Recorder updater;
    ServiceEntryController controller(store, updater, {.cluster = ClusterId("cluster1"), .profile = of});
    Entry entry;
    entry.meta.kind = config::Kind::kServiceEntry;
    entry.meta.name = "any";
    entry.meta.ns = "shop";
    entry.spec.hosts = {"*.example.com"};
    entry.spec.ports = {{.number = 443, .protocol = "TLS", .name = "tls"}};
    entry.spec.resolution = config::ServiceEntry::Resolution::kDynamicDns;
    store.Put(std::make_shared<const Entry>(entry));
    EXPECT_EQ(controller.Services().size(), 1u);
    return controller.Services().empty() ? "none" : controller.Services()[0]->auto_allocated_ipv4;
  };
  EXPECT_EQ(address(profile), "") << "istiod's older way leaves wildcards out";
  profile.Set(Change::kAddressesByController);
  EXPECT_EQ(address(profile), "240.240.0.1");
}

// istiod: shouldV2AutoAllocateIPFromPieces, clearStaleAddresses. A real 1.30.3 took away again and again what our own
// istiod had given.
TEST(AutoAllocationTest, AnEntryThatRefusesAnAddressByLabelGetsNoneAndLosesItsOwn) {
  Profile profile;
  profile.Set(Change::kAddressesByController);
  config::ConfigStore store;
  Recorder updater;
  ServiceEntryController controller(store, updater, {.cluster = ClusterId("cluster1"), .profile = profile});
  const auto address = [&](const char* refuses) {
    Entry entry;
    entry.meta.kind = config::Kind::kServiceEntry;
    entry.meta.name = "db";
    entry.meta.ns = "shop";
    entry.meta.labels["networking.istio.io/enable-autoallocate-ip"] = refuses;
    entry.spec.hosts = {"db.test"};
    entry.spec.ports = {{.number = 80, .protocol = "TCP", .name = "tcp"}};
    entry.spec.resolution = config::ServiceEntry::Resolution::kDns;
    store.Put(std::make_shared<const Entry>(entry));
    EXPECT_EQ(controller.Services().size(), 1u);
    return controller.Services().empty() ? "none" : controller.Services()[0]->auto_allocated_ipv4;
  };
  EXPECT_EQ(address("False"), "");
  EXPECT_EQ(address("true"), "240.240.0.1");
  EXPECT_EQ(address("false"), "");
}

// --- Derived from what there is, by profile ---

class DerivedEntriesTest : public ServiceEntryControllerTest {
 protected:
  static Profile Of130() {
    Profile profile;
    profile.Set(Change::kEntriesDerived);
    profile.Set(Change::kDnsEndpointsInShards);
    return profile;
  }
  config::ConfigStore store130_;
  Recorder updater130_;
  ServiceEntryController derived_{store130_, updater130_, {.cluster = ClusterId("cluster1"), .profile = Of130()}};
  void Put130(const Entry& entry) { store130_.Put(std::make_shared<const Entry>(entry)); }
  void Put130(const Workload& entry) { store130_.Put(std::make_shared<const Workload>(entry)); }
};

TEST_F(DerivedEntriesTest, EndpointsThatAllGoAreGone) {
  Entry entry = MakeEntry("db", "db.test", kStatic);
  entry.spec.endpoints = {At("10.0.0.1")};
  Put130(entry);
  EXPECT_THAT(updater130_.Take(), ElementsAre("eds db.test", "service db.test add", "full db.test"));
  entry.spec.endpoints = {};
  Put130(entry);
  EXPECT_THAT(updater130_.Take(), ElementsAre("eds db.test"));
  EXPECT_THAT(updater130_.Addresses("db.test"), IsEmpty());
}

TEST_F(DerivedEntriesTest, EntriesOfOneHostAddUpAndTheHostGoesWithTheLast) {
  Entry one = MakeEntry("one", "db.test", kStatic), two = MakeEntry("two", "db.test", kStatic);
  one.meta.creation_unix_seconds = 2;
  one.spec.endpoints = {At("10.0.0.1")};
  two.meta.creation_unix_seconds = 1;
  two.spec.endpoints = {At("10.0.0.2")};
  Put130(one);
  Put130(two);
  EXPECT_THAT(updater130_.Addresses("db.test"), ElementsAre("10.0.0.2:8080", "10.0.0.1:8080")) << "the oldest first";
  store130_.Delete(config::Kind::kServiceEntry, "two", "shop");
  EXPECT_THAT(updater130_.Addresses("db.test"), ElementsAre("10.0.0.1:8080"));
  updater130_.Take();
  store130_.Delete(config::Kind::kServiceEntry, "one", "shop");
  EXPECT_THAT(updater130_.Take(), ElementsAre("service db.test delete", "eds db.test", "full db.test"));
}

TEST_F(DerivedEntriesTest, AWorkloadThatLeavesTakesNobodyElsesInstancesAlong) {
  Entry entry = MakeEntry("vms", "vms.test", kStatic), fixed = MakeEntry("fixed", "fixed.test", kStatic);
  entry.spec.workload_selector = kube::Labels{{"app", "vm"}};
  fixed.spec.endpoints = {At("10.0.0.1")};
  Put130(entry);
  Put130(fixed);
  Put130(MakeWorkload("vm", "10.0.0.1", {{"app", "vm"}}));
  Proxy proxy;
  proxy.ip_addresses = {"10.0.0.1"};
  proxy.metadata.ns = "shop";
  EXPECT_EQ(derived_.GetProxyServiceInstances(proxy).size(), 2u);
  store130_.Delete(config::Kind::kWorkloadEntry, "vm", "shop");
  EXPECT_EQ(derived_.GetProxyServiceInstances(proxy).size(), 1u);
  EXPECT_THAT(updater130_.Addresses("vms.test"), IsEmpty());
}

TEST_F(DerivedEntriesTest, AWorkloadEntryOfAnotherClusterLeavesEntirelyAndOwnOnesHideIt) {
  Entry entry = MakeEntry("vms", "vms.test", kStatic);
  entry.spec.workload_selector = kube::Labels{{"app", "vm"}};
  Put130(entry);
  WorkloadInstance far = *MakePod("vm", "10.9.0.1", {{"app", "vm"}});
  far.kind = WorkloadInstance::Kind::kWorkloadEntry;
  const auto told = std::make_shared<const WorkloadInstance>(far);
  derived_.OnWorkloadInstance(told, Event::kAdd);
  EXPECT_THAT(updater130_.Addresses("vms.test"), ElementsAre("10.9.0.1:8080"));
  Put130(MakeWorkload("vm", "10.0.0.1", {{"app", "vm"}}));
  EXPECT_THAT(updater130_.Addresses("vms.test"), ElementsAre("10.0.0.1:8080"));
  store130_.Delete(config::Kind::kWorkloadEntry, "vm", "shop");
  EXPECT_THAT(updater130_.Addresses("vms.test"), ElementsAre("10.9.0.1:8080"));
  derived_.OnWorkloadInstance(told, Event::kDelete);
  EXPECT_THAT(updater130_.Addresses("vms.test"), IsEmpty());
}

TEST_F(DerivedEntriesTest, AnotherTargetPortIsAFullPush) {
  Entry entry = MakeEntry("db", "db.test", kStatic);
  entry.spec.endpoints = {At("10.0.0.1")};
  Put130(entry);
  updater130_.Take();
  entry.spec.ports[0].target_port = 9090;
  Put130(entry);
  EXPECT_THAT(updater130_.Take(), ElementsAre("eds db.test", "service db.test update", "full db.test"));
}

TEST(WorkloadEntriesTest, LocalityAndNameMayBeLabelsByProfile) {
  config::WorkloadEntry entry;
  entry.address = "10.0.0.1";
  entry.labels = {{"istio-locality", "a.b.c"}};
  config::ConfigMeta meta;
  meta.name = "vm-1";
  meta.ns = "shop";
  meta.labels = {{"service.istio.io/workload-name", "vm"}};
  EndpointConverter converter{ClusterId("c"), {}, {}, true};
  EXPECT_EQ(converter.Workload(meta, entry).endpoint.p().locality.label, "");
  EXPECT_EQ(converter.Workload(meta, entry).endpoint.p().workload_name, "vm-1");
  converter.locality_by_label = converter.names_by_group = true;
  EXPECT_EQ(converter.Workload(meta, entry).endpoint.p().locality.label, "a/b/c");
  EXPECT_EQ(converter.Workload(meta, entry).endpoint.p().workload_name, "vm");
  entry.labels["topology.istio.io/locality"] = "x/y";
  entry.locality = "r";
  EXPECT_EQ(converter.Workload(meta, entry).endpoint.p().locality.label, "r");
  meta.annotations = {{"istio.io/autoRegistrationGroup", "group"}};
  EXPECT_EQ(converter.Workload(meta, entry).endpoint.p().workload_name, "group");
}

}  // namespace
}  // namespace wavetank::pilot
