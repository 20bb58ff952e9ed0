#include "core/kube/quantity.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace wavetank::kube {
namespace {

using nlohmann::json;

TEST(Quantity, TheSameAmountIsTheSameHoweverItIsWritten) {
  const std::pair<json, json> same[] = {{"9m", "0.009"},     {"1500m", 1.5},        {"1Ki", 1024},  {"0.5Gi", "512Mi"},
                                        {"2e3", "2k"},       {"2E-3", "2m"},        {"1E", "1e18"}, {"-1", "-1000m"},
                                        {"1n", "0.000001m"}, {"+1.50", "1500000u"}, {".5", "500m"}};
  for (const auto& [a, b] : same) {
    ASSERT_TRUE(QuantityNanos(a).has_value()) << a;
    EXPECT_TRUE(QuantityNanos(a) == QuantityNanos(b)) << a << " and " << b;
  }
  for (int n = 1; n < 3000; ++n) {
    const std::string decimal = std::to_string(n / 1000) + "." + std::to_string(1000 + n % 1000).substr(1);
    EXPECT_TRUE(QuantityNanos(std::to_string(n) + "m") == QuantityNanos(decimal)) << decimal;
  }
}

TEST(Quantity, WhatIsFinerThanANanoIsRoundedUpAndWhatIsTooMuchIsCapped) {
  EXPECT_TRUE(QuantityNanos("0.1n") == absl::int128(1));
  EXPECT_TRUE(QuantityNanos("1.0000000001") == absl::int128(1'000'000'001));
  EXPECT_TRUE(QuantityNanos("-0.1n") == absl::int128(-1));
  const auto most = QuantityNanos("9223372036854775807");
  for (const char* more : {"9223372036854775808", "16Ei", "1e900", "99999999999999999999999999999999999999999999Ei"}) {
    EXPECT_TRUE(QuantityNanos(more) == most) << more;
  }
  EXPECT_TRUE(QuantityNanos("9223372036854775806") < most);
  EXPECT_TRUE(QuantityNanos("1e-900") == absl::int128(1));
}

TEST(Quantity, OtherTextIsNone) {
  for (const char* none : {"", "m", "1.2.3", "1 Gi", "1gi", "1ki", "e3", "1e", "-", "."}) {
    EXPECT_FALSE(QuantityNanos(none).has_value()) << none;
  }
  EXPECT_FALSE(QuantityNanos(json(true)).has_value());
  EXPECT_FALSE(QuantityNanos(json()).has_value());
}

}  // namespace
}  // namespace wavetank::kube
