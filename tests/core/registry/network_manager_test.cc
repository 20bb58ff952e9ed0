#include "core/registry/network_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/mesh/mesh_networks.h"
#include "sim/kernel/kernel.h"
#include "tests/core/registry/recorded_updater.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Names final : public GatewayResolver {
 public:
  Answer Resolve(const std::string& hostname) override {
    asked.push_back(hostname);
    return {addresses[hostname], ttl};
  }
  std::map<std::string, std::vector<std::string>> addresses;
  std::vector<std::string> asked;
  Duration ttl = 60s;
};

class NetworkManagerTest : public ::testing::Test {
 protected:
  static NetworkGateway Gateway(const std::string& network, const std::string& cluster, const std::string& address,
                                uint32_t port = 15443) {
    return {NetworkId(network), ClusterId(cluster), address, port};
  }
  std::vector<std::string> All() const {
    std::vector<std::string> out;
    for (const NetworkGateway& gateway : manager.Gateways()->All()) out.push_back(gateway.addr);
    return out;
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  RecordedUpdater updater;
  Names names;
  std::vector<NetworkGateway> registries;
  std::shared_ptr<config::MeshNetworks> networks;
  NetworkManager manager{host, updater, &names, [this] { return registries; }, [this] { return networks; }};
};

TEST_F(NetworkManagerTest, AChangeOfGatewaysIsAFullPushAndTheSameAgainIsNone) {
  manager.Reload();
  EXPECT_THAT(updater.Take(), IsEmpty());
  EXPECT_FALSE(manager.Gateways()->IsMultiNetworkEnabled());
  registries = {Gateway("n2", "c2", "198.51.100.2")};
  manager.Reload();
  EXPECT_THAT(updater.Take(), ElementsAre("full networks"));
  EXPECT_TRUE(manager.Gateways()->IsMultiNetworkEnabled());
  manager.Reload();
  EXPECT_THAT(updater.Take(), IsEmpty());
  registries.clear();
  manager.Reload();
  EXPECT_THAT(updater.Take(), ElementsAre("full networks"));
  EXPECT_THAT(All(), IsEmpty());
}

// istiod: pilot/pkg/model/push_context.go, networkMgr is a pointer. Who connects before the push gets the new gateways.
TEST_F(NetworkManagerTest, APushContextFromBeforeAChangeKnowsTheGatewaysOfAfterIt) {
  const std::shared_ptr<const NetworkGateways> of_context = manager.Gateways();
  registries = {Gateway("n2", "c2", "198.51.100.2")};
  manager.Reload();
  EXPECT_TRUE(of_context->IsMultiNetworkEnabled());
  EXPECT_THAT(of_context->ForNetwork(NetworkId("n2")), ElementsAre(Gateway("n2", "c2", "198.51.100.2")));
}

TEST_F(NetworkManagerTest, GatewaysOfMeshNetworksHaveNoCluster) {
  networks = std::make_shared<config::MeshNetworks>();
  auto& spec = networks->networks["n2"];
  spec.gateways.emplace_back();
  spec.gateways.back().address = "198.51.100.2";
  spec.gateways.back().port = 443;
  registries = {Gateway("n2", "c2", "198.51.100.2")};
  manager.Reload();
  EXPECT_THAT(manager.Gateways()->All(),
              ElementsAre(Gateway("n2", "", "198.51.100.2", 443), Gateway("n2", "c2", "198.51.100.2")));
}

TEST_F(NetworkManagerTest, TheScaleOfWeightsIsTheLeastCommonMultipleOfAllGroups) {
  registries = {Gateway("n1", "c1", "198.51.100.1"), Gateway("n1", "c1", "198.51.100.2"),
                Gateway("n2", "c2", "198.51.100.3"), Gateway("n2", "c3", "198.51.100.4"),
                Gateway("n2", "c3", "198.51.100.5")};
  manager.Reload();
  EXPECT_EQ(manager.Gateways()->LbWeightScaleFactor(), 6u);  // 2 of n1, 3 of n2, 1 and 2 by cluster
  EXPECT_EQ(manager.Gateways()->ForNetwork(NetworkId("n2")).size(), 3u);
  EXPECT_EQ(manager.Gateways()->ForNetworkAndCluster(NetworkId("n2"), ClusterId("c3")).size(), 2u);
  EXPECT_THAT(manager.Gateways()->ForNetwork(NetworkId("n3")), IsEmpty());
}

TEST_F(NetworkManagerTest, AHostNameIsAskedForOnceAndAgainWhenItsTimeIsUp) {
  names.addresses["gw.example"] = {"198.51.100.7"};
  registries = {Gateway("n2", "c2", "gw.example")};
  manager.Reload();
  manager.Reload();
  EXPECT_THAT(names.asked, ElementsAre("gw.example"));
  EXPECT_THAT(All(), ElementsAre("198.51.100.7"));
  updater.Take();
  names.addresses["gw.example"] = {"198.51.100.8", "198.51.100.9"};
  kernel.RunUntil(kernel.Now() + 59s);
  EXPECT_THAT(All(), ElementsAre("198.51.100.7"));
  kernel.RunUntil(kernel.Now() + 1s);
  EXPECT_THAT(All(), ElementsAre("198.51.100.8", "198.51.100.9"));
  EXPECT_THAT(updater.Take(), ElementsAre("full networks"));
  kernel.RunUntil(kernel.Now() + 60s);
  EXPECT_THAT(updater.Take(), IsEmpty()) << "the same answer is no change";
}

// istiod: pilot/pkg/model/network.go. Import reads these lines, and infers from them.
TEST_F(NetworkManagerTest, LogsEachReloadTheNamesThatDoNotResolveAndTheChange) {
  std::vector<std::string> lines;
  manager.log = [&](const LogLine& line) { lines.push_back(std::string(line.level) + " " + line.text); };
  registries = {Gateway("n2", "c2", "gw.example"), Gateway("n2", "c3", "gw.example")};
  manager.Reload();
  EXPECT_THAT(lines, ElementsAre("info reloading network gateways",
                                 "warn could not resolve hostname \"gw.example\" for 2 gateways"));
  lines.clear();
  names.addresses["gw.example"] = {"198.51.100.8"};
  kernel.RunUntil(kernel.Now() + 60s);
  EXPECT_THAT(lines, ElementsAre("info reloading network gateways", "info gateways changed, triggering push"));
}

TEST_F(NetworkManagerTest, ATimeToLiveBelowThirtySecondsCountsAsThirty) {
  names.ttl = 1s;
  names.addresses["gw.example"] = {"198.51.100.7"};
  registries = {Gateway("n2", "c2", "gw.example")};
  manager.Reload();
  kernel.RunUntil(kernel.Now() + 29s);
  EXPECT_EQ(names.asked.size(), 1u);
  kernel.RunUntil(kernel.Now() + 1s);
  EXPECT_EQ(names.asked.size(), 2u);
}

TEST_F(NetworkManagerTest, ANameThatDoesNotResolveGivesNoGatewayButSeveralNetworks) {
  registries = {Gateway("n2", "c2", "gw.example")};
  manager.Reload();
  EXPECT_THAT(All(), IsEmpty());
  EXPECT_TRUE(manager.Gateways()->IsMultiNetworkEnabled());
  EXPECT_THAT(updater.Take(), IsEmpty()) << "the set of gateways did not change";
  names.addresses["gw.example"] = {"198.51.100.7"};
  kernel.RunUntil(kernel.Now() + 60s);
  EXPECT_THAT(All(), ElementsAre("198.51.100.7"));
}

TEST_F(NetworkManagerTest, ANameThatIsUsedNoMoreIsAskedForNoMore) {
  registries = {Gateway("n2", "c2", "gw.example")};
  manager.Reload();
  registries.clear();
  manager.Reload();
  kernel.RunUntil(kernel.Now() + 10min);
  EXPECT_EQ(names.asked.size(), 1u);
}

TEST(NetworkManagerWithoutResolver, LeavesHostNamesOut) {
  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  RecordedUpdater updater;
  NetworkManager manager(
      host, updater, nullptr,
      [] {
        return std::vector<NetworkGateway>{{NetworkId("n2"), ClusterId("c2"), "gw.example", 15443}};
      },
      [] { return nullptr; });
  manager.Reload();
  EXPECT_THAT(manager.Gateways()->All(), IsEmpty());
}

}  // namespace
}  // namespace wavetank::pilot
