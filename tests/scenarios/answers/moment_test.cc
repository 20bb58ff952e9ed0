// Moments as people name them.
#include "scenarios/answers/moment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::scenario {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<std::string> kSteps = {"at rest", "scaled to 3", "scaled to 0", "1+1"};

std::pair<std::string, Duration> Read(std::string_view text) {
  const absl::StatusOr<Moment> moment = ParseMoment("--at", text, kSteps);
  EXPECT_TRUE(moment.ok()) << moment.status();
  return moment.ok() ? std::pair(moment->step, moment->offset) : std::pair(std::string("?"), Duration::zero());
}

TEST(MomentTest, ATimeIsSinceTheWorldsBeginning) { EXPECT_EQ(Read("30s"), std::pair(std::string(), Duration(30s))); }

TEST(MomentTest, AStepHasItsNameAndAnOffset) {
  EXPECT_EQ(Read("'scaled to 3'+2s"), std::pair(std::string("scaled to 3"), Duration(2s)));
  EXPECT_EQ(Read("scaled to 3 + 250ms"), std::pair(std::string("scaled to 3"), Duration(250ms)));
  EXPECT_EQ(Read("at rest"), std::pair(std::string("at rest"), Duration::zero()));
  EXPECT_EQ(Read("rest"), std::pair(std::string("at rest"), Duration::zero())) << "part of a name that only one holds";
  EXPECT_EQ(Read("1+1"), std::pair(std::string("1+1"), Duration::zero())) << "a name may hold a plus";
  EXPECT_EQ(Read("1+1+1s"), std::pair(std::string("1+1"), Duration(1s)));
}

TEST(MomentTest, WhatIsNeitherIsRefusedWithWhatThereIs) {
  const auto words = [](std::string_view text, const std::vector<std::string>& steps) {
    return std::string(ParseMoment("--at", text, steps).status().message());
  };
  EXPECT_THAT(words("scaled", kSteps), AllOf(HasSubstr("more than one step"), HasSubstr("scaled to 3, scaled to 0")));
  EXPECT_THAT(words("soon", kSteps), AllOf(HasSubstr("--at 'soon'"), HasSubstr("no step"), HasSubstr("at rest")));
  EXPECT_THAT(words("soon", {}), HasSubstr("there are no steps here"));
  EXPECT_THAT(words("", kSteps), HasSubstr("no duration"));
}

}  // namespace
}  // namespace wavetank::scenario
