#include "core/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"

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

}  // namespace
}  // namespace wavetank::pilot
