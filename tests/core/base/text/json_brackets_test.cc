#include "core/base/text/json_brackets.h"

#include <gtest/gtest.h>

#include <string_view>

namespace wavetank {
namespace {

TEST(ListMember, IsTheOneOfTheObjectItselfAndNoOtherOfThatName) {
  constexpr std::string_view kText =
      R"({"metadata": {"items": [1]}, "note": "items", "x": "\"items\": [", "items" : [2]})";
  EXPECT_EQ(ListMember(kText, 0, "items"), kText.find("[2]"));
  EXPECT_EQ(ListMember(R"({"items": {"items": []}})", 0, "items"), std::string_view::npos);
  EXPECT_EQ(ListMember(R"({"items": 1} {"items": [2]})", 0, "items"), std::string_view::npos);
}

TEST(ListMember, OfATextThatEndsInsideIsFoundAsFarAsItGoes) {
  for (const std::string_view text : {R"({"items)", R"({"items")", R"({"items":)", R"({"items\)", R"({)"}) {
    EXPECT_EQ(ListMember(text, 0, "items"), std::string_view::npos) << text;
  }
  EXPECT_EQ(ListMember(R"({"items":[)", 0, "items"), 9u);
}

}  // namespace
}  // namespace wavetank
