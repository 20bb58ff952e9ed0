#include "core/config/schema/proto_json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::config {

struct Inner {
  std::string text;
};
struct Outer {
  std::string text = "before";
  bool flag = false;
  int32_t small = 0;
  uint32_t natural = 0;
  uint64_t large = 0;
  double real = 0;
  std::optional<Duration> time;
  std::optional<Inner> inner;
  std::vector<Inner> list;
  std::map<std::string, Inner> by_name;
  int choice = 7;
};
void ReadMessage(ProtoJson& in, Inner& out) { in.Field("someText", out.text); }
void ReadMessage(ProtoJson& in, Outer& out) {
  in.Field("text", out.text);
  in.Field("flag", out.flag);
  in.Field("small", out.small);
  in.Field("natural", out.natural);
  in.Field("large", out.large);
  in.Field("real", out.real);
  in.Field("time", out.time);
  in.Field("inner", out.inner);
  in.Field("list", out.list);
  in.Field("byName", out.by_name);
  in.Enum("choice", out.choice, {{"NO", 0}, {"YES", 1}});
}

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

absl::Status Read(const nlohmann::json& value, Outer& out) {
  absl::Status status;
  ProtoJson fields(value, "spec", status);
  if (status.ok()) ReadMessage(fields, out);
  return status;
}
std::string Error(const nlohmann::json& value) {
  Outer out;
  return std::string(Read(value, out).message());
}

TEST(ProtoJsonTest, ReadsBothSpellingsAndLeavesWhatIsAbsent) {
  Outer out;
  ASSERT_TRUE(Read({{"by_name", {{"some_key", {{"some_text", "x"}}}}}, {"inner", {{"someText", "y"}}}}, out).ok());
  EXPECT_EQ(out.text, "before");
  EXPECT_EQ(out.by_name.at("some_key").text, "x") << "keys of maps are data";
  EXPECT_EQ(out.inner->text, "y");
}

TEST(ProtoJsonTest, IntegersMayBeTextAndMustFit) {
  Outer out;
  ASSERT_TRUE(Read({{"small", "-5"}, {"natural", 4294967295u}, {"large", "9007199254740993"}}, out).ok());
  EXPECT_EQ(out.small, -5);
  EXPECT_EQ(out.natural, 4294967295u);
  EXPECT_EQ(out.large, 9007199254740993u);
  EXPECT_THAT(Error({{"small", 2147483648}}), HasSubstr("spec.small: expected an integer"));
  EXPECT_THAT(Error({{"natural", -1}}), HasSubstr("spec.natural"));
  EXPECT_THAT(Error({{"large", 1.5}}), HasSubstr("spec.large"));
  EXPECT_THAT(Error({{"small", "5x"}}), HasSubstr("spec.small"));
}

TEST(ProtoJsonTest, NullIsAbsent) {
  Outer out;
  ASSERT_TRUE(Read({{"text", nullptr}, {"inner", nullptr}}, out).ok());
  EXPECT_EQ(out.text, "before");
  EXPECT_FALSE(out.inner);
}

TEST(ProtoJsonTest, UnknownEnumNumbersMeanNothingAndUnknownNamesAreErrors) {
  Outer out;
  ASSERT_TRUE(Read({{"choice", 99}}, out).ok());
  EXPECT_EQ(out.choice, 7);
  EXPECT_THAT(Error({{"choice", "MAYBE"}}), HasSubstr("expected one of NO, YES"));
}

TEST(ProtoJsonTest, ErrorsNameThePathAndTheFirstOneStays) {
  EXPECT_THAT(Error({{"list", {{{"someText", "a"}}, {{"someText", 1}}}}, {"text", 5}}), HasSubstr("spec.text"));
  EXPECT_THAT(Error({{"list", {{{"someText", "a"}}, {{"someText", 1}}}}}), HasSubstr("spec.list[1].someText"));
  EXPECT_THAT(Error({{"byName", {{"k", 1}}}}), HasSubstr("spec.byName.k: expected a mapping"));
  EXPECT_THAT(Error({{"list", 1}}), HasSubstr("spec.list: expected a list"));
  EXPECT_THAT(Error({{"flag", "true"}}), HasSubstr("spec.flag: expected true or false"));
  EXPECT_THAT(Error(nlohmann::json::array()), HasSubstr("spec: expected a mapping"));
}

}  // namespace
}  // namespace wavetank::config
