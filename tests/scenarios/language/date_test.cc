#include "scenarios/language/date.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"

namespace wavetank::scenario {
namespace {

using ::testing::HasSubstr;

TEST(ParseDate, ReadsDaysAndInstants) {
  EXPECT_EQ(*ParseDate("--date", "2023-09-02"), Time{} + 24h);
  EXPECT_EQ(*ParseDate("--date", "2023-09-01T01:00:00Z"), Time{} + 1h);
}

TEST(ParseDate, RefusesWhatNoWorldCanLiveIn) {
  EXPECT_THAT(std::string(Message(ParseDate("--date", "2021-01-01").status())), HasSubstr("from 2023-09-01 to"));
  for (const char* far : {"0001-01-01", "1677-01-01", "2263-01-01", "9999-12-31", "9999-12-31T23:59:59Z"})
    EXPECT_THAT(std::string(Message(ParseDate("--date", far).status())), HasSubstr("from 2023-09-01 to")) << far;
  EXPECT_THAT(std::string(Message(ParseDate("--date", "soon").status())), HasSubstr("is no date"));
}

}  // namespace
}  // namespace wavetank::scenario
