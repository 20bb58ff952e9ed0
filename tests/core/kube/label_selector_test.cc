#include "core/kube/label_selector.h"

#include <gtest/gtest.h>

namespace wavetank::kube {
namespace {

TEST(LabelSelector, ReadsTheWholeGrammar) {
  const auto matches = [](const char* text, Labels labels) {
    const absl::StatusOr<LabelSelector> selector = LabelSelector::Parse(text);
    EXPECT_TRUE(selector.ok()) << selector.status();
    return selector->Matches(labels);
  };
  EXPECT_TRUE(matches("a=1,b in (2, 3),!c,d", {{"a", "1"}, {"b", "3"}, {"d", ""}}));
  EXPECT_FALSE(matches("a!=1", {{"a", "1"}}));
  EXPECT_TRUE(matches("a!=1", {}));
  EXPECT_TRUE(matches("a notin (1,2)", {{"a", "3"}}));
  EXPECT_TRUE(matches("", {{"x", "y"}}));
  EXPECT_TRUE(matches("a>4,b<-1", {{"a", "10"}, {"b", "-2"}}));
  EXPECT_FALSE(matches("a>4", {{"a", "4"}}));
  EXPECT_FALSE(matches("a<4", {{"a", "three"}})) << "what is no number is neither more nor less";
  EXPECT_FALSE(matches("a<4", {}));
  EXPECT_FALSE(LabelSelector::Parse("a>many").ok());
  EXPECT_FALSE(LabelSelector::Parse("a in 1").ok());
  EXPECT_FALSE(LabelSelector::Parse("=x").ok());
}

TEST(LabelSelector, ReadsAnObjectsSelectorAsItReadsText) {
  const auto written = LabelSelector::FromJson(nlohmann::json::parse(
      R"({"matchLabels":{"a":"1"},"matchExpressions":[{"key":"b","operator":"NotIn","values":["x"]}]})"));
  const auto text = LabelSelector::Parse("a=1,b notin (x)");
  ASSERT_TRUE(written.ok() && text.ok());
  for (const Labels& labels :
       {Labels{{"a", "1"}}, Labels{{"a", "1"}, {"b", "x"}}, Labels{{"a", "1"}, {"b", "y"}}, Labels{}}) {
    EXPECT_EQ(written->Matches(labels), text->Matches(labels));
  }
  EXPECT_FALSE(
      LabelSelector::FromJson(nlohmann::json::parse(R"({"matchExpressions":[{"key":"b","operator":"Near"}]})")).ok());
}

TEST(LabelSelector, OnlyExpressionsOfNodesCompareNumbers) {
  const nlohmann::json more = nlohmann::json::parse(R"([{"key":"cores","operator":"Gt","values":["8"]}])");
  const auto nodes = LabelSelector::FromNodeExpressions(more);
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_TRUE(nodes->Matches({{"cores", "16"}}));
  EXPECT_FALSE(nodes->Matches({{"cores", "8"}}));
  EXPECT_FALSE(nodes->Matches({{"cores", "many"}}));
  EXPECT_FALSE(LabelSelector::FromJson({{"matchExpressions", more}}).ok());
  EXPECT_FALSE(LabelSelector::FromNodeExpressions(
                   nlohmann::json::parse(R"([{"key":"cores","operator":"Lt","values":["8","9"]}])"))
                   .ok());
}

}  // namespace
}  // namespace wavetank::kube
