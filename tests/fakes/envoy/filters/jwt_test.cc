// What no stock Envoy can be asked: istio-proxy's own filter, and key sets that only the Envoy of its time takes. The
// rest is compared with a real one (tests/oracles/envoy/cases/jwt.json).
#include "fakes/envoy/filters/jwt.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "core/base/json_text.h"
#include "fakes/envoy/filters/istio_authn.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {
namespace {

using nlohmann::json;

std::string TokenOf(const json& header, const json& payload) {
  std::string out;
  for (const std::string& part : {JsonText(header), JsonText(payload), std::string("signature")}) {
    std::string encoded;
    absl::WebSafeBase64Escape(part, &encoded);
    out += (out.empty() ? "" : ".") + encoded;
  }
  return out;
}

const json* Find(const DynamicMetadata& notes, std::string_view key) {
  for (const MetadataNote& note : notes) {
    if (note.filter == "istio_authn" && note.key == key) return note.tree.get();
  }
  return nullptr;
}

TEST(JwtKeySetTest, TheSetThatIstiodMakesUpVerifiesNothing) {
  const std::string set =
      R"({"keys":[ {"e":"AQAB","kid":"abc","kty":"RSA","n":"RXJyb3ItSXN0aW9kRmFpbGVkVG9GZXRjaEp3a3NVcmktaHR0cDovL3g"}]})";
  const JwtKeySet kept = JwtKeySet::Parse(set, /*keeps_broken=*/true);
  ASSERT_FALSE(kept.empty());
  const JwtToken other = JwtToken::Parse(TokenOf({{"alg", "RS256"}, {"kid", "x"}}, {{"iss", "i"}}));
  ASSERT_EQ(other.status, JwtStatus::kOk);
  EXPECT_EQ(kept.Verify(other), JwtStatus::kNoKeyForIdOrAlgorithm);
  const JwtToken unsaid = JwtToken::Parse(TokenOf({{"alg", "RS256"}}, {{"iss", "i"}}));
  EXPECT_EQ(kept.Verify(unsaid), JwtStatus::kVerificationFails);
  EXPECT_TRUE(JwtKeySet::Parse(set, /*keeps_broken=*/false).empty());
}

TEST(IstioAuthnTest, ClaimsAreListsOfWords) {
  IstioAuthn filter;
  filter.issuers = {"other", "i"};
  filter.principal = true;
  const json payload = {{"iss", "i"},
                        {"sub", "alice"},
                        {"aud", {"one", "two"}},
                        {"azp", "p"},
                        {"scope", "read write"},
                        {"groups", {"a b", 7}},
                        {"deep", {{"er", "x"}}},
                        {"n", 7}};
  DynamicMetadata notes = {{"envoy.filters.http.jwt_authn", "i", {}, std::make_shared<const json>(payload)}};
  filter.Note(&notes);
  EXPECT_EQ(*Find(notes, "request.auth.principal"), "i/alice");
  EXPECT_EQ(*Find(notes, "request.auth.audiences"), "one");
  EXPECT_EQ(*Find(notes, "request.auth.presenter"), "p");
  const json& claims = *Find(notes, "request.auth.claims");
  EXPECT_EQ(claims["scope"], json({"read", "write"}));
  EXPECT_EQ(claims["groups"], json::array({"a b"}));
  EXPECT_EQ(claims["deep"]["er"], json::array({"x"}));
  EXPECT_FALSE(claims.contains("n"));
}

TEST(IstioAuthnTest, WithoutAVerifiedTokenNothingIsNoted) {
  IstioAuthn filter;
  filter.issuers = {"i"};
  DynamicMetadata notes = {
      {"envoy.filters.http.jwt_authn", "other", {}, std::make_shared<const json>(json{{"iss", "other"}})}};
  filter.Note(&notes);
  EXPECT_EQ(notes.size(), 1u);
}

}  // namespace
}  // namespace wavetank::envoysim
