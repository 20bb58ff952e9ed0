// What kubectl makes of YAML: the expectations were printed by sigs.k8s.io/yaml 1.3.0, but for those of the bounds.
#include "core/kube/yaml.h"

#include <string>

#include "core/base/bounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::kube {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Read(std::string_view text) {
  const absl::StatusOr<json> value = ParseYaml(text, "f");
  return value.ok() ? value->dump() : std::string(value.status().message());
}

TEST(Yaml, PlainScalarsAreWhatYaml11SaysTheyAre) {
  EXPECT_EQ(Read("[yes, No, on, OFF, y, N, true, ~, null, '']"),
            R"([true,false,true,false,true,false,true,null,null,""])");
  EXPECT_EQ(Read("[0644, 0x1F, 0o17, 0b11, 1_000, +7, -0x10, 08, 18446744073709551615, 18446744073709551616]"),
            "[420,31,15,3,1000,7,-16,8,18446744073709551615,1.8446744073709552e+19]");
  EXPECT_EQ(Read("[1.5, .5, 1e3, 1., 1.0, -2.50, 1:30, 2001-01-01, 1.2.3, 0.1.0, 1e400]"),
            R"([1.5,0.5,1000,1,1,-2.5,"1:30","2001-01-01","1.2.3","0.1.0","1e400"])");
}

TEST(Yaml, QuotesAndBlocksAreText) {
  EXPECT_EQ(Read("a: '1'\nb: \"yes\"\nc: |\n  1\n  2\nd: >-\n  x\n  y\n"),
            R"({"a":"1","b":"yes","c":"1\n2\n","d":"x y"})");
}

TEST(Yaml, TagsDecide) {
  EXPECT_EQ(Read("[!!str 1, !!int '3', !!float 3, !!binary aGk=, !own 1]"), R"(["1",3,3,"hi","1"])");
  EXPECT_EQ(Read("a: !!int x"), "f:1:4: cannot decode !!str `x` as a !!int");
  EXPECT_EQ(Read("a: !!binary '%'"), "f:1:4: !!binary value contains invalid base64 data");
}

TEST(Yaml, KeysAreWrittenAsText) {
  EXPECT_EQ(Read("on: 1\n0x10: 2\n1.5: 3\n'y': 4\n"), R"({"1.5":3,"16":2,"true":1,"y":4})");
  EXPECT_THAT(Read("? [a]\n: 1\n"), HasSubstr("f:1:3: a field name must be text"));
  EXPECT_THAT(Read("~: 1\n"), HasSubstr("a field name must be text"));
}

TEST(Yaml, TheLastOfEqualKeysStays) { EXPECT_EQ(Read("a: 1\na: 2\n"), R"({"a":2})"); }

TEST(Yaml, AliasesAndMergesAreExpanded) {
  EXPECT_EQ(Read("a: &x {b: 1, c: 2}\nd: *x\n"), R"({"a":{"b":1,"c":2},"d":{"b":1,"c":2}})");
  EXPECT_EQ(Read("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n"), R"({"a":{"b":1,"c":2},"d":{"b":1,"c":3}})");
  EXPECT_EQ(Read("d:\n  c: 3\n  <<: {c: 4}\n"), R"({"d":{"c":4}})");
  EXPECT_EQ(Read("d:\n  <<: [{a: 1}, {a: 2, b: 3}]\n"), R"({"d":{"a":1,"b":3}})");
  EXPECT_EQ(Read("d:\n  <<: {<<: {a: 1}, b: 2}\n  '<<': 1\n"), R"({"d":{"<<":1,"a":1,"b":2}})");
  EXPECT_EQ(Read("d:\n  <<: 1\n"), "f:2:7: map merge requires map or sequence of maps as the value");
  EXPECT_EQ(Read("a: *b\n"), "f:1:4: unknown anchor 'b' referenced");
  EXPECT_EQ(Read("a: &b [*b]\n"), "f:1:8: anchor 'b' value contains itself");
}

TEST(Yaml, WhatJsonHasNoWordForIsRefused) {
  EXPECT_EQ(Read("a: .inf"), "f:1:4: json: unsupported value: +Inf; quote it if it is meant as text");
  EXPECT_THAT(Read("a: -.Inf"), HasSubstr("-Inf"));
  EXPECT_THAT(Read("a: .nan"), HasSubstr("NaN"));
  EXPECT_EQ(Read("a: '.inf'"), R"({"a":".inf"})");
}

TEST(Yaml, ErrorsAreKubectlsWithTheirPlace) {
  EXPECT_EQ(Read("a: [b"),
            "f:1:6: not valid YAML: did not find expected ',' or ']', while parsing a flow sequence (from 1:4)");
  EXPECT_EQ(Read("a: 'b\nc: d\n"),
            "f:3:1: not valid YAML: found unexpected end of stream, while scanning a quoted scalar (from 1:4)");
  EXPECT_EQ(Read("a: b: c"), "f:1:5: not valid YAML: mapping values are not allowed in this context");
  EXPECT_EQ(Read("a:\n\tb: c"), "f:2:1: not valid YAML: found character that cannot start any token");
  EXPECT_EQ(Read("a: \x01"), "f:1:4: not valid YAML: control characters are not allowed");
  EXPECT_EQ(Read("a: b\nc: \xc2\x80\n"), "f:2:4: not valid YAML: control characters are not allowed");
}

TEST(Yaml, BytesThatAreNoTextAreToldWithTheirPlace) {
  EXPECT_EQ(Read("a: b\nc: d\xff"), "f:2:5: not valid YAML: invalid leading UTF-8 octet");
  EXPECT_EQ(Read("a: \xc3("), "f:1:5: not valid YAML: invalid trailing UTF-8 octet");
  EXPECT_EQ(Read(std::string_view("a: \0", 4)), "f:1:4: not valid YAML: control characters are not allowed");
  EXPECT_THAT(Read(std::string_view("\xff\xfe"
                                    "a\0:\0",
                                    6)),
              HasSubstr("invalid leading UTF-8 octet"));
}

TEST(Yaml, AByteOrderMarkIsNoText) {
  EXPECT_EQ(Read("\xef\xbb\xbf"
                 "a: 1\nb: 2\n"),
            R"({"a":1,"b":2})");
}

// kubectl takes what stands before it and says nothing of the rest.
TEST(Yaml, TextBehindADocumentsEndIsRefused) {
  EXPECT_EQ(Read("  a: 1\nb: 2\n"), "f:2:1: not valid YAML: did not find expected <document start>");
}

TEST(Yaml, DocumentsTellWhereTheyAndTheirItemsBegin) {
  const auto documents =
      ParseYamlDocuments("# first\n---\na: 1\n---\n---\nkind: List\nitems:\n- a\n- b: c\n  d: [e]\n", "f");
  ASSERT_TRUE(documents.ok()) << documents.status();
  ASSERT_EQ(documents->size(), 2u);  // what is empty is none
  EXPECT_EQ((*documents)[0].line, 3);
  EXPECT_THAT((*documents)[0].item_lines, ElementsAre());
  EXPECT_EQ((*documents)[1].line, 6);
  EXPECT_THAT((*documents)[1].item_lines, ElementsAre(8, 9));
}

TEST(Yaml, TheFirstDocumentIsReadAlone) {
  EXPECT_EQ(Read("a: 1\n---\nb: [\n"), R"({"a":1})");
  EXPECT_EQ(Read("---\n---\nb: 1\n"), "null");
  EXPECT_EQ(Read(""), "null");
}

TEST(Yaml, WhatGrowsOrNestsWithoutEndIsRefused) {
  std::string aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    aliases += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) aliases += (k == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    aliases += "]\n";
  }
  EXPECT_THAT(Read(aliases), HasSubstr("values after aliases are expanded; split the file"));
  std::string deep;
  for (int i = 0; i <= bounds::kDepth; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(Read(deep), HasSubstr("levels; flatten it"));
  EXPECT_THAT(Read(std::string(100000, '[')), HasSubstr("levels; flatten it"));
}

}  // namespace
}  // namespace wavetank::kube
