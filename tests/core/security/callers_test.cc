// Further ways to say who a caller of istiod is.
#include <map>
#include <string>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/security/callers/jwt_authenticator.h"
#include "core/security/callers/node_authorizer.h"
#include "core/security/callers/xfcc_authenticator.h"
#include "core/x509/calendar.h"
#include "core/x509/jws.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::security {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Caller> Ask(Authenticator& authenticator, const PeerCredentials& peer) {
  absl::StatusOr<Caller> out = absl::UnknownError("no answer");
  authenticator.Authenticate(peer, [&](absl::StatusOr<Caller> caller) { out = std::move(caller); });
  return out;
}

// --- Tokens of an OpenID Connect issuer ---

constexpr const char* kIssuer = "https://issuer.example";

class JwtAuthenticatorTest : public ::testing::Test {
 protected:
  JwtAuthenticatorTest() {
    web["https://issuer.example/keys"] = "{\"keys\":[" + x509::PublicJwk(*key, "k1") + "]}";
    web["https://issuer.example/.well-known/openid-configuration"] =
        JsonText(json{{"issuer", kIssuer},
                      {"jwks_uri", "https://issuer.example/keys"},
                      {"id_token_signing_alg_values_supported", json::array({"RS256", "ES256"})}});
  }
  absl::StatusOr<std::unique_ptr<JwtAuthenticator>> Make(const std::string& text) {
    absl::StatusOr<JwtRule> parsed = ParseJwtRule(text);
    if (!parsed.ok()) return parsed.status();
    return JwtAuthenticator::Create(
        *parsed, "td",
        [this](const std::string& url) {
          return web.contains(url) ? std::optional(web.at(url)) : std::optional<std::string>();
        },
        [this] { return now; });
  }
  std::string Token(json claims, const x509::KeyPair& by) const {
    const json defaults = {{"iss", kIssuer},
                           {"aud", json::array({"istio-ca"})},
                           {"sub", "system:serviceaccount:machines:vm"},
                           {"exp", x509::UnixSeconds(now) + 60}};
    for (const auto& [name, value] : defaults.items()) claims.emplace(name, value);
    const std::string data = x509::Base64Url(R"({"alg":"ES256","kid":"k1"})") + "." + x509::Base64Url(JsonText(claims));
    return data + "." + x509::Base64Url(x509::SignEs256(by, data));
  }
  std::string WhyNot(const json& claims) {
    const auto authenticator = Make(rule);
    EXPECT_TRUE(authenticator.ok()) << authenticator.status();
    return std::string(Message(Ask(**authenticator, {.bearer_token = Token(claims, *key)}).status()));
  }

  Time now = Time{} + 1h;
  std::map<std::string, std::string> web;
  const x509::KeyPairRef key = x509::KeyPair::Derive(1, "issuer");
  const std::string rule = R"({"issuer": "https://issuer.example", "audiences": ["istio-ca"]})";
};

TEST_F(JwtAuthenticatorTest, AServiceAccountOfTheIssuerIsItsIdentity) {
  const auto authenticator = Make(rule);
  ASSERT_TRUE(authenticator.ok()) << authenticator.status();
  const auto caller = Ask(**authenticator, {.bearer_token = Token(json::object(), *key)});
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_THAT(caller->identities, ElementsAre("spiffe://td/ns/machines/sa/vm"));
}

TEST_F(JwtAuthenticatorTest, ClaimsThatDoNotFitAreRefusedInItsWords) {
  EXPECT_THAT(WhyNot({{"iss", "https://other.example"}}),
              HasSubstr("oidc: id token issued by a different provider, expected \"https://issuer.example\" got "
                        "\"https://other.example\""));
  EXPECT_THAT(WhyNot({{"exp", x509::UnixSeconds(now) - 1}}),
              HasSubstr("oidc: token is expired (Token Expiry: 2023-09-01 00:59:59 +0000 UTC)"));
  EXPECT_THAT(WhyNot({{"nbf", x509::UnixSeconds(now) + 301}}), HasSubstr("before the nbf (not before) time"));
  EXPECT_EQ(WhyNot({{"sub", "somebody"}}), "invalid sub somebody");
  EXPECT_EQ(WhyNot({{"aud", json::array({"other"})}}), "invalid audiences [other]");
  EXPECT_THAT(WhyNot({{"aud", "istio-ca"}}), testing::HasSubstr("cannot unmarshal string into Go struct field"));
}

TEST_F(JwtAuthenticatorTest, AnotherKeyIsNotBelieved) {
  const auto authenticator = Make(rule);
  ASSERT_TRUE(authenticator.ok());
  const auto caller = Ask(**authenticator, {.bearer_token = Token(json::object(), *x509::KeyPair::Derive(2, "other"))});
  EXPECT_THAT(std::string(Message(caller.status())), HasSubstr("failed to verify id token signature"));
}

TEST_F(JwtAuthenticatorTest, ANewKeyOfTheIssuerIsFetchedWhenATokenNamesIt) {
  const auto authenticator = Make(rule);
  ASSERT_TRUE(authenticator.ok());
  ASSERT_TRUE(Ask(**authenticator, {.bearer_token = Token(json::object(), *key)}).ok());
  const x509::KeyPairRef next = x509::KeyPair::Derive(2, "next");
  web["https://issuer.example/keys"] = "{\"keys\":[" + x509::PublicJwk(*next, "k1") + "]}";
  EXPECT_TRUE(Ask(**authenticator, {.bearer_token = Token(json::object(), *next)}).ok());
}

TEST_F(JwtAuthenticatorTest, WithoutADiscoveryDocumentOnlyRs256IsTaken) {
  const auto authenticator = Make(R"({"issuer": "https://issuer.example", "jwks_uri": "https://issuer.example/keys"})");
  ASSERT_TRUE(authenticator.ok());
  const auto caller = Ask(**authenticator, {.bearer_token = Token(json::object(), *key)});
  EXPECT_THAT(std::string(Message(caller.status())),
              HasSubstr("oidc: id token signed with unsupported algorithm, expected [\"RS256\"] got \"ES256\""));
}

TEST_F(JwtAuthenticatorTest, AnIssuerThatNobodyServesKeepsIstiodDown) {
  web.clear();
  EXPECT_THAT(std::string(Message(Make(rule).status())),
              HasSubstr("failed at creating an OIDC provider for https://issuer.example"));
  EXPECT_THAT(std::string(Message(Make("no rule").status())), HasSubstr("failed to unmarshal JWT rule"));
}

// --- What a gateway forwards ---

TEST(XfccAuthenticatorTest, NamesOfAForwardedCertificateAreTheCallers) {
  XfccAuthenticator authenticator({"10.0.0.0/8"});
  const auto caller =
      Ask(authenticator, {.address = "10.1.2.3:41234",
                          .forwarded_client_cert = "By=spiffe://td/ns/gw/sa/gw;Hash=ab;Subject=\"CN=vm,O=\\\"a;b\\\"\";"
                                                   "URI=spiffe://td/ns/machines/sa/vm;DNS=vm.example;DNS=vm2.example"});
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_THAT(caller->identities, ElementsAre("spiffe://td/ns/machines/sa/vm", "vm.example", "vm2.example", "vm"));
}

TEST(XfccAuthenticatorTest, OnlyATrustedGatewayMayForward) {
  XfccAuthenticator authenticator({"10.0.0.0/8", "no range"});
  const std::string header = "URI=spiffe://td/ns/machines/sa/vm";
  const auto from = [&](const char* address) {
    return Ask(authenticator, {.address = address, .forwarded_client_cert = header});
  };
  EXPECT_TRUE(from("127.0.0.1:1").ok());
  EXPECT_TRUE(from("[::1]:1").ok());
  EXPECT_THAT(std::string(Message(from("192.0.2.1:1").status())),
              HasSubstr("caller from 192.0.2.1:1 is not in the trusted network"));
  EXPECT_FALSE(from("10.1.2.3").ok());  // no port
}

TEST(XfccAuthenticatorTest, AHeaderThatIsNoneIsRefused) {
  for (const char* bad : {"nonsense", "URI=\"open", "Colour=red"}) {
    EXPECT_FALSE(ParseForwardedClientCert(bad).ok()) << bad;
  }
}

TEST(XfccAuthenticatorTest, WithoutAHeaderItHasNothingToSay) {
  AuthenticationManager manager;
  manager.Add(std::make_unique<XfccAuthenticator>(std::vector<std::string>{"10.0.0.0/8"}));
  absl::Status why;
  manager.Authenticate({.address = "10.0.0.1:1"}, [&](absl::StatusOr<Caller> caller) { why = caller.status(); });
  EXPECT_EQ(std::string(Message(why)), "Authenticator XfccAuthenticator: <nil>");
}

// --- Who may speak for others ---

class NodeAuthorizerTest : public ::testing::Test {
 protected:
  void Pod(const char* ns, const char* name, const char* account, const char* node) {
    client.Put({{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata", {{"name", name}, {"namespace", ns}, {"uid", std::string("uid-") + name}}},
                {"spec", {{"serviceAccountName", account}, {"nodeName", node}}}});
  }
  std::string WhyNot(const Caller& caller, const std::string& identity) {
    NodeAuthorizer nodes(host, client, {{"istio-system", "ztunnel"}});
    nodes.Start();
    kernel.RunUntil(kernel.Now() + 1s);
    return std::string(Message(nodes.MayImpersonate(caller, identity)));
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  Caller proxy{.ns = "istio-system", .service_account = "ztunnel", .pod_name = "z1", .pod_uid = "uid-z1"};
};

TEST_F(NodeAuthorizerTest, ANodesProxyMayAskForPodsOfItsOwnNodeAlone) {
  Pod("istio-system", "z1", "ztunnel", "node-1");
  Pod("sample", "sleep-1", "sleep", "node-1");
  Pod("sample", "other-1", "other", "node-2");
  EXPECT_EQ(WhyNot(proxy, "spiffe://td/ns/sample/sa/sleep"), "");
  EXPECT_EQ(WhyNot(proxy, "spiffe://td/ns/sample/sa/other"),
            "no instances of \"sample/other\" found on node \"node-1\"");
  proxy.pod_uid = "of another pod";
  EXPECT_THAT(WhyNot(proxy, "spiffe://td/ns/sample/sa/sleep"), HasSubstr("UID does not match"));
}

TEST_F(NodeAuthorizerTest, NobodyElseMayAskForOthers) {
  Pod("istio-system", "z1", "ztunnel", "node-1");
  EXPECT_EQ(WhyNot({.ns = "sample", .service_account = "sleep"}, "spiffe://td/ns/sample/sa/other"),
            "caller (sample/sleep) is not allowed to impersonate");
}

// --- Which tokens are reviewed for whom ---

class AudienceReviewer final : public kube::TokenReviewer {
 public:
  void Review(const std::string&, const std::vector<std::string>& audiences,
              absl::AnyInvocable<void(absl::StatusOr<kube::TokenClaims>)> done) override {
    asked = audiences;
    done(kube::TokenClaims{.ns = "n", .service_account = "s"});
  }
  std::vector<std::string> asked;
};

std::vector<std::string> ReviewedWith(const std::vector<std::string>& audiences, const TokenPolicy& policy) {
  AudienceReviewer reviewer;
  KubeJwtAuthenticator authenticator(
      "c1", "td", [&](std::string_view) { return &reviewer; }, policy);
  json claims = json::object();
  if (!audiences.empty()) claims["aud"] = audiences;
  EXPECT_TRUE(Ask(authenticator, {.bearer_token = "e30." + x509::Base64Url(JsonText(claims)) + ".sig"}).ok());
  return reviewer.asked;
}

TEST(TokenPolicyTest, ATokenForNobodyIsReviewedWithoutAnAudienceUnlessThatIsForbidden) {
  EXPECT_THAT(ReviewedWith({}, {}), testing::IsEmpty());
  EXPECT_THAT(ReviewedWith({}, {.require_third_party = true}), ElementsAre("istio-ca"));
  EXPECT_THAT(ReviewedWith({"istio-ca"}, {.audiences = {"a", "b"}}), ElementsAre("a", "b"));
}

TEST(TokenPolicyTest, FirstPartyTokensNeedThePolicyOfThatName) {
  const std::vector<std::string> api_server = {"https://kubernetes.default.svc.cluster.local"};
  EXPECT_THAT(ReviewedWith(api_server, {}), ElementsAre("istio-ca"));
  EXPECT_THAT(ReviewedWith(api_server, {.first_party = true}), testing::IsEmpty());
  EXPECT_THAT(ReviewedWith(api_server, {.first_party = true, .require_third_party = true}), ElementsAre("istio-ca"));
}

}  // namespace
}  // namespace wavetank::security
