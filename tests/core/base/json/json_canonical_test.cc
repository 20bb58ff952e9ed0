#include "core/base/json/json_canonical.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/json_text.h"

#include "tests/hostile_json.h"

namespace wavetank {
namespace {

using nlohmann::json;

// Types of numbers included, which == does not compare.
bool Same(const json& a, const json& b) {
  if (a.type() != b.type() || a.size() != b.size()) return false;
  if (a.is_object()) {
    for (const auto& [key, value] : a.items()) {
      if (!b.contains(key) || !Same(value, b.at(key))) return false;
    }
    return true;
  }
  if (a.is_array()) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (!Same(a[i], b[i])) return false;
    }
    return true;
  }
  return a == b || (a.is_number_float() && a.dump() == b.dump());
}

TEST(JsonText, ALineIsWhatTheLibraryPrints) {
  RandomStream random(4, "json");
  const json value = {{"a", {1u, -2, 2.5, "text", nullptr, true, INT64_MIN, UINT64_MAX, 1e300}},
                      {"quo\"te\\", {{"c", json::array()}, {"d", json::object()}, {"", "line\nline\x7f\x01"}}},
                      {"gr\xc3\xbc\xc3\x9f"
                       "e",
                       "cut \xc3"}};
  for (int i = 0; i < 2000; ++i) {
    const json each = i == 0 ? value : Mutated(value, random);
    ASSERT_EQ(JsonText(each), each.dump(-1, ' ', false, json::error_handler_t::replace));
  }
}

TEST(JsonText, AValueIsWhatItsTextSaysOrIsKnownNotToBe) {
  RandomStream random(3, "json");
  json value = {{"a", {1u, -2, 2.5, "text", nullptr, true}}, {"b", {{"c", json::array()}}}};
  int survive = 0, not_so = 0;
  for (int i = 0; i < 5000; ++i) {
    const json each = Mutated(value, random);
    const bool same = Same(ParseJson(JsonText(each)), each);
    EXPECT_EQ(IsWhatItsTextSays(each), same) << JsonText(each);
    (same ? survive : not_so) += 1;
  }
  EXPECT_GT(survive, 100);
  EXPECT_GT(not_so, 100);
}

TEST(JsonText, WhatIsNoNumberOrNoTextIsKnown) {
  EXPECT_FALSE(IsWhatItsTextSays(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(IsWhatItsTextSays(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(IsWhatItsTextSays("\xed\xa0\x80")) << "a surrogate";
  EXPECT_FALSE(IsWhatItsTextSays("\xc0\xaf")) << "longer than it must be";
  EXPECT_FALSE(IsWhatItsTextSays(json{{"\xff", 1u}}));
  EXPECT_FALSE(IsWhatItsTextSays(5)) << "signed here, unsigned when it is read";
  EXPECT_TRUE(IsWhatItsTextSays(uint64_t{1} << 63));
  EXPECT_TRUE(IsWhatItsTextSays(-0.0));
  EXPECT_TRUE(IsWhatItsTextSays("\xf0\x9f\x8c\x8a"));
}

}  // namespace
}  // namespace wavetank
