#include "core/base/buggify/buggify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace wavetank {
namespace {

class BuggifyTest : public testing::Test {
 protected:
  // Whether `point` fires, each of many times.
  static std::vector<bool> Pass(BuggifyPoint point, int times = 2000) {
    std::vector<bool> out;
    for (int i = 0; i < times; ++i) out.push_back(BuggifyFires(point));
    return out;
  }
  static int64_t Count(const std::vector<bool>& fired) { return std::count(fired.begin(), fired.end(), true); }

  Time now_{};
  assertion::RunContext run_{now_, 1};
  assertion::ScopedRun scope_{run_};
};

TEST_F(BuggifyTest, NothingFiresUnlessItIsSwitchedOn) {
  EXPECT_EQ(Count(Pass(BuggifyPoint::kPushOrder)), 0);
  Buggify buggify(run_, 1);
  EXPECT_EQ(Count(Pass(BuggifyPoint::kPushOrder)), 0);
  buggify.Switch({BuggifyPoint::kPushOrder});
  EXPECT_GT(Count(Pass(BuggifyPoint::kPushOrder)), 0);
  EXPECT_EQ(Count(Pass(BuggifyPoint::kDnsOrder)), 0);
  buggify.Switch({});
  EXPECT_EQ(Count(Pass(BuggifyPoint::kPushOrder)), 0);
}

TEST_F(BuggifyTest, FiresAsOftenAsItsRowSays) {
  Buggify buggify(run_, 1);
  buggify.Switch({BuggifyPoint::kWatchBroken, BuggifyPoint::kPushOrder});
  EXPECT_NEAR(static_cast<double>(Count(Pass(BuggifyPoint::kPushOrder, 10'000))), 5000, 300);
  EXPECT_NEAR(static_cast<double>(Count(Pass(BuggifyPoint::kWatchBroken, 10'000))), 100, 50);
  EXPECT_EQ(buggify.Fired(), "watch-broken " + std::to_string(buggify.fired(BuggifyPoint::kWatchBroken)) +
                                 ", push-order " + std::to_string(buggify.fired(BuggifyPoint::kPushOrder)));
}

TEST_F(BuggifyTest, AnotherPointChangesNothingForIt) {
  std::vector<bool> alone, beside;
  {
    Buggify buggify(run_, 9);
    buggify.Switch({BuggifyPoint::kDnsOrder});
    alone = Pass(BuggifyPoint::kDnsOrder);
  }
  {
    Buggify buggify(run_, 9);
    buggify.Switch({BuggifyPoint::kDnsOrder, BuggifyPoint::kPushOrder});
    Pass(BuggifyPoint::kPushOrder, 77);
    beside = Pass(BuggifyPoint::kDnsOrder);
  }
  EXPECT_EQ(alone, beside);
  Buggify other(run_, 10);
  other.Switch({BuggifyPoint::kDnsOrder});
  EXPECT_NE(Pass(BuggifyPoint::kDnsOrder), alone);
}

TEST_F(BuggifyTest, ADelayIsNeverLongerThanItsRowSays) {
  Buggify buggify(run_, 3);
  buggify.Switch({BuggifyPoint::kPodLate});
  Duration longest{};
  for (int i = 0; i < 2000; ++i) longest = std::max(longest, BuggifyDelay(BuggifyPoint::kPodLate));
  EXPECT_GT(longest, 9s);
  EXPECT_LE(longest, 10s);
}

TEST_F(BuggifyTest, ARunKnowsNothingOfAnothersPoints) {
  Buggify buggify(run_, 1);
  buggify.Switch({BuggifyPoint::kPushOrder});
  assertion::RunContext other{now_, 2};
  const assertion::ScopedRun scope(other);
  EXPECT_EQ(Count(Pass(BuggifyPoint::kPushOrder)), 0);
}

TEST(BuggifyRows, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const BuggifyRow& row : BuggifyRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(FindBuggifyPoint(row.name), row.point);
  }
  EXPECT_EQ(FindBuggifyPoint("nothing"), std::nullopt);
}

}  // namespace
}  // namespace wavetank
