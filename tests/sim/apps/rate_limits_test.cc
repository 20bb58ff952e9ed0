#include "sim/apps/rate_limits.h"

#include <string>
#include <vector>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::sim {
namespace {

using envoysim::LimitedDescriptor;
using envoysim::LimitVerdict;
using ::testing::HasSubstr;

RateLimits Limits(const std::string& descriptors) {
  return RateLimits::Read({{"config.yaml", "domain: d\ndescriptors:\n" + descriptors}}).value();
}
std::string Refusal(const std::string& text) {
  return std::string(Message(RateLimits::Read({{"config.yaml", text}}).status()));
}

class RateLimitsTest : public ::testing::Test {
 protected:
  // How many of ten requests are over, all in one second.
  int OverOfTen(const RateLimits& limits, const std::vector<LimitedDescriptor>& asked, int64_t now = 30) {
    int over = 0;
    for (int i = 0; i < 10; ++i) over += limits.Judge("d", asked, now, &counts).over;
    return over;
  }
  RateLimitCounts counts;
};

TEST_F(RateLimitsTest, ALimitHoldsForItsWindowOfTheCalendar) {
  const RateLimits limits = Limits("- {key: a, rate_limit: {unit: minute, requests_per_unit: 4}}\n");
  EXPECT_EQ(OverOfTen(limits, {{{"a", "x"}}}, 59), 6);
  EXPECT_EQ(OverOfTen(limits, {{{"a", "x"}}}, 60), 6) << "a second later, but in another minute";
  const LimitVerdict verdict = limits.Judge("d", {{{"a", "y"}}}, 75, &counts);
  ASSERT_EQ(verdict.statuses.size(), 1u);
  EXPECT_EQ(verdict.statuses[0].remaining, 3u);
  EXPECT_EQ(verdict.statuses[0].reset_seconds, 45u);
}

TEST_F(RateLimitsTest, AKeyWithoutAValueCountsEachValueByItself) {
  const RateLimits limits = Limits("- {key: a, rate_limit: {unit: hour, requests_per_unit: 10}}\n");
  EXPECT_EQ(OverOfTen(limits, {{{"a", "x"}}}), 0);
  EXPECT_EQ(OverOfTen(limits, {{{"a", "y"}}}), 0);
}

TEST_F(RateLimitsTest, AValueComesBeforeAPatternAndAPatternBeforeAnyValue) {
  const RateLimits limits = Limits(
      "- {key: a, rate_limit: {unit: hour, requests_per_unit: 1}}\n"
      "- {key: a, value: 'x*', rate_limit: {unit: hour, requests_per_unit: 2}}\n"
      "- {key: a, value: xyz, rate_limit: {unit: hour, requests_per_unit: 3}}\n");
  EXPECT_EQ(OverOfTen(limits, {{{"a", "other"}}}), 9);
  EXPECT_EQ(OverOfTen(limits, {{{"a", "xy"}}}), 8);
  EXPECT_EQ(OverOfTen(limits, {{{"a", "xyz"}}}), 7);
}

TEST_F(RateLimitsTest, StarsStandForAnyTextHoweverManyThereAre) {
  const RateLimits limits = Limits("- {key: a, value: 'b*c*d', rate_limit: {unit: hour, requests_per_unit: 0}}\n");
  EXPECT_EQ(OverOfTen(limits, {{{"a", "bcd"}}}), 10);
  EXPECT_EQ(OverOfTen(limits, {{{"a", "b-c-c-d-d"}}}), 10);
  EXPECT_EQ(OverOfTen(limits, {{{"a", "b-d-c"}}}), 0);
  EXPECT_EQ(OverOfTen(limits, {{{"a", "bd"}}}), 0);
  std::string stars;
  for (int i = 0; i < 40; ++i) stars += "*a";
  const RateLimits many =
      Limits("- {key: a, value: '" + stars + "', rate_limit: {unit: hour, requests_per_unit: 0}}\n");
  EXPECT_EQ(OverOfTen(many, {{{"a", std::string(4000, 'a') + "b"}}}), 0);
}

TEST_F(RateLimitsTest, ADescriptorIsMetInItsWholeDepthAlone) {
  const RateLimits limits =
      Limits("- {key: a, descriptors: [{key: b, value: x, rate_limit: {unit: hour, requests_per_unit: 2}}]}\n");
  EXPECT_EQ(OverOfTen(limits, {{{"a", "1"}, {"b", "x"}}}), 8);
  EXPECT_EQ(OverOfTen(limits, {{{"a", "1"}}}), 0);
  EXPECT_EQ(OverOfTen(limits, {{{"a", "1"}, {"b", "x"}, {"c", "1"}}}), 0);
}

TEST_F(RateLimitsTest, WhatAPatternSharesCountsTogether) {
  const RateLimits limits =
      Limits("- {key: a, value: 'x*', share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 15}}\n");
  EXPECT_EQ(OverOfTen(limits, {{{"a", "x1"}}}), 0);
  EXPECT_EQ(OverOfTen(limits, {{{"a", "x2"}}}), 5);
}

TEST_F(RateLimitsTest, ShadowsAreCountedAndUnlimitedOnesAreNot) {
  const RateLimits limits = Limits(
      "- {key: a, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}\n"
      "- {key: b, rate_limit: {unlimited: true}}\n");
  EXPECT_EQ(OverOfTen(limits, {{{"a", "x"}}, {{"b", "x"}}}), 0);
  EXPECT_EQ(limits.Judge("d", {{{"a", "x"}}}, 30, &counts).statuses[0].remaining, 0u);
  EXPECT_EQ(limits.Judge("d", {{{"b", "x"}}}, 30, &counts).statuses[0].limit, nullptr);
}

TEST_F(RateLimitsTest, ALimitReplacesTheOnesThatItNames) {
  const RateLimits limits = Limits(
      "- {key: all, rate_limit: {name: base, unit: hour, requests_per_unit: 1}}\n"
      "- {key: a, rate_limit: {replaces: [{name: base}], unit: hour, requests_per_unit: 8}}\n");
  EXPECT_EQ(OverOfTen(limits, {{{"all", ""}}, {{"a", "x"}}}), 2);
  EXPECT_EQ(OverOfTen(limits, {{{"all", ""}}}), 9);
}

TEST_F(RateLimitsTest, QuotasAreOverTogether) {
  const RateLimits limits = Limits(
      "- {key: a, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 2}}\n"
      "- {key: b, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 6}}\n");
  EXPECT_EQ(OverOfTen(limits, {{{"a", "x"}}, {{"b", "x"}}}), 4);
}

TEST_F(RateLimitsTest, AnotherDomainHasNoLimits) {
  const RateLimits limits = Limits("- {key: a, rate_limit: {unit: hour, requests_per_unit: 0}}\n");
  EXPECT_FALSE(limits.Judge("e", {{{"a", "x"}}}, 30, &counts).over);
  EXPECT_TRUE(limits.Judge("d", {{{"a", "x"}}}, 30, &counts).over);
}

TEST_F(RateLimitsTest, ConfigurationsAreRefusedInTheServicesWords) {
  EXPECT_EQ(Refusal("descriptors: []"), "config.yaml: config file cannot have empty domain");
  EXPECT_EQ(Refusal("domain: d\ndescriptors: [{value: x}]"), "config.yaml: descriptor has empty key");
  EXPECT_EQ(Refusal("domain: d\ndescriptors: [{key: a}, {key: a}]"),
            "config.yaml: duplicate descriptor composite key 'd.a'");
  EXPECT_EQ(Refusal("domain: d\ndescriptors: [{key: a, rate_limit: {unit: fortnight, requests_per_unit: 1}}]"),
            "config.yaml: invalid rate limit unit 'fortnight'");
  EXPECT_EQ(Refusal("domain: d\ndescriptors: [{key: a, ratelimit: {unit: day}}]"),
            "config.yaml: config error, unknown key 'ratelimit'");
  EXPECT_EQ(Refusal("domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: many}}]"),
            "config.yaml: error loading config file: requests_per_unit: cannot unmarshal \"many\" into a uint32");
  EXPECT_EQ(Refusal("domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: -1}}]"),
            "config.yaml: error loading config file: requests_per_unit: cannot unmarshal -1 into a uint32");
  EXPECT_EQ(Refusal("domain: d\ndescriptors: [{key: a, shadow_mode: \"on\"}]"),
            "config.yaml: error loading config file: shadow_mode: cannot unmarshal \"on\" into a bool");
  EXPECT_EQ(
      Refusal("domain: d\ndescriptors: {key: a}"),
      "config.yaml: error loading config file: descriptors: cannot unmarshal {\"key\":\"a\"} into a list of maps");
  EXPECT_THAT(Refusal("domain: [d"), HasSubstr("config.yaml: error loading config file: "));
}

}  // namespace
}  // namespace wavetank::sim
