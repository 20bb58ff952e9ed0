#include "core/envoyapi/go_json.h"

#include "core/base/json_text.h"
#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

TEST(GoJson, StructHasDoublesOnly) {
  EXPECT_EQ(
      GoStructJson(ParseJson(R"({"b":[1,2.50,-0.5,null,true],"a":{"z":100000000000000000000,"y":1e21,"x":1e-7}})")),
      R"({"a":{"x":1e-7,"y":1e+21,"z":100000000000000000000},"b":[1,2.5,-0.5,null,true]})");
}

TEST(GoJson, TextIsEscapedForHtml) {
  EXPECT_EQ(GoStructJson("<a&b>\"\\\n\b\xE2\x80\xA8é"), "\"\\u003ca\\u0026b\\u003e\\\"\\\\\\n\\u0008\\u2028é\"");
}

}  // namespace
}  // namespace wavetank::pilot
