#include "core/profile/changes.h"

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
  EXPECT_TRUE(profile->Has(Change::kGatewayOncePerCla));
  EXPECT_TRUE(profile->Has(Change::kUpstreamEnvoy));
  EXPECT_FALSE(profile->Has(Change::kGracefulSecretUpdate));
  EXPECT_EQ(profile->Name(), "istio-1.18+gateway-once-per-cla+upstream-envoy");
  EXPECT_EQ(ParseProfile("istio-1.18")->Name(), "istio-1.18");
}

TEST(Profile, AnUnknownSwitchIsRefusedWithTheBasesAndWhereTheChangesAreListed) {
  for (const char* bad : {"istio-1.18+nonsense", "istio-1.17", "istio-1.18+", "istio-1.18-", "istio-1.18-nonsense", "",
                          "+upstream-envoy", "istio-1.18upstream-envoy", "istio-1.18+upstream-envoyx",
                          "istio-1.18+upstream-envoy+", "istio-1.18++upstream-envoy"}) {
    const auto profile = ParseProfile(bad);
    ASSERT_FALSE(profile.ok()) << bad;
    EXPECT_THAT(Message(profile.status()), HasSubstr("istio-1.18, istio-1.24, istio-1.30.1, istio-1.30")) << bad;
    EXPECT_THAT(Message(profile.status()), HasSubstr("`wavetank profiles`")) << bad;
  }
}

TEST(Profile, OfSeveralSignsForOneChangeTheLastCounts) {
  const auto profile = ParseProfile("istio-1.18+gateway-once-per-cla+upstream-envoy-gateway-once-per-cla");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->Name(), "istio-1.18+upstream-envoy");
  EXPECT_EQ(ParseProfile("istio-1.18-upstream-envoy")->Name(), "istio-1.18");
}

TEST(Profile, TheOneThatIsNotNamedIsTheFirstRelease) { EXPECT_EQ(Profile(), ProfileOf(Releases().front())); }

TEST(Profile, AReleaseHasTheRulesThatItBroughtAndThoseBefore) {
  EXPECT_TRUE(HoldsIn("1.20", "1.20"));
  EXPECT_TRUE(HoldsIn("1.20.3", "1.20"));
  EXPECT_TRUE(HoldsIn("1.30", "1.20.1"));
  EXPECT_FALSE(HoldsIn("1.9", "1.20"));
  EXPECT_FALSE(HoldsIn("1.20", "1.20.1"));
  EXPECT_FALSE(HoldsIn("1.18.2", ""));
  const Profile later = ProfileOf({"istio-1.21", "1.21.0", "1.29"});
  EXPECT_TRUE(later.Has(Change::kTlsSimpleDropsCrossNetwork));
  EXPECT_FALSE(later.Has(Change::kGracefulSecretUpdate));
  EXPECT_FALSE(later.Has(Change::kGatewayOncePerCla));
}

TEST(Profile, TheReleaseInTheMiddleHasWhatCameBeforeItAlone) {
  const absl::StatusOr<Profile> middle = ParseProfile("istio-1.24");
  ASSERT_TRUE(middle.ok()) << middle.status();
  EXPECT_TRUE(middle->Has(Change::kNoRetriesOf503));
  EXPECT_TRUE(middle->Has(Change::kClusterLocalBySpecificity));
  EXPECT_FALSE(middle->Has(Change::kNotReadyEndpointsStay));  // 1.25
  EXPECT_FALSE(middle->Has(Change::kGracefulSecretUpdate));
}

TEST(Profile, IstiodsOfSomeReleasesAskWhatAProxyIsOf) {
  const Profile middle = *ParseProfile("istio-1.24"), last = *ParseProfile("istio-1.30");
  EXPECT_EQ(ProxiesWith(middle, Change::kInboundRetries), "1.24");
  EXPECT_EQ(ProxiesWith(last, Change::kInboundRetries), "");
  EXPECT_EQ(ProxiesWith(middle, Change::kPeerMetadataFilter), "");  // asked until 1.21
  EXPECT_EQ(ProxiesWith(ProfileOf({"istio-1.20", "1.20.8", "1.28"}), Change::kPeerMetadataFilter), "1.19");
}

TEST(Profile, EachReleaseOfIstioHasTheNextEnvoy) {
  for (const Release& release : Releases()) {
    EXPECT_EQ(EnvoyMinorOf(release.istio), MinorOf(release.envoy)) << release.name;
  }
  EXPECT_EQ(EnvoyMinorOf("1.20.3"), 28);
  EXPECT_EQ(EnvoyMinorOf("unknown"), 0);
  EXPECT_EQ(EnvoyMinorOf(""), 0);
}

// A name that began another could not be told from it before a '-'.
TEST(Profile, NoNameIsTheBeginningOfAnother) {
  for (const ProfileRow& a : ProfileRows()) {
    for (const ProfileRow& b : ProfileRows()) {
      const bool same = b.name == a.name || b.name.starts_with(std::string(a.name) + "-");
      EXPECT_FALSE(&a != &b && same) << b.name;
    }
  }
}

TEST(Profile, EveryRowIsASwitchThatCanBeGivenAndTaken) {
  for (size_t i = 0; i < ProfileRows().size(); ++i) {
    const ProfileRow& row = ProfileRows()[i];
    EXPECT_EQ(static_cast<size_t>(row.change), i) << row.name;
    EXPECT_FALSE(row.what.empty());
    for (const Release& release : Releases()) {
      const bool so = ProfileOf(release).Has(row.change);
      const std::string name = std::string(release.name) + (so ? "-" : "+") + std::string(row.name);
      const auto profile = ParseProfile(name);
      ASSERT_TRUE(profile.ok()) << name;
      EXPECT_NE(profile->Has(row.change), so) << name;
      EXPECT_EQ(profile->Name(), name);
    }
  }
}

}  // namespace
}  // namespace wavetank::pilot
