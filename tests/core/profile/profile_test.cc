#include "core/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "core/profile/releases.h"

namespace wavetank::pilot {
namespace {

using ::testing::HasSubstr;

TEST(Profile, NamesReadBackAsTheSameSwitches) {
  const auto profile = ParseProfile("istio-1.18+upstream-envoy+gateway-once-per-cla");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_TRUE(profile->gateway_once_per_cla);
  EXPECT_TRUE(profile->upstream_envoy);
  EXPECT_FALSE(profile->graceful_secret_update);
  EXPECT_EQ(profile->Name(), "istio-1.18+gateway-once-per-cla+upstream-envoy");
  EXPECT_EQ(ParseProfile("istio-1.18")->Name(), "istio-1.18");
}

TEST(Profile, AnUnknownSwitchIsRefusedWithTheKnownOnes) {
  for (const char* bad : {"istio-1.18+nonsense", "istio-1.17", "istio-1.18+", "", "+upstream-envoy"}) {
    const auto profile = ParseProfile(bad);
    ASSERT_FALSE(profile.ok()) << bad;
    EXPECT_THAT(Message(profile.status()), HasSubstr("+tls-simple-drops-cross-network")) << bad;
  }
}

TEST(Profile, AReleaseHasTheRulesThatItBroughtAndThoseBefore) {
  EXPECT_TRUE(HoldsIn("1.20", "1.20"));
  EXPECT_TRUE(HoldsIn("1.20.3", "1.20"));
  EXPECT_TRUE(HoldsIn("1.30", "1.20.1"));
  EXPECT_FALSE(HoldsIn("1.9", "1.20"));
  EXPECT_FALSE(HoldsIn("1.20", "1.20.1"));
  EXPECT_FALSE(HoldsIn("1.18.2", ""));
  const Profile later = ProfileOf({"istio-1.21", "1.21.0", "1.29"});
  EXPECT_TRUE(later.tls_simple_drops_cross_network);
  EXPECT_FALSE(later.graceful_secret_update);
  EXPECT_FALSE(later.gateway_once_per_cla);
}

TEST(Profile, EveryRowIsASwitchThatCanBeGiven) {
  for (const ProfileRow& row : ProfileRows()) {
    const auto profile = ParseProfile("istio-1.18+" + std::string(row.name));
    ASSERT_TRUE(profile.ok()) << row.name;
    EXPECT_TRUE((*profile).*row.member) << row.name;
    EXPECT_EQ(profile->Name(), "istio-1.18+" + std::string(row.name));
    EXPECT_FALSE(row.what.empty());
  }
}

}  // namespace
}  // namespace wavetank::pilot
