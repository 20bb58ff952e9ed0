// An invariant of one's own, looked at ten times a second while gateways come and go: east always has an endpoint.
#include <wavetank/actions.h>
#include <wavetank/gtest.h>

#include "my_mesh.h"

using namespace std::chrono_literals;  // NOLINT
using wavetank::Succeeded;

namespace {

size_t WebEndpoints(wavetank::World& world) {
  auto endpoints = world.Endpoints("sleep@east");
  size_t count = 0;
  for (const wavetank::Endpoint& each : *endpoints)
    count += each.upstream == "outbound|8080||web.sample.svc.cluster.local" ? 1 : 0;
  return count;
}

}  // namespace

TEST(MyMesh, EastAlwaysHasAnEndpoint) {
  auto world = wavetank::World::Open(MyMesh());
  ASSERT_THAT(world, Succeeded());
  for (const char* address : {"none", "new"}) {
    ASSERT_THAT(world->Do(wavetank::actions::LoadBalancer{
                    .cluster = "west", .service = "istio-system/istio-eastwestgateway", .address = address}),
                Succeeded());
    auto broken = world->Until([](wavetank::World& now) { return WebEndpoints(now) == 0; }, 10s);
    ASSERT_THAT(broken, Succeeded());
    EXPECT_FALSE(*broken) << "no endpoint at " << world->Now().count() << " ns";
  }
}
