// How requests split, before and after a wave.
#include <wavetank/actions.h>
#include <wavetank/gtest.h>

#include "my_mesh.h"

using namespace std::chrono_literals;  // NOLINT
using wavetank::AllAnswered;
using wavetank::ConvergesWithin;
using wavetank::SplitsEvenly;
using wavetank::Succeeded;

TEST(MyMesh, SplitsEvenlyBetweenVersions) {
  auto world = wavetank::World::Open(MyMesh());
  ASSERT_THAT(world, Succeeded());
  for (const char* cluster : {"east", "west"}) {
    auto requests = world->Send({.cluster = cluster, .host = "web.sample:8080"}, 500);
    ASSERT_THAT(requests, Succeeded());
    EXPECT_THAT(*requests, AllAnswered());
    EXPECT_THAT(*requests, SplitsEvenly({"v1", "v2"}));
  }
}

TEST(MyMesh, LosesNothingWhileItIsScaled) {
  auto world = wavetank::World::Open(MyMesh());
  ASSERT_THAT(world, Succeeded());
  auto traffic = world->Start({.cluster = "east", .host = "web.sample:8080"});
  ASSERT_THAT(traffic, Succeeded());
  ASSERT_THAT(world->Do(wavetank::actions::Scale{.cluster = "west", .deployment = "sample/web-v2", .replicas = 3}),
              Succeeded());
  auto settled = world->Settle();
  ASSERT_THAT(settled, Succeeded());
  EXPECT_THAT(*settled, ConvergesWithin(5s));
  auto requests = world->Finish(*traffic);
  ASSERT_THAT(requests, Succeeded());
  EXPECT_THAT(*requests, AllAnswered());
}
