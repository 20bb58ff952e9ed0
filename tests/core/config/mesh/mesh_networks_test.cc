#include "core/config/mesh/mesh_networks.h"

#include <fmt/format.h>

#include "gtest/gtest.h"

namespace wavetank::config {
namespace {

absl::StatusOr<MeshNetworks> WithGateway(std::string_view gateway) {
  return ParseMeshNetworks(fmt::format("networks: {{n: {{gateways: [{}]}}}}", gateway));
}

TEST(MeshNetworksTest, AGatewayWithoutAddressIsAcceptedAndLeadsNowhere) {
  const absl::StatusOr<MeshNetworks> networks = WithGateway("{port: 15443}, {address: 192.0.2.1, port: 443}");
  ASSERT_TRUE(networks.ok()) << networks.status();
  ASSERT_EQ(networks->networks.at("n").gateways.size(), 1u);
  EXPECT_EQ(networks->networks.at("n").gateways[0].address, "192.0.2.1");
}

TEST(MeshNetworksTest, OneNameThatIsNoDnsNameRejectsTheWhole) {
  EXPECT_TRUE(WithGateway("{address: gw.example.com., port: 443}").ok());
  EXPECT_TRUE(WithGateway("{address: '2001:db8::1', port: 443}").ok());
  EXPECT_TRUE(WithGateway("{registryServiceName: gw.istio-system.svc.cluster.local, port: 443}").ok());
  for (const char* bad : {"{address: gw_1.example.com, port: 443}", "{address: 10.0.0.256, port: 443}",
                          "{registryServiceName: -gw.istio-system, port: 443}", "{address: gw..com, port: 443}",
                          "{address: gw.example.com, port: 0}"}) {
    EXPECT_FALSE(WithGateway(bad).ok()) << bad;
  }
  EXPECT_TRUE(ParseMeshNetworks("networks: {n: {endpoints: [{fromRegistry: cluster-1}, {}]}}").ok());
  EXPECT_FALSE(ParseMeshNetworks("networks: {n: {endpoints: [{fromRegistry: cluster.one}]}}").ok());
}

// Gateway's and endpoint's fields are oneofs: jsonpb takes both and the one of the higher number stays.
TEST(MeshNetworksTest, OfTwoFieldsOfAOneofTheLaterOneCounts) {
  const absl::StatusOr<MeshNetworks> networks = ParseMeshNetworks(
      "networks: {n: {endpoints: [{fromRegistry: c2, fromCidr: no-cidr}],"
      " gateways: [{registryServiceName: -no-name, address: 192.0.2.1, port: 443}]}}");
  ASSERT_TRUE(networks.ok()) << networks.status();
  const MeshNetworks::Network& network = networks->networks.at("n");
  EXPECT_EQ(network.endpoints.at(0), (MeshNetworks::Endpoint{"", "c2"}));
  EXPECT_EQ(network.gateways.at(0).address, "192.0.2.1");
  EXPECT_EQ(network.gateways.at(0).registry_service_name, "");
}

TEST(MeshNetworksTest, AnEmptyTextIsAValueAndAnInvalidOne) {
  EXPECT_FALSE(WithGateway("{registryServiceName: '', port: 443}").ok());
  EXPECT_FALSE(WithGateway("{address: '', port: 443}").ok());
  EXPECT_FALSE(ParseMeshNetworks("networks: {n: {endpoints: [{fromRegistry: ''}]}}").ok());
  EXPECT_FALSE(ParseMeshNetworks("networks: {n: {endpoints: [{fromCidr: ''}]}}").ok());
}

TEST(MeshNetworksTest, AnAddressInPlaceOfARangeIsAccepted) {
  EXPECT_TRUE(ParseMeshNetworks("networks: {n: {endpoints: [{fromCidr: 10.2.0.5}]}}").ok());
  EXPECT_FALSE(ParseMeshNetworks("networks: {n: {endpoints: [{fromCidr: 10.2.0}]}}").ok());
}

}  // namespace
}  // namespace wavetank::config
