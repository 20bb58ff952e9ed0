#include "core/base/text/go_duration.h"

#include <gtest/gtest.h>

namespace wavetank {
namespace {

TEST(GoDuration, PrintsAsGoDoes) {
  EXPECT_EQ(GoDurationText(0), "0s");
  EXPECT_EQ(GoDurationText(100'250'000), "100.25ms");
  EXPECT_EQ(GoDurationText(3'660'000'000'000), "1h1m0s");
  EXPECT_EQ(GoDurationText(-1'500'000'000), "-1.5s");
}

TEST(GoDuration, ComplainsAsTimeParseDurationDoes) {
  EXPECT_EQ(GoDurationComplaint("1d"), "time: unknown unit \"d\" in duration \"1d\"");
  EXPECT_EQ(GoDurationComplaint("1h30"), "time: missing unit in duration \"1h30\"");
  EXPECT_EQ(GoDurationComplaint("1h2x3s"), "time: unknown unit \"x\" in duration \"1h2x3s\"");
  EXPECT_EQ(GoDurationComplaint(""), "time: invalid duration \"\"");
  EXPECT_EQ(GoDurationComplaint("soon"), "time: invalid duration \"soon\"");
  EXPECT_EQ(GoDurationComplaint("-.s"), "time: invalid duration \"-.s\"");
  EXPECT_EQ(GoDurationComplaint("1\"é"), "time: unknown unit \"\\\"\\xc3\\xa9\" in duration \"1\\\"\\xc3\\xa9\"");
}

}  // namespace
}  // namespace wavetank
