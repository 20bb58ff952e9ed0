#include "core/registry/kube/pod_addresses.h"

#include <gtest/gtest.h>

namespace wavetank::pilot {
namespace {

const kube::NamespacedName kOne{"sample", "one"}, kTwo{"sample", "two"};

TEST(PodAddresses, KnowBothWays) {
  PodAddresses addresses;
  EXPECT_TRUE(addresses.Put("10.0.0.1", kOne));
  EXPECT_FALSE(addresses.Put("10.0.0.1", kOne));
  ASSERT_NE(addresses.PodAt("10.0.0.1"), nullptr);
  EXPECT_EQ(*addresses.PodAt("10.0.0.1"), kOne);
  EXPECT_TRUE(addresses.Knows(kOne));
  EXPECT_FALSE(addresses.Knows(kTwo));
  EXPECT_EQ(addresses.PodAt("10.0.0.2"), nullptr);
}

TEST(PodAddresses, APodThatMovesLeavesItsOldAddress) {
  PodAddresses addresses;
  addresses.Put("10.0.0.1", kOne);
  EXPECT_TRUE(addresses.Put("10.0.0.2", kOne));
  EXPECT_EQ(addresses.PodAt("10.0.0.1"), nullptr);
  EXPECT_EQ(*addresses.PodAt("10.0.0.2"), kOne);
}

TEST(PodAddresses, AnAddressThatAnotherPodTookIsNotErasedWithItsOldPod) {
  PodAddresses addresses;
  addresses.Put("10.0.0.1", kOne);
  addresses.Put("10.0.0.1", kTwo);
  EXPECT_FALSE(addresses.Erase("10.0.0.1", kOne));
  EXPECT_EQ(*addresses.PodAt("10.0.0.1"), kTwo);
  EXPECT_TRUE(addresses.Erase("10.0.0.1", kTwo));
  EXPECT_EQ(addresses.PodAt("10.0.0.1"), nullptr);
  EXPECT_FALSE(addresses.Knows(kTwo));
}

}  // namespace
}  // namespace wavetank::pilot
