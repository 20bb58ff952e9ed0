#include "core/x509/jws.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "core/base/json_text.h"

namespace wavetank::x509 {
namespace {

std::string FromUrlSafe(const std::string& text) {
  std::string out;
  EXPECT_TRUE(absl::WebSafeBase64Unescape(text, &out));
  return out;
}

TEST(Jws, VerifiesTheExampleOfRfc7515) {
  const auto key = JwsKey::Ec(JwsKey::Curve::kP256, FromUrlSafe("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
                              FromUrlSafe("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"));
  ASSERT_NE(key, nullptr);
  const std::string data =
      "eyJhbGciOiJFUzI1NiJ9."
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
  std::string signature =
      FromUrlSafe("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q");
  EXPECT_TRUE(key->Verifies(JwsAlgorithm::kEs256, data, signature));
  EXPECT_FALSE(key->Verifies(JwsAlgorithm::kEs384, data, signature));
  EXPECT_FALSE(key->Verifies(JwsAlgorithm::kEs256, data + "x", signature));
  EXPECT_FALSE(key->Verifies(JwsAlgorithm::kEs256, data, ""));
}

TEST(Jws, VerifiesTheExampleOfRfc8037) {
  const auto key = JwsKey::Ed25519(FromUrlSafe("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"));
  ASSERT_NE(key, nullptr);
  const std::string signature =
      FromUrlSafe("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");
  const std::string data = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
  EXPECT_TRUE(key->Verifies(JwsAlgorithm::kEdDsa, data, signature));
  EXPECT_FALSE(key->Verifies(JwsAlgorithm::kEdDsa, "x" + data, signature));
}

TEST(Jws, WhatADerivedKeySignsItsPublicHalfVerifies) {
  const KeyPairRef key = KeyPair::Derive(7, "issuer"), other = KeyPair::Derive(7, "somebody else");
  const nlohmann::json jwk = ParseJson(PublicJwk(*key, "k"));
  ASSERT_TRUE(jwk.is_object());
  EXPECT_EQ(jwk["kid"], "k");
  const auto read = JwsKey::Ec(JwsKey::Curve::kP256, FromUrlSafe(jwk["x"]), FromUrlSafe(jwk["y"]));
  ASSERT_NE(read, nullptr);
  EXPECT_TRUE(read->Verifies(JwsAlgorithm::kEs256, "data", SignEs256(*key, "data")));
  EXPECT_FALSE(read->Verifies(JwsAlgorithm::kEs256, "data", SignEs256(*other, "data")));
  EXPECT_EQ(SignEs256(*key, "data"), SignEs256(*key, "data"));
}

TEST(Jws, NumbersThatAreNoKeyMakeNone) {
  EXPECT_EQ(JwsKey::Rsa("\x01\x00\x01", "\x01\x00\x01"), nullptr);
  EXPECT_EQ(JwsKey::Ec(JwsKey::Curve::kP256, "\x01", "\x01"), nullptr);
  EXPECT_EQ(JwsKey::Ec(JwsKey::Curve::kP256, std::string(40, '\xff'), "\x01"), nullptr);
  EXPECT_EQ(JwsKey::Ed25519("short"), nullptr);
}

}  // namespace
}  // namespace wavetank::x509
