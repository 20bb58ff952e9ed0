// A gateway that goes to another cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_access.h"
#include "tests/scenarios/actions/main_mesh.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;
using testing::IsNull;
using testing::NotNull;
using testing::StartsWith;

constexpr const char* kGateway = "istio-eastwestgateway";

TEST(GatewayAction, OneThatMovesIsAppliedThereAndGoneHere) {
  const auto look = [](sim::World& world) {
    const auto& from = world.cluster("cluster2").api();
    const auto& to = world.cluster("cluster1").api();
    for (const char* kind : {"Deployment", "Service"}) {
      EXPECT_THAT(from.Get(kind, {"istio-system", kGateway}), IsNull()) << kind;
      EXPECT_THAT(to.Get(kind, {"istio-system", kGateway}), NotNull()) << kind;
    }
    const kube::ObjectRef service = to.Get("Service", {"istio-system", kGateway});
    ASSERT_THAT(service, NotNull());
    const nlohmann::json& ingress = Items(At(service->body, {"status", "loadBalancer", "ingress"}));
    ASSERT_EQ(ingress.size(), 1u);
    EXPECT_THAT(Text(ingress[0], "ip"), StartsWith("172.30.1."));  // of that cluster's range
  };
  const auto result = RunOnMainMesh(R"(
  - {name: goes, do: [{gateway: {cluster: cluster1, state: removed}}]}
  - {name: moves, do: [{gateway: {cluster: cluster2, state: moved, to: cluster1}}]}
)",
                                    {}, look);
  EXPECT_TRUE(result.ok()) << result.status();
}

TEST(GatewayAction, ItMovesToNoClusterThatHasOneOfItsName) {
  const auto result =
      RunOnMainMesh("  - {name: s, do: [{gateway: {cluster: cluster2, state: moved, to: cluster1}}]}\n");
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("cluster1 has a Deployment istio-system/istio-eastwestgateway already"));
}

TEST(GatewayAction, ItMovesToAClusterOfTheMesh) {
  const auto own = ParseScenario("own.yaml",
                                 "name: n\nclusters: [{name: c1}, {name: c2}]\n"
                                 "steps: [{name: s, do: [{gateway: {cluster: c1, state: moved, to: c3}}]}]\n");
  EXPECT_THAT(std::string(own.status().message()), HasSubstr("c3"));
}

}  // namespace
}  // namespace wavetank::scenario
