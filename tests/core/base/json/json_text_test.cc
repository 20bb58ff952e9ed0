#include "core/base/json_text.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/bounds.h"

namespace wavetank {
namespace {

std::string Nested(int levels) {
  std::string out;
  for (int i = 0; i < levels; ++i) out += "{\"a\":";
  out += "1";
  return out.append(static_cast<size_t>(levels), '}');
}

TEST(ParseJson, WhatNestsDeeperThanItsValuesCanBeCopiedIsDiscarded) {
  EXPECT_TRUE(ParseJson(Nested(bounds::kJsonDepth)).is_object());
  for (const int levels : {bounds::kJsonDepth + 1, 1'000'000}) {
    EXPECT_TRUE(ParseJson(Nested(levels)).is_discarded()) << levels;
    EXPECT_TRUE(ParseOrderedJson(Nested(levels)).is_discarded()) << levels;
  }
}

TEST(ParseJson, BracketsWithinTextNestNothing) {
  const std::string text = "[\"" + std::string(10'000, '[') + "\\\"" + std::string(10'000, '{') + "\"]";
  EXPECT_TRUE(ParseJson(text).is_array());
}

TEST(ParseOrderedJson, KeepsTheOrderOfItsMembers) {
  EXPECT_EQ(JsonText(ParseOrderedJson(R"({"b":1,"a":2})")), R"({"b":1,"a":2})");
}

}  // namespace
}  // namespace wavetank
