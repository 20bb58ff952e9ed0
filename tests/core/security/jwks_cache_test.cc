#include "core/security/jwks_cache.h"

#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::security {
namespace {

constexpr char kA[] = R"({"keys":[{"kid":"a"}]})", kB[] = R"({"keys":[{"kid":"b"}]})";
constexpr char kUri[] = "https://issuer.example/keys";

class JwksCacheTest : public ::testing::Test {
 protected:
  std::optional<std::string> Ask(const std::string& uri = kUri) { return cache_.KeySet("https://issuer.example", uri); }
  void Pass(Duration d) { kernel_.RunUntil(kernel_.Now() + d); }
  void Serve(const std::optional<std::string>& keys, const std::string& url = kUri) {
    web_.erase(url);
    if (keys) web_[url] = *keys;
  }

  std::map<std::string, std::string> web_;
  int fetched_ = 0, pushed_ = 0;
  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("istiod", 0, nullptr);
  JwksCache cache_{host_,
                   [this](const std::string& url) {
                     ++fetched_;
                     const auto it = web_.find(url);
                     return it == web_.end() ? std::nullopt : std::optional(it->second);
                   },
                   [this] { ++pushed_; }};
};

TEST_F(JwksCacheTest, KeySetIsFetchedOnceAndRefreshedEveryTwentyMinutes) {
  Serve(kA);
  EXPECT_EQ(Ask(), kA);
  EXPECT_EQ(Ask(), kA);
  EXPECT_EQ(fetched_, 1);
  Pass(19min);
  EXPECT_EQ(fetched_, 1);
  Pass(1min);
  EXPECT_EQ(fetched_, 2);
  EXPECT_EQ(pushed_, 0) << "the same keys";
}

TEST_F(JwksCacheTest, OtherKeysCauseAPushWithTheNextRefresh) {
  Serve(kA);
  Ask();
  Serve(kB);
  EXPECT_EQ(Ask(), kA);
  Pass(20min);
  EXPECT_EQ(pushed_, 1);
  EXPECT_EQ(Ask(), kB);
}

TEST_F(JwksCacheTest, MissingKeySetIsTriedSevenTimesMoreASecondApart) {
  EXPECT_EQ(Ask(), std::nullopt);
  EXPECT_EQ(fetched_, 1);
  Pass(6500ms);
  EXPECT_EQ(fetched_, 8);
  Serve(kA);
  Pass(1s);
  EXPECT_EQ(pushed_, 1);
  EXPECT_EQ(Ask(), kA);
}

TEST_F(JwksCacheTest, MissingKeySetIsForgottenAndAskedForAnewByTheNextPush) {
  Ask();
  Pass(1min);
  EXPECT_EQ(fetched_, 9);
  Pass(1h);
  EXPECT_EQ(fetched_, 9) << "nothing is left to refresh";
  Serve(kA);
  EXPECT_EQ(Ask(), kA);
}

TEST_F(JwksCacheTest, PushThatMissesSixKeySetsDoesNotWait) {
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Ask("https://dead.example/" + std::to_string(i)), std::nullopt);
  ASSERT_TRUE(cache_.MustWait());
  bool told = false;
  cache_.Wait([&] { told = true; });
  EXPECT_TRUE(told) << "one is at the refresher, five are in the channel";
  EXPECT_FALSE(cache_.MustWait());
}

TEST_F(JwksCacheTest, PushThatMissesMoreWaitsUntilTheRefresherHasTriedTheFirst) {
  for (int i = 0; i < 7; ++i) Ask("https://dead.example/" + std::to_string(i));
  Time told{};
  cache_.Wait([&] { told = kernel_.Now(); });
  EXPECT_EQ(told, Time{});
  Pass(6900ms);
  EXPECT_EQ(told, Time{});
  Pass(200ms);
  EXPECT_EQ(told - Time{}, 7s);
}

TEST_F(JwksCacheTest, PushesThatTellOfTheSameAreOneAfterTheOtherAndTheSecondFindsThemKnown) {
  for (int i = 0; i < 8; ++i) Ask("https://dead.example/" + std::to_string(i));
  int told = 0;
  cache_.Wait([&] { ++told; });
  // The first is stuck with the seventh; the eighth was not yet fetched by it.
  for (int i = 0; i < 7; ++i) Ask("https://dead.example/" + std::to_string(i));
  EXPECT_FALSE(cache_.MustWait());
  Ask("https://dead.example/7");
  ASSERT_TRUE(cache_.MustWait());
  cache_.Wait([&] { ++told; });
  EXPECT_EQ(told, 0);
  Pass(1min);
  EXPECT_EQ(told, 2);
}

TEST_F(JwksCacheTest, KeySetThatAppearsWhilePushesWaitReachesThemAtTheNextAttempt) {
  for (int i = 0; i < 7; ++i) Ask("https://dead.example/" + std::to_string(i));
  Time told{};
  cache_.Wait([&] { told = kernel_.Now(); });
  Pass(2500ms);
  Serve(kA, "https://dead.example/0");
  Pass(1s);
  EXPECT_EQ(told - Time{}, 3s) << "the refresher is free for the next";
  EXPECT_EQ(pushed_, 1);
}

TEST_F(JwksCacheTest, RefreshThatFailsComesAgainAfterOneTwoFourMinutes) {
  Serve(kA);
  Ask();
  Serve(std::nullopt);
  Pass(20min);  // the first of eight attempts
  EXPECT_EQ(Ask(), kA) << "the old keys hold";
  Pass(7s);
  EXPECT_EQ(fetched_, 1 + 8);
  Pass(1min + 7s);
  EXPECT_EQ(fetched_, 1 + 16);
  Pass(2min - 1s);
  EXPECT_EQ(fetched_, 1 + 16);
  Pass(8s);
  EXPECT_EQ(fetched_, 1 + 24);
  Serve(kB);
  Pass(4min);
  EXPECT_EQ(Ask(), kB);
  EXPECT_EQ(pushed_, 1);
  const int until_now = fetched_;
  Pass(19min);
  EXPECT_EQ(fetched_, until_now) << "twenty minutes again";
}

TEST_F(JwksCacheTest, KeySetThatNobodyAsksForIsForgottenAfterAWeek) {
  Serve(kA);
  Ask();
  Pass(24h * 7 + 20min);
  const int until_now = fetched_;
  Pass(1h);
  EXPECT_EQ(fetched_, until_now);
}

TEST_F(JwksCacheTest, IssuerMayNameTheUriItself) {
  Serve(kA, "https://elsewhere.example/k");
  Serve(R"({"jwks_uri":"https://elsewhere.example/k"})", "https://issuer.example/.well-known/openid-configuration");
  EXPECT_EQ(Ask(""), kA);
  Serve(kB, "https://elsewhere.example/k");
  EXPECT_EQ(Ask(""), kA);
  Pass(20min);
  EXPECT_EQ(Ask(""), kB);
}

TEST(KeysDiffer, OrderAndWhatStandsBesideTheKeysDoNotCount) {
  EXPECT_EQ(KeysDiffer(R"({"keys":[{"kid":"a"},{"kid":"b"}]})", R"({"x":1,"keys":[{"kid":"b"},{"kid":"a"}]})"), false);
  EXPECT_EQ(KeysDiffer(kA, kB), true);
  EXPECT_EQ(KeysDiffer("no JSON", kA), true);
  EXPECT_EQ(KeysDiffer(kA, "no JSON"), std::nullopt);
  EXPECT_EQ(KeysDiffer(R"({"a":1})", R"({"a":1 })"), true) << "no lists of keys to compare";
}

}  // namespace
}  // namespace wavetank::security
