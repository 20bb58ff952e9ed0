#include "core/registry/aggregate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/model/proxy.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// A registry that says what it is given.
class FixedRegistry final : public Registry {
 public:
  FixedRegistry(std::string cluster, Provider provider = Provider::kKubernetes)
      : cluster_(cluster), provider_(provider) {}

  void Serve(const std::string& hostname, const std::string& vip, int port = 80) {
    auto service = std::make_shared<Service>();
    service->hostname = hostname;
    service->ports = {{"http", port, Protocol::kHttp}};
    service->attributes.registry = provider_;
    service->cluster_vips[cluster_] = {vip};
    services.push_back(std::move(service));
  }

  Provider provider() const override { return provider_; }
  const ClusterId& cluster() const override { return cluster_; }
  bool HasSynced() const override { return synced; }
  std::vector<ServiceRef> Services() const override { return services; }
  ServiceRef GetService(std::string_view hostname) const override {
    for (const ServiceRef& service : services) {
      if (service->hostname == hostname) return service;
    }
    return nullptr;
  }
  std::vector<ServiceInstance> InstancesByPort(const Service&, int) const override { return {Instance()}; }
  std::vector<ServiceInstance> GetProxyServiceInstances(const Proxy&) const override { return {Instance()}; }
  std::optional<Labels> GetProxyWorkloadLabels(const Proxy&) const override { return labels; }
  std::vector<NetworkGateway> Gateways() const override {
    return {{NetworkId("net-" + cluster_.str()), cluster_, "198.51.100.1", 15443}};
  }

  std::vector<ServiceRef> services;
  std::optional<Labels> labels;
  bool synced = true;

 private:
  ServiceInstance Instance() const {
    ServiceInstance out;
    out.endpoint.address = cluster_.str();
    return out;
  }

  const ClusterId cluster_;
  const Provider provider_;
};

Proxy ProxyOf(const std::string& cluster) {
  Proxy out;
  out.metadata.cluster_id = ClusterId(cluster);
  return out;
}

std::vector<std::string> AnsweredBy(const std::vector<ServiceInstance>& instances) {
  std::vector<std::string> out;
  for (const ServiceInstance& instance : instances) out.push_back(instance.endpoint.address);
  return out;
}

class AggregateTest : public ::testing::Test {
 protected:
  AggregateTest() {
    aggregate.Add(entries);
    aggregate.Add(east);
    aggregate.Add(west);
  }
  FixedRegistry entries{"east", Provider::kExternal}, east{"east"}, west{"west"};
  Aggregate aggregate;
};

TEST_F(AggregateTest, AServiceOfTwoClustersIsOneWithTheFirstDefinitionAndAllVips) {
  east.Serve("web", "10.1.0.1", 80);
  west.Serve("web", "10.2.0.1", 8080);
  const std::vector<ServiceRef> all = aggregate.Services();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]->ports[0].port, 80);
  EXPECT_THAT(all[0]->cluster_vips, ElementsAre(Pair(ClusterId("east"), ElementsAre("10.1.0.1")),
                                                Pair(ClusterId("west"), ElementsAre("10.2.0.1"))));
  const ServiceRef one = aggregate.GetService("web");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->cluster_vips, all[0]->cluster_vips);
}

TEST_F(AggregateTest, MergingLeavesTheRegistriesOwnServicesAlone) {
  east.Serve("web", "10.1.0.1");
  west.Serve("web", "10.2.0.1");
  aggregate.Services();
  aggregate.GetService("web");
  EXPECT_EQ(east.services[0]->cluster_vips.size(), 1u);
}

TEST_F(AggregateTest, AServiceOfOneClusterIsThatRegistrysOwn) {
  west.Serve("web", "10.2.0.1");
  EXPECT_EQ(aggregate.GetService("web"), west.services[0]);
  EXPECT_EQ(aggregate.GetService("other"), nullptr);
}

TEST_F(AggregateTest, AServiceEntryIsNeverMergedWithAServiceOfItsName) {
  entries.Serve("web", "240.240.0.1");
  east.Serve("web", "10.1.0.1");
  EXPECT_EQ(aggregate.Services().size(), 2u);
  EXPECT_EQ(aggregate.GetService("web"), entries.services[0]) << "the first registry that is none of Kubernetes' wins";
}

TEST_F(AggregateTest, AKubernetesRegistryIsAskedForProxiesOfItsOwnClusterOnly) {
  EXPECT_THAT(AnsweredBy(aggregate.GetProxyServiceInstances(ProxyOf("west"))), ElementsAre("east", "west"))
      << "ServiceEntries know proxies of all clusters";
  EXPECT_THAT(AnsweredBy(aggregate.GetProxyServiceInstances(ProxyOf("east"))), ElementsAre("east", "east"));
  EXPECT_THAT(AnsweredBy(aggregate.GetProxyServiceInstances(ProxyOf(""))), ElementsAre("east", "east", "west"));
}

TEST_F(AggregateTest, LabelsComeFromTheFirstRegistryOfTheProxysClusterThatKnowsIt) {
  EXPECT_EQ(aggregate.GetProxyWorkloadLabels(ProxyOf("west")), std::nullopt);
  east.labels = Labels{{"app", "east"}};
  EXPECT_EQ(aggregate.GetProxyWorkloadLabels(ProxyOf("west")), std::nullopt);
  west.labels = Labels{{"app", "west"}};
  EXPECT_EQ(aggregate.GetProxyWorkloadLabels(ProxyOf("west")), west.labels);
  EXPECT_EQ(aggregate.GetProxyWorkloadLabels(ProxyOf("")), east.labels);
}

TEST_F(AggregateTest, HasSyncedWhenAllHave) {
  EXPECT_TRUE(aggregate.HasSynced());
  west.synced = false;
  EXPECT_FALSE(aggregate.HasSynced());
  aggregate.Remove(west);
  EXPECT_TRUE(aggregate.HasSynced());
}

TEST_F(AggregateTest, ARemovedRegistryTakesItsServicesInstancesAndGatewaysAlong) {
  east.Serve("web", "10.1.0.1");
  west.Serve("web", "10.2.0.1");
  west.Serve("only-west", "10.2.0.2");
  EXPECT_EQ(aggregate.Gateways().size(), 3u);
  aggregate.Remove(west);
  EXPECT_EQ(aggregate.Services().size(), 1u);
  EXPECT_EQ(aggregate.GetService("web"), east.services[0]);
  EXPECT_EQ(aggregate.GetService("only-west"), nullptr);
  EXPECT_EQ(aggregate.Gateways().size(), 2u);
  EXPECT_THAT(AnsweredBy(aggregate.InstancesByPort(Service(), 80)), ElementsAre("east", "east"));
  aggregate.Remove(west);  // again: nothing to do
  EXPECT_EQ(aggregate.registries().size(), 2u);
}

TEST(EmptyAggregate, HasNothingAndHasSynced) {
  const Aggregate aggregate;
  EXPECT_TRUE(aggregate.HasSynced());
  EXPECT_THAT(aggregate.Services(), IsEmpty());
}

}  // namespace
}  // namespace wavetank::pilot
