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

TEST(Mesh, TwoObjectsOfOneNameAreAMistakeThatSaysWhose) {
  Mesh mesh;
  mesh.clusters = {{.name = "c1"}, {.name = "c2"}};
  mesh.apps = {{.name = "web", .deployments = {{.cluster = "c1"}}},
               {.name = "web", .deployments = {{.cluster = "c2"}}}};
  EXPECT_TRUE(mesh.Check().ok()) << "each cluster has one: " << mesh.Check().error();
  mesh.apps[1].also_in = {"c1"};
  EXPECT_EQ(mesh.Check().error(),
            "mesh.apps[1]: Service sample/web in c1 is that of mesh.apps[0] already; take another name");
  mesh.apps.pop_back();
  mesh.apps[0].deployments.push_back({.cluster = "c1", .replicas = 3});
  EXPECT_EQ(mesh.Check().error(),
            "mesh.apps[0].deployments[1]: Deployment sample/web-v1 in c1 is that of mesh.apps[0].deployments[0] "
            "already; take another name");
  mesh.apps[0] = {.name = "sleep", .deployments = {{.cluster = "c2"}}};
  EXPECT_EQ(mesh.Check().error(),
            "mesh.apps[0]: Service sample/sleep in c2 is that of each cluster's client already; take another name");
}

TEST(Mesh, IsReadWithAnySeedAndWithThePortsName) {
  Value value;
  ASSERT_TRUE(Value::Parse(R"({"clusters": [{"name": "c1"}], "seed": 9223372036854775807,
                               "apps": [{"name": "web", "port_name": "grpc", "deployments": [{"cluster": "c1"}]}]})",
                           &value));
  const Result<Mesh> mesh = Mesh::FromValue(value);
  ASSERT_TRUE(mesh.ok()) << mesh.error();
  EXPECT_EQ(mesh->seed, 9'223'372'036'854'775'807u);
  EXPECT_EQ(mesh->apps[0].port_name, "grpc");
  EXPECT_NE(mesh->ToScenario().find(R"("name": "grpc")"), std::string::npos) << mesh->ToScenario();
  for (const char* seed : {"-1", "1.5", "\"1\"", "9223372036854775808"}) {
    ASSERT_TRUE(Value::Parse(std::string(R"({"clusters": [{"name": "c1"}], "seed": )") + seed + "}", &value));
    EXPECT_EQ(Mesh::FromValue(value).error(), "mesh.seed is of another type, or out of range") << seed;
  }
}

}  // namespace
}  // namespace wavetank
