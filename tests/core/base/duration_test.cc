#include "core/base/duration.h"

#include <gtest/gtest.h>

namespace wavetank {
namespace {

TEST(ParseDuration, ReadsGosFormAndANumberWithItsUnit) {
  EXPECT_EQ(ParseDuration("1.5s"), 1500ms);
  EXPECT_EQ(ParseDuration("250us"), 250us);
  EXPECT_EQ(ParseDuration("2m"), 2min);
  EXPECT_EQ(ParseDuration("1m30s"), 90s);
  EXPECT_EQ(ParseDuration("38h1m"), 38h + 1min);
  EXPECT_EQ(ParseDuration("10 min"), 10min);
  EXPECT_EQ(ParseDuration(".5s"), 500ms);
  EXPECT_EQ(ParseDuration("1h0.25ms"), 1h + 250us);
}

TEST(ParseDuration, RefusesWhatIsNone) {
  for (const char* text : {"", "10", "s", ".s", "-1s", "1h-2s", "1s2", "1s 2ms", "1 s 2ms", "5d", "0x1s", "1e3s",
                           "9223372036854775808ns", "2562048h", "99999999999999999999s"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseDuration("9223372036854775807ns"), Duration::max());
}

TEST(ParseDuration, OneWithASignIsReadWhereOneMayStand) {
  EXPECT_EQ(ParseSignedDuration("-90s"), -90s);
  EXPECT_EQ(ParseSignedDuration("+1m"), 1min);
  EXPECT_EQ(ParseSignedDuration("--1m"), std::nullopt);
}

TEST(ParseGoDuration, TakesWhatGoTakes) {
  EXPECT_EQ(ParseGoDuration("0"), 0ns);
  EXPECT_EQ(ParseGoDuration("1h30m"), 90min);
  EXPECT_EQ(ParseGoDuration("1.5s"), 1500ms);
  EXPECT_EQ(ParseGoDuration("300ms"), 300ms);
  EXPECT_EQ(ParseGoDuration("-2us"), -2us);
  EXPECT_EQ(ParseGoDuration("-1.5h"), -90min);
  EXPECT_EQ(ParseGoDuration("3\u00b5s"), 3us);
  EXPECT_EQ(ParseGoDuration("3\u03bcs"), 3us);
  EXPECT_EQ(ParseGoDuration(".5s"), 500ms);
}

TEST(ParseGoDuration, IsAsStrictAsGo) {
  for (const char* text :
       {"", "1", "s", "1d", "1s2", "1.s.", "soon", "--1s", "99999999999h", "1 s", "10min", "\u00b5s"}) {
    EXPECT_EQ(ParseGoDuration(text), std::nullopt) << text;
  }
}

TEST(FormatDuration, HasThreeDigitsBelowAMinuteAndGosFormFromThere) {
  EXPECT_EQ(FormatDuration(0ns), "0 ms");
  EXPECT_EQ(FormatDuration(999ns), "999 ns");
  EXPECT_EQ(FormatDuration(82'100ns), "82.1 us");
  EXPECT_EQ(FormatDuration(1450ms), "1.45 s");
  EXPECT_EQ(FormatDuration(-1500us), "-1.50 ms");
  EXPECT_EQ(FormatDuration(59'940ms), "59.9 s");
  EXPECT_EQ(FormatDuration(59'950ms), "1m");
  EXPECT_EQ(FormatDuration(90s), "1m30s");
  EXPECT_EQ(FormatDuration(38h + 1min), "38h1m");
  EXPECT_EQ(FormatDuration(2281min), "38h1m");
}

}  // namespace
}  // namespace wavetank
