// A question of capacity: from one and the same settled world, forks with more and more pods; how long does the push
// take that follows? The figures are the model's (docs/timing.md).
#include <wavetank/actions.h>
#include <wavetank/gtest.h>

#include "my_mesh.h"

using namespace std::chrono_literals;  // NOLINT
using wavetank::Succeeded;

TEST(MyMesh, ConvergesWithinASecondOfKubernetesUpToFortyPods) {
  auto settled = wavetank::World::Open(MyMesh());
  ASSERT_THAT(settled, Succeeded());
  for (const int64_t pods : {10, 40}) {
    auto world = settled->Fork();
    ASSERT_THAT(world, Succeeded());
    ASSERT_THAT(world->Do(wavetank::actions::Scale{.cluster = "west", .deployment = "sample/web-v2", .replicas = pods}),
                Succeeded());
    auto after = world->Settle();
    ASSERT_THAT(after, Succeeded());
    ASSERT_FALSE(after->convergence.proxies.empty());
    const wavetank::Convergence::Proxy& slowest = after->convergence.proxies.front();
    const wavetank::Nanoseconds mesh = slowest.total - slowest.stages.at("Kubernetes");
    EXPECT_LT(mesh, 1s) << pods << " pods";
    RecordProperty("ms_" + std::to_string(pods), static_cast<int>(mesh / 1ms));
  }
}
