#include "wavetank/value.h"

#include <gtest/gtest.h>

#include "wavetank/mesh.h"

namespace wavetank {
namespace {

TEST(Value, ReadsWhatItPrints) {
  const Value value = Value::Map{{"a", Value::List{1, -2.5, true, Value(), "\"quoted\\\" \n\x01 ü"}},
                                 {"b", Value::Map{{"", int64_t{9'000'000'000'000'000'000}}}}};
  Value again;
  ASSERT_TRUE(Value::Parse(value.Print(), &again)) << value.Print();
  EXPECT_EQ(again, value);
  EXPECT_EQ(again["a"].Items()[1].Number(), -2.5);
  EXPECT_EQ(again["b"][""].Integer(), 9'000'000'000'000'000'000);
}

TEST(Value, WhatIsNoJsonIsRefused) {
  std::string deep(10'000, '[');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1,]"), std::string("{\"a\" 1}"), std::string("\"\\u12\""),
        std::string("\"\\ud800\\u0041\""), std::string("nul"), std::string("1 2"), std::string("\"open"), deep}) {
    Value out = 1;
    EXPECT_FALSE(Value::Parse(text, &out)) << text;
    EXPECT_TRUE(out.IsNull());
  }
}

TEST(Value, SurrogatesAreOneCharacter) {
  Value out;
  ASSERT_TRUE(Value::Parse("\"\\ud83c\\udf0a\"", &out));
  EXPECT_EQ(out.Text(), "\xf0\x9f\x8c\x8a");
}

TEST(Value, WhatIsNotThereIsNull) {
  EXPECT_TRUE(Value("text")["a"]["b"].IsNull());
  EXPECT_EQ(Value(true).Integer(), 0);
  EXPECT_TRUE(Value(3).Items().empty());
}

TEST(Mesh, MeshesAreValues) {
  Mesh a;
  a.clusters = {{.name = "c1"}};
  Mesh b = a;
  EXPECT_EQ(a, b);
  b.clusters[0].network = "other";
  EXPECT_NE(a, b);
  EXPECT_EQ(a.Describe(), "1 cluster on 1 network, 0 apps, 0 pods, 0 further objects");
}

}  // namespace
}  // namespace wavetank
