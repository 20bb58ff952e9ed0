#include "fakes/kube/http/api/go_words.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/kube/label_selector.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// As encoding/json of Go 1.20 says it.
TEST(GoWords, OfTextThatIsNoJson) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "unexpected end of JSON input"},
      {"{", "unexpected end of JSON input"},
      {R"({"a":1)", "unexpected end of JSON input"},
      {R"({"a":"b)", "unexpected end of JSON input"},
      {"\x1f\x8b", R"(invalid character '\x1f' looking for beginning of value)"},
      {"\b", R"(invalid character '\b' looking for beginning of value)"},
      {"{bad", "invalid character 'b' looking for beginning of object key string"},
      {R"({"a":1,})", "invalid character '}' looking for beginning of object key string"},
      {R"({"a" 1})", "invalid character '1' after object key"},
      {R"({"a":1 "b":2})", "invalid character '\"' after object key:value pair"},
      {"[1 2]", "invalid character '2' after array element"},
      {"[1,]", "invalid character ']' looking for beginning of value"},
      {"bad", "invalid character 'b' looking for beginning of value"},
      {"'a'", "invalid character '\\'' looking for beginning of value"},
      {"trie", "invalid character 'i' in literal true (expecting 'u')"},
      {"nul", "unexpected end of JSON input"},
      {"-x", "invalid character 'x' in numeric literal"},
      {"1.x", "invalid character 'x' after decimal point in numeric literal"},
      {"1ex", "invalid character 'x' in exponent of numeric literal"},
      {"01", "invalid character '1' after top-level value"},
      {"{} x", "invalid character 'x' after top-level value"},
      {"\"\n\"", "invalid character '\\n' in string literal"},
      {R"("\q")", "invalid character 'q' in string escape code"},
      {R"("\u12x4")", "invalid character 'x' in \\u hexadecimal character escape"},
  };
  for (const auto& [text, words] : cases) EXPECT_EQ(GoJsonError(text), words) << text;
}

// Whatever is JSON is complained of by nobody, and the other way round; only the depth is Go's own.
RC_GTEST_PROP(GoWords, ComplainOfWhatIsNoJsonAlone, ()) {
  std::string text;
  const auto size = *rc::gen::inRange(0, 12);
  for (int i = 0; i < size; ++i) {
    text += *rc::gen::elementOf(std::vector<std::string>{"{", "}", "[", "]", ":", ",", "\"a\"", "\"", "1", "-", ".5",
                                                         "e3", "true", "null", " ", "\\n", "x"});
  }
  RC_ASSERT(GoJsonError(text).empty() == json::accept(text));
}

TEST(GoWords, OfSelectors) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"a", ""},
      {"!a,b=c,d in (e,f),g notin (h), i!=j,k==l", ""},
      {"a=", ""},
      {"a in ()", ""},
      {"a in", "unable to parse requirement: found '' expected: '('"},
      {"a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"},
      {"!", "unable to parse requirement: found '', expected: identifier"},
      {"=a", "found '=', expected: !, identifier, or 'end of string'"},
      {"a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
      {"a=b=c", "found '=', expected: ',' or 'end of string'"},
      {"a=b c", "found 'c', expected: ',' or 'end of string'"},
      {"a,", "found '', expected: identifier after ','"},
  };
  for (const auto& [text, words] : cases) {
    EXPECT_EQ(GoSelectorError(text), words) << text;
    // What passes here can be read.
    if (words.empty()) {
      EXPECT_TRUE(kube::LabelSelector::Parse(text).ok()) << text;
    }
  }
}

TEST(GoWords, OfWhatJsonHolds) {
  EXPECT_EQ(GoText(json::parse(R"({"spec":{"replicas":"two","list":[1,true,null]}})")),
            "map[spec:map[list:[1 true <nil>] replicas:two]]");
}

}  // namespace
}  // namespace wavetank::fakekube::http
