#include "core/kube/credentials/sealing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "core/base/json/json_read.h"
#include "core/base/json_text.h"

namespace wavetank::kube {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string Base64(std::string_view text) { return absl::Base64Escape(absl::string_view(text.data(), text.size())); }

TEST(Credentials, AStandInIsAsLongAsItsSecretAndTheSameForTheSame) {
  for (const char* secret :
       {"hunter2", "abcd", "a much longer one, of 70 bytes, so that one digest does not suffice for it"}) {
    const std::string is = StandIn(secret);
    EXPECT_EQ(is.size(), std::string_view(secret).size());
    EXPECT_NE(is, secret);
    EXPECT_EQ(is, StandIn(secret));
    EXPECT_EQ(is, StandIn(is)) << "what is sealed stays";
    EXPECT_NE(is, StandIn(std::string(secret) + "x"));
  }
}

TEST(Credentials, AreKnownByName) {
  for (const char* name : {"password", "DB_PASSWORD", "Passwd", "client_secret", "clientSecret", "X-Api-Key", "api_key",
                           "Authorization", "github.token", "API_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_KEY", "DB_PASS",
                           "accessToken", "auth", "passphrase"}) {
    EXPECT_TRUE(NamesCredential(name)) << name;
  }
  for (const char* name :
       {"", "name", "key", "tls.key", "credentialName", "secretName", "imagePullSecrets", "token_ttl",
        "serviceAccountToken", "privateKey", "NO_BYPASS", "JWT_POLICY", "cookie", "host"}) {
    EXPECT_FALSE(NamesCredential(name)) << name;
  }
}

TEST(Credentials, InTextsOfEveryForm) {
  for (const char* text :
       {"password: hunter2x", "  \"token\": \"hunter2x\", \"a\": 1", "API_KEY=hunter2x", "--password=hunter2x",
        "curl -H \"Authorization: Bearer hunter2x\" http://a", "https://me:hunter2x@host/x", "https://hunter2x@host",
        "/path?a=1&password=hunter2x&b=2", "a: 1\nclient_secret: |\n  hunter2x\nb: 2",
        "authorization: Basic hunter2x\n", "'api_key': 'hunter2x'", "{\"auths\":{\"r\":{\"auth\":\"hunter2x\"}}}"}) {
    const std::string sealed = SealedText(text);
    EXPECT_THAT(sealed, Not(HasSubstr("hunter2x"))) << text;
    EXPECT_EQ(sealed.size(), std::string_view(text).size()) << sealed;
    EXPECT_EQ(SealedText(sealed), sealed);
  }
  for (const char* text : {"name: helloworld", "token: {aud: istio-ca}", "password: true", "http://host/a:b@c", "a=b",
                           "secretName: abcdef", "the token: is a word"}) {
    EXPECT_EQ(SealedText(text).size(), std::string_view(text).size());
  }
  EXPECT_EQ(SealedText("secretName: abcdef"), "secretName: abcdef");
  EXPECT_EQ(SealedText("token: {aud: istio-ca}"), "token: {aud: istio-ca}");
}

// R6: each kind of place, planted.
TEST(Credentials, InNoPlaceOfAnObjectOrAnInput) {
  const std::string kubeconfig =
      "apiVersion: v1\nclusters:\n- cluster: {server: \"https://a:1\"}\n  name: c\nusers:\n- name: u\n  user:\n"
      "    token: PLANTED-token\n    password: PLANTED-pass\n";
  const std::vector<json> planted = {
      {{"kind", "Secret"}, {"data", {{"c2", Base64(kubeconfig)}}}},
      {{"kind", "Secret"}, {"data", {{"anything", Base64("PLANTED-opaque")}}}},
      {{"kind", "Secret"}, {"stringData", {{"username", "PLANTED-user"}}}},
      {{"kind", "Secret"}, {"data", {{".dockerconfigjson", Base64(R"({"auths":{"r":{"password":"PLANTED-d"}}})")}}}},
      {{"cluster", "c"}, {"kind", "Secret"}, {"name", "x"}, {"patch", {{"data", {{"a", Base64("PLANTED-p")}}}}}},
      {{"path", "/api/v1/namespaces/a/secrets/x"}, {"body", {{"stringData", {{"a", "PLANTED-body"}}}}}},
      {{"path", "/api/v1/namespaces/a/secrets/x"},
       {"body", json::array({{{"op", "add"}, {"path", "/data/a"}, {"value", Base64("PLANTED-op")}}})}},
      {{"kind", "ConfigMap"}, {"data", {{"password", "PLANTED-cm"}, {"x.yaml", "db:\n  password: PLANTED-in"}}}},
      {{"env", json::array({{{"name", "DB_PASSWORD"}, {"value", "PLANTED-env"}},
                            {{"name", "API_TOKEN"}, {"value", "PLANTED-env2"}}})}},
      {{"kind", "VirtualService"},
       {"spec",
        {{"headers", {{"request", {{"set", {{"x-api-key", "PLANTED-vs"}}}}}}},
         {"match", {{{"headers", {{"authorization", {{"exact", "Bearer PLANTED-m"}}}}}}}}}}},
      {{"kind", "WasmPlugin"},
       {"spec", {{"url", "https://me:PLANTED-u@host/x.wasm"}, {"pluginConfig", {{"client_secret", "PLANTED-w"}}}}}},
      {{"header", {{"key", "authorization"}, {"value", "Basic PLANTED-h"}}}},
      {{"path", "/a?b=1&api_key=PLANTED-q"}, {"headers", {{"Authorization", "Token PLANTED-t"}}}},
      {{"args", {"--db-password=PLANTED-a"}}},
  };
  for (const json& value : planted) {
    const json sealed = Sealed(value);
    const auto hidden = [](const std::string& text) {
      EXPECT_THAT(text, Not(HasSubstr("PLANTED")));
      return text.size();
    };
    EXPECT_EQ(hidden(JsonText(sealed)), JsonText(value).size()) << JsonText(sealed);
    for (const auto& [key, data] : Members(At(sealed, "data"))) {
      std::string bytes;
      if (absl::Base64Unescape(TextOf(data), &bytes)) hidden(bytes);
    }
    EXPECT_EQ(Sealed(sealed), sealed);
  }
  // A kubeconfig stays one.
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(TextOf(At(Sealed(planted[0]), {"data", "c2"})), &bytes));
  EXPECT_THAT(bytes, HasSubstr("server: \"https://a:1\""));
}

TEST(Credentials, WhatIsNoneStays) {
  const std::vector<json> plain = {
      {{"kind", "Secret"}, {"data", {{"root-cert.pem", Base64("-----BEGIN CERTIFICATE-----\nabc\n")}}}},
      {{"kind", "Gateway"}, {"spec", {{"tls", {{"credentialName", "cert"}, {"privateKey", "/etc/certs/key.pem"}}}}}},
      {{"volumes", {{{"secret", {{"secretName", "abcdef"}}}}}}},
      {{"projected", {{"sources", {{{"serviceAccountToken", {{"path", "istio-token"}, {"audience", "istio-ca"}}}}}}}}},
      {{"headers", {{"cookie", {{"regex", "^(.*?;)?(user=jason)(;.*)?$"}}}}}},
      {{"token", {{"issuer", "me"}, {"header", "x-jwt"}}}},
  };
  for (const json& value : plain) EXPECT_EQ(Sealed(value), value) << JsonText(Sealed(value));
}

}  // namespace
}  // namespace wavetank::kube
