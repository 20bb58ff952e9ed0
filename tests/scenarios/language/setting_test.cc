// Values put into a document by their paths, before anything is read.
#include "scenarios/language/setting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "scenarios/language/yaml_reader.h"

namespace wavetank::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kStory[] =
    "timing: {a.b: 1ms}\n"
    "flows:\n"
    "  - {name: from.one, rate: 1/s}\n"
    "  - {name: from-two, rate: 2/s}\n"
    "steps:\n"
    "  - name: scaled to 3\n"
    "    do: {scale: {replicas: 3}}\n"
    "    then: [{flow: from-two, requests: 9}]\n";

// The document as it is then, or why it is not.
std::string After(const std::string& path, const std::string& value, const std::string& text = kStory) {
  auto document = Document::Parse("story.yaml", text);
  EXPECT_TRUE(document.ok()) << document.status();
  if (absl::Status status = Put({path, value}, **document); !status.ok()) return std::string(Message(status));
  return JsonText((*document)->root().Json());
}

TEST(Setting, PutsAFieldsValue) {
  EXPECT_EQ(After("a.b", "2", "a: {b: 1, c: 3}\n"), R"({"a":{"b":2,"c":3}})");
  EXPECT_EQ(After("a", "[1, {x: z}]", "a: {b: 1}\n"), R"({"a":[1,{"x":"z"}]})");
}

TEST(Setting, MakesFieldsThatAreNotThere) {
  EXPECT_EQ(After("a.b.c", "1", "x: 1\n"), R"({"a":{"b":{"c":1}},"x":1})");
  EXPECT_EQ(After("a.b", "1", "a:\n"), R"({"a":{"b":1}})");
  EXPECT_EQ(After("a", "1", ""), R"({"a":1})");
}

TEST(Setting, KeepsWordsInQuotesWords) {
  EXPECT_EQ(After("a", "'5'", "a: 1\n"), R"({"a":"5"})");
  EXPECT_EQ(After("a", "5", "a: 1\n"), R"({"a":5})");
  EXPECT_EQ(After("a", "null", "a: 1\n"), R"({"a":null})");
}

TEST(Setting, FindsItemsByNameAndByNumber) {
  EXPECT_THAT(After("flows.from-two.rate", "9/s"), HasSubstr(R"({"name":"from-two","rate":"9/s"})"));
  EXPECT_THAT(After("flows.0.rate", "9/s"), HasSubstr(R"({"name":"from.one","rate":"9/s"})"));
  EXPECT_THAT(After("steps.scaled to 3.then.from-two.requests", "5"), HasSubstr(R"("requests":5)"));
}

TEST(Setting, TakesTheLongestNameThatIsThere) {
  EXPECT_THAT(After("flows.from.one.rate", "9/s"), HasSubstr(R"({"name":"from.one","rate":"9/s"})"));
  EXPECT_EQ(After("a.b.c", "2", "a: {b.c: 1}\n"), R"({"a":{"b.c":2}})");
  EXPECT_EQ(After("a.\"b.c\".d", "2", "a: {}\n"), R"({"a":{"b.c":{"d":2}}})");
}

TEST(Setting, KnowsThatRowsOfTimingHaveDots) {
  EXPECT_THAT(After("timing.istiod.debounce_after", "5ms"), HasSubstr(R"("istiod.debounce_after":"5ms")"));
}

TEST(Setting, TakesAnActionWithoutAListForItsFirst) {
  EXPECT_THAT(After("steps.0.do.0.scale.replicas", "7"), HasSubstr(R"("scale":{"replicas":7})"));
}

TEST(Setting, LeavesWhatHasTheSameAnchorAsItWas) {
  EXPECT_EQ(After("a.x", "2", "base: &b {x: 1}\na: *b\nc: *b\n"), R"({"a":{"x":2},"base":{"x":1},"c":{"x":1}})");
}

TEST(Setting, ThatLeadsNowhereSaysWhatThereIs) {
  EXPECT_EQ(After("flows.from-three.rate", "1/s"),
            "story.yaml: flows has no item 'from-three'; it has from.one, from-two");
  EXPECT_EQ(After("flows.2.rate", "1/s"), "story.yaml: flows has no item '2'; it has from.one, from-two");
  EXPECT_EQ(After("l.3", "1", "l: [1, 2]\n"), "story.yaml: l has no item '3'; it has 2 without names, counted from 0");
  EXPECT_EQ(After("steps.0.name.x", "1"), "story.yaml: steps.0.name is a value, which has nothing below it");
  EXPECT_EQ(After("links.0.loss", "1%"), "story.yaml: links is no list, so nothing in it has a number; write the list");
  EXPECT_EQ(After("l.a.x", "1", "l: [{name: a}, {name: a}]\n"),
            "story.yaml: l has 2 items named 'a'; name the one by its number from 0");
  EXPECT_THAT(After("a..b", "1"), HasSubstr("a name is empty"));
  EXPECT_THAT(After("a.\"b", "1"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(After("a", "{x"), HasSubstr("a:1:1: not valid YAML"));
}

TEST(Setting, IsReadFromAWord) {
  const auto setting = ParseSetting("meshConfig.x=a=b");
  ASSERT_TRUE(setting.ok());
  EXPECT_EQ(setting->path, "meshConfig.x");
  EXPECT_EQ(setting->value, "a=b");
  for (const char* text : {"", "=", "a", "a=", "=b"}) {
    EXPECT_THAT(std::string(Message(ParseSetting(text).status())), HasSubstr("is not PATH=VALUE")) << text;
  }
}

TEST(PathSegments, AreTheNamesBetweenDots) {
  EXPECT_THAT(*PathSegments("a.b c.\"d.e\".f"), ElementsAre("a", "b c", "d.e", "f"));
}

}  // namespace
}  // namespace wavetank::scenario
