#include "core/kube/safe_text.h"

#include <gtest/gtest.h>

namespace wavetank::kube {
namespace {

TEST(SafeText, HasNoVowelsAndFollowsFromItsValue) {
  EXPECT_EQ(SafeText(0, 5), "bbbbb");
  EXPECT_EQ(SafeText(1 + 27 * 26, 3), "c9b") << "the least digit first";
  EXPECT_EQ(SafeText(0x0123456789abcdef, 10).find_first_of("aeiou013"), std::string::npos);
}

TEST(SafeText, DrawsALetterAtATime) {
  RandomStream one(7, "names"), other(7, "names");
  const std::string eight = SafeText(one, 8), five = SafeText(other, 5), three = SafeText(other, 3);
  EXPECT_EQ(eight, five + three);
  EXPECT_EQ(one.draws(), 8u);
}

}  // namespace
}  // namespace wavetank::kube
