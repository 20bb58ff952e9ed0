#include "core/registry/multicluster/held_back_updater.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/registry/recorded_updater.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ShardKey kShard{ClusterId("c1"), Provider::kKubernetes};

EndpointList Endpoints(size_t count) {
  IstioEndpoint endpoint;
  endpoint.address = "10.1.0.5";
  endpoint.profile = std::make_shared<EndpointProfile>();
  return EndpointList(count, endpoint);
}

class HeldBackUpdaterTest : public ::testing::Test {
 protected:
  RecordedUpdater updater;
  HeldBackUpdater held{updater};
};

TEST_F(HeldBackUpdaterTest, OfEachServiceWhatWasSaidLastIsSaidOnceItOpens) {
  held.SvcUpdate(kShard, "a", "shop", Event::kAdd);
  held.EdsCacheUpdate(kShard, "a", "shop", Endpoints(1));
  held.EdsUpdate(kShard, "a", "shop", Endpoints(2));
  held.SvcUpdate(kShard, "b", "shop", Event::kAdd);
  held.EdsUpdate(kShard, "c", "shop", Endpoints(3));
  held.SvcUpdate(kShard, "c", "shop", Event::kDelete);
  held.ConfigUpdate({.full = true});
  held.ProxyUpdate(ClusterId("c1"), "10.1.0.5");
  held.RemoveShard(kShard);
  EXPECT_THAT(updater.Take(), IsEmpty());
  held.Open();
  EXPECT_THAT(updater.Take(), ElementsAre("eds a 2", "eds b 0"));
}

TEST_F(HeldBackUpdaterTest, EverythingPassesOnceItIsOpen) {
  held.Open();
  held.SvcUpdate(kShard, "a", "shop", Event::kAdd);
  held.EdsCacheUpdate(kShard, "a", "shop", Endpoints(1));
  held.EdsUpdate(kShard, "a", "shop", Endpoints(2));
  held.ConfigUpdate({.full = true});
  held.ProxyUpdate(ClusterId("c1"), "10.1.0.5");
  held.RemoveShard(kShard);
  EXPECT_THAT(updater.Take(),
              ElementsAre("service a added", "cache a 1", "eds a 2", "full", "proxy 10.1.0.5", "shard of c1 removed"));
  held.Open();
  EXPECT_THAT(updater.Take(), IsEmpty()) << "nothing is said twice";
}

}  // namespace
}  // namespace wavetank::pilot
