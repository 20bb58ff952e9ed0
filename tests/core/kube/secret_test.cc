#include "core/kube/secret.h"

#include <string>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

ObjectRef Secret(nlohmann::json fields) {
  fields["apiVersion"] = "v1";
  fields["kind"] = "Secret";
  fields["metadata"] = {{"name", "s"}, {"namespace", "ns"}};
  return Object::FromJson(std::move(fields)).value();
}

TEST(SecretData, DecodesAndStringDataWins) {
  const auto data = ReadSecretData(*Secret({{"data", {{"a", "eA=="}, {"b", "eQ=="}}}, {"stringData", {{"b", "z"}}}}));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(*data, ElementsAre(Pair("a", "x"), Pair("b", "z")));
}

TEST(SecretData, WrittenSecretReadsBack) {
  const std::string bytes("\0\xff\n", 3);
  EXPECT_THAT(*ReadSecretData(*MakeSecret("ns", "s", {{"k", bytes}})), ElementsAre(Pair("k", bytes)));
}

TEST(SecretData, BadEntriesAreNamedAndNotShown) {
  const auto error = [](nlohmann::json fields) {
    return std::string(Message(ReadSecretData(*Secret(fields)).status()));
  };
  EXPECT_THAT(error({{"data", {{"a", "no base64!"}}}}), HasSubstr("Secret/ns/s: .data.a is not base64"));
  EXPECT_THAT(error({{"data", {{"a", "no base64!"}}}}), Not(HasSubstr("no base64!")));
  EXPECT_THAT(error({{"data", {{"a", 1}}}}), HasSubstr(".data.a must be a string"));
  EXPECT_THAT(error({{"data", "x"}}), HasSubstr(".data must be a mapping"));
}

}  // namespace
}  // namespace wavetank::kube
