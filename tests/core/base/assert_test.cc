#include "core/base/assert.h"

#include <gtest/gtest.h>

#include "core/base/text/program_call.h"

namespace wavetank {
namespace {

enum class Colour { kRed, kGreen };

TEST(AssertDeathTest, SaysFileLineExpressionAndValues) {
  const int slots = 7;
  const std::string name = "sleep";
  EXPECT_DEATH(
      WAVETANK_ASSERT(slots < std::min(5, 6), slots, name, Colour::kGreen, Duration(-3), slots == 7),
      "wavetank: an invariant does not hold: tests/core/base/assert_test.cc:[0-9]+: slots < std::min\\(5, 6\\)\n"
      "  slots = 7\n  name = 'sleep'\n  Colour::kGreen = 1\n  Duration\\(-3\\) = -3 ns\n  slots == 7 = true\n"
      "  This is a defect of Wavetank");
}

TEST(AssertDeathTest, SaysWhenInTheRunAndHowToGetThere) {
  const Time now = Time{} + 1500us;
  assertion::RunContext run(now, 42);
  run.set_reproduce("wavetank run scenarios/x --seed 42");
  const assertion::ScopedRun scope(run);
  EXPECT_DEATH(WAVETANK_ASSERT(now == Time{}),
               "  at 0.001500000 s of virtual time, seed 42\n"
               "  the same run again: wavetank run scenarios/x --seed 42\n");
}

TEST(AssertDeathTest, SaysHowTheProgramWasCalled) {
  assertion::ProgramCall() = "wavetank check 'my mesh'";
  EXPECT_DEATH(WAVETANK_ASSERT(1 > 2), "  called as: wavetank check 'my mesh'\n  This is a defect");
  assertion::ProgramCall().clear();
}

TEST(AssertDeathTest, AsksForLastWordsOnceAndOnlyOfThoseThatStand) {
  const Time now{};
  assertion::RunContext run(now, 1);
  const assertion::ScopedRun scope(run);
  const assertion::RunContext::Registration stays(run, [] {
    WAVETANK_ASSERT(1 > 2);  // whoever speaks may fail himself; the first failure's lines stand already
    return std::string();
  });
  {
    assertion::RunContext::Registration goes(run, [] { return std::string("is gone"); });
    const assertion::RunContext::Registration moved = std::move(goes);
  }
  EXPECT_EQ(run.last_words().size(), 1u);
  EXPECT_DEATH(WAVETANK_ASSERT(3 > 4), "3 > 4(.|\n)*1 > 2");
}

TEST(AssertTest, OutsideOfARunThereIsNone) {
  EXPECT_EQ(assertion::current_run, nullptr);
  const Time now{};
  assertion::RunContext outer(now, 1), inner(now, 2);
  {
    const assertion::ScopedRun a(outer);
    {
      const assertion::ScopedRun b(inner);
      EXPECT_EQ(assertion::current_run, &inner);
    }
    EXPECT_EQ(assertion::current_run, &outer);
  }
  EXPECT_EQ(assertion::current_run, nullptr);
}

}  // namespace
}  // namespace wavetank
