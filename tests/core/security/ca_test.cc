#include <string>

#include "core/base/status.h"
#include "core/security/authenticator.h"
#include "core/security/ca_server.h"
#include "core/security/istio_ca.h"
#include "core/security/key_cert_bundle.h"
#include "core/security/spiffe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/security/year.h"

namespace wavetank::security {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Time kStart{};

const x509::CertificateAuthority& Root() {
  static const auto root = x509::MakeRootCa(1, "Root CA", kStart, 10 * kYear);
  return root;
}
const x509::CertificateAuthority& Cluster1() {
  static const auto ca = x509::MakeIntermediateCa(1, "Intermediate CA cluster1", Root(), kStart, 2 * kYear);
  return ca;
}
KeyCertPem Pem(const x509::CertificateAuthority& ca) {
  const auto data = x509::CaCertsSecretData(ca);
  return {data.at("ca-cert.pem"), data.at("ca-key.pem"), data.at("cert-chain.pem"), data.at("root-cert.pem"), {}};
}
KeyCertBundleRef Bundle() {
  return KeyCertBundle::Create(Pem(Cluster1()), kStart, "Secret istio-system/cacerts").value();
}

TEST(Spiffe, IdentitiesRoundTripAndOthersAreRefused) {
  const auto id = ParseSpiffeIdentity("spiffe://cluster.local/ns/sample/sa/sleep");
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->ToString(), "spiffe://cluster.local/ns/sample/sa/sleep");
  for (const char* bad :
       {"", "sleep", "spiffe://", "spiffe://td/ns/a/sa/b/c", "spiffe://td/sa/a/ns/b", "SPIFFE://t/ns/a/sa/b"}) {
    EXPECT_FALSE(ParseSpiffeIdentity(bad).ok()) << bad;
  }
  EXPECT_EQ(SanitizeTrustDomain("a@b.com"), "a.b.com");
}

TEST(Spiffe, AliasesAddTwinsAndLeaveDnsNamesAlone) {
  EXPECT_THAT(ExpandWithTrustDomains({"spiffe://td1/ns/def/sa/a", "host.example"}, {"td1", "td2"}),
              ElementsAre("host.example", "spiffe://td1/ns/def/sa/a", "spiffe://td2/ns/def/sa/a"));
}

TEST(KeyCertBundle, EachThingWrongIsOneClearError) {
  const auto error = [](KeyCertPem pem, Time now = kStart) {
    return std::string(Message(KeyCertBundle::Create(std::move(pem), now, "Secret istio-system/cacerts").status()));
  };
  const KeyCertPem good = Pem(Cluster1());
  const auto other = x509::MakeRootCa(2, "Other", kStart, kYear);
  KeyCertPem pem = good;
  pem.certificate = "nonsense";
  EXPECT_THAT(error(pem), HasSubstr("Secret istio-system/cacerts, key ca-cert.pem, is not a certificate"));
  pem = good;
  pem.key.clear();
  EXPECT_EQ(error(pem),
            "open etc/cacerts/ca-key.pem: no such file or directory: Secret istio-system/cacerts, key ca-key.pem, is "
            "missing or empty");
  pem = good;
  pem.key = "nonsense";
  EXPECT_THAT(error(pem), HasSubstr("key ca-key.pem, is no private key"));
  pem = good;
  pem.key = other.key->ExportPrivateKeyPem();
  EXPECT_THAT(
      error(pem),
      HasSubstr(
          "the cert does not match the key: Secret istio-system/cacerts: ca-key.pem is not the key of ca-cert.pem"));
  pem = good;
  pem.roots = other.root->ToPem();
  EXPECT_THAT(error(pem), HasSubstr("ca-cert.pem does not chain to root-cert.pem: self-signed certificate in"));
  pem = good;
  pem.chain = "nonsense";
  EXPECT_THAT(error(pem), HasSubstr("key cert-chain.pem, is not a certificate"));
  EXPECT_THAT(error(good, kStart + 3 * kYear), HasSubstr("valid from 2023-09-01T00:00:00Z until 2025-08-31T00:00:00Z"));
  EXPECT_THAT(error(good, kStart - 1h), HasSubstr("and now it is 2023-08-31T23:00:00Z; renew it"));
  x509::CertificateSpec leaf;
  leaf.not_after = kStart + kYear;
  const auto key = x509::KeyPair::Derive(1, "leaf");
  pem = good;
  pem.certificate =
      x509::Certificate::Issue(leaf, key->public_key(), *Cluster1().certificate, *Cluster1().key).value()->ToPem();
  pem.key = key->ExportPrivateKeyPem();
  EXPECT_THAT(error(pem), HasSubstr("is not authorized to sign other certificates"));
  pem = good;
  pem.names = {"tls.crt", "tls.key", "tls.crt", "ca.crt"};
  pem.roots.clear();
  EXPECT_THAT(error(pem), HasSubstr("key ca.crt, is missing"));
}

TEST(IstioCa, SignsForTheCallersIdentityOnly) {
  const auto ca = IstioCa::Create(Bundle(), {}, kStart).value();
  const auto key = x509::KeyPair::Derive(1, "w");
  const Time now = kStart + 1h;
  const auto signed_cert = ca->Sign(x509::CreateCsr(*key, {}, {"spiffe://cluster.local/ns/kube-system/sa/admin"}),
                                    {"spiffe://cluster.local/ns/sample/sa/sleep"}, Duration::zero(), now);
  ASSERT_TRUE(signed_cert.ok()) << signed_cert.status();
  EXPECT_THAT(signed_cert->leaf->sans().uris, ElementsAre("spiffe://cluster.local/ns/sample/sa/sleep"));
  EXPECT_TRUE(signed_cert->leaf->Matches(*key));
  EXPECT_EQ(signed_cert->leaf->not_before(), now - 2min);
  EXPECT_EQ(signed_cert->leaf->not_after(), now + 24h);
  ASSERT_EQ(signed_cert->cert_chain.size(), 3u);
  EXPECT_EQ(signed_cert->cert_chain[2], Root().root->ToPem());
  const auto chain = x509::ParseCertificates(signed_cert->cert_chain[0] + signed_cert->cert_chain[1], "chain").value();
  EXPECT_TRUE(x509::Verify(chain, *x509::TrustBundle::Of({Root().root}), now).ok());
}

TEST(IstioCa, LifetimesAreBounded) {
  const auto ca = IstioCa::Create(Bundle(), {}, kStart).value();
  const std::string csr = x509::CreateCsr(*x509::KeyPair::Derive(1, "w"), {}, {});
  EXPECT_TRUE(ca->Sign(csr, {"x"}, 24h * 90, kStart).ok());
  const auto long_lived = ca->Sign(csr, {"x"}, 24h * 90 + 1s, kStart);
  EXPECT_THAT(std::string(Message(long_lived.status())), HasSubstr("requested TTL 2160h0m1s is greater than the max"));
  // Close to the end of the chain, the default shrinks to what is left of it.
  const auto late = IstioCa::Create(KeyCertBundle::Create(Pem(Cluster1()), kStart + 2 * kYear - 1h, "x").value(), {},
                                    kStart + 2 * kYear - 1h);
  ASSERT_TRUE(late.ok());
  EXPECT_EQ((*late)->default_workload_ttl(), 1h);
}

TEST(IstioCa, RenewedRootStillVerifiesWhatTheOldOneSigned) {
  KeyCertPem pem = MakeSelfSignedCa(1, "cluster1", "cluster.local", kStart, kYear);
  const auto old = KeyCertBundle::Create(pem, kStart, "istio-ca-secret").value();
  const auto ca = IstioCa::Create(old, {}, kStart).value();
  const auto leaf = ca->Sign(x509::CreateCsr(*x509::KeyPair::Derive(1, "w"), {}, {}), {"x"}, 24h, kStart)->leaf;
  const auto renewed = KeyCertBundle::Create(RenewSelfSignedCa(*old, "cluster.local", kStart + 12h, kYear).value(),
                                             kStart + 12h, "istio-ca-secret");
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_NE((*renewed)->roots_pem(), old->roots_pem());
  EXPECT_TRUE(x509::Verify({leaf}, *(*renewed)->roots(), kStart + 13h).ok());
}

class LocalReviewer final : public kube::TokenReviewer {
 public:
  LocalReviewer(Host& host, const kube::TokenAuthority& authority) : host_(host), authority_(authority) {}
  void Review(const std::string& token, const std::vector<std::string>& audiences,
              absl::AnyInvocable<void(absl::StatusOr<kube::TokenClaims>)> done) override {
    host_.RunAfter(1ms, [this, token, audiences, done = std::move(done)]() mutable {
      done(authority_.Verify(token, audiences, host_.Now()));
    });
  }

 private:
  Host& host_;
  const kube::TokenAuthority& authority_;
};

class CaServerTest : public ::testing::Test {
 protected:
  CaServerTest() {
    authentication.Add(std::make_unique<ClientCertAuthenticator>());
    authentication.Add(std::make_unique<KubeJwtAuthenticator>(
        "cluster1", "cluster.local", [this](std::string_view cluster) -> kube::TokenReviewer* {
          if (cluster == "cluster1") return &reviewer1;
          return cluster == "cluster2" && remote_secret ? &reviewer2 : nullptr;
        }));
  }
  std::string Token(const kube::TokenAuthority& authority, std::vector<std::string> audiences = {"istio-ca"}) {
    return authority.Issue({.ns = "sample",
                            .service_account = "sleep",
                            .pod_name = "sleep-1",
                            .pod_uid = "u",
                            .audiences = std::move(audiences),
                            .issued = kernel.Now(),
                            .expires = kernel.Now() + 12h});
  }
  absl::StatusOr<std::vector<std::string>> Create(PeerCredentials peer, CertificateRequestMessage request = {}) {
    if (request.csr.empty()) request.csr = x509::CreateCsr(*x509::KeyPair::Derive(1, "w"), {}, {});
    absl::StatusOr<std::vector<std::string>> out = absl::UnknownError("no answer");
    server.CreateCertificate(std::move(peer), std::move(request), [&](auto answer) { out = std::move(answer); });
    kernel.RunUntil(kernel.Now() + 1s);
    return out;
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::TokenAuthority tokens1{1, "cluster1"}, tokens2{1, "cluster2"};
  LocalReviewer reviewer1{host, tokens1}, reviewer2{host, tokens2};
  bool remote_secret = true;
  std::unique_ptr<IstioCa> ca = IstioCa::Create(Bundle(), {}, kStart).value();
  AuthenticationManager authentication;
  CaServer server{host, "istiod.cluster1", *ca, authentication};
};

TEST_F(CaServerTest, PodTokenBecomesItsServiceAccountsIdentity) {
  const auto chain = Create({.bearer_token = Token(tokens1), .cluster_id = "cluster1"});
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_THAT(x509::Certificate::FromPem(chain->front(), "leaf").value()->sans().uris,
              ElementsAre("spiffe://cluster.local/ns/sample/sa/sleep"));
  EXPECT_EQ(server.signed_count(), 1);
}

TEST_F(CaServerTest, AnotherIdentityIsSignedOnlyForWhoMaySpeakForIt) {
  const PeerCredentials peer{.bearer_token = Token(tokens1), .cluster_id = "cluster1"};
  const CertificateRequestMessage request{.impersonated_identity = "spiffe://cluster.local/ns/sample/sa/other"};
  EXPECT_EQ(std::string(Message(Create(peer, request).status())), "request impersonation authentication failure");
  server.set_may_impersonate([](const Caller& caller, const std::string& identity) {
    return caller.service_account == "sleep" && identity.ends_with("/sa/other") ? absl::OkStatus()
                                                                                : absl::PermissionDeniedError("no");
  });
  const auto chain = Create(peer, request);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_THAT(x509::Certificate::FromPem(chain->front(), "leaf").value()->sans().uris,
              ElementsAre("spiffe://cluster.local/ns/sample/sa/other"));
}

TEST_F(CaServerTest, RemoteTokenNeedsTheRemoteSecret) {
  const PeerCredentials peer{.bearer_token = Token(tokens2), .cluster_id = "cluster2"};
  EXPECT_TRUE(Create(peer).ok());
  remote_secret = false;
  EXPECT_EQ(Create(peer).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(CaServerTest, TokensOfOthersAreRefusedOpaquely) {
  EXPECT_EQ(Message(Create({.bearer_token = Token(tokens2), .cluster_id = "cluster1"}).status()),
            "request authenticate failure");
  EXPECT_FALSE(Create({.bearer_token = Token(tokens1, {"vault"})}).ok());
  EXPECT_FALSE(Create({.bearer_token = "a.b.c"}).ok());
  EXPECT_FALSE(Create({}).ok());
  const std::string token = Token(tokens1);
  kernel.RunUntil(kernel.Now() + 13h);
  EXPECT_FALSE(Create({.bearer_token = token}).ok());
  EXPECT_EQ(server.authentication_failures(), 5);
}

TEST_F(CaServerTest, ClientCertificateComesBeforeTheToken) {
  const auto mine = Create({.bearer_token = Token(tokens1)});
  ASSERT_TRUE(mine.ok());
  const auto leaf = x509::Certificate::FromPem(mine->front(), "leaf").value();
  EXPECT_TRUE(Create({.verified_chain = {leaf}}).ok());
}

TEST_F(CaServerTest, BadRequestsAreNamed) {
  EXPECT_THAT(std::string(Message(Create({.bearer_token = Token(tokens1)}, {.csr = "nonsense"}).status())),
              HasSubstr("CSR signing error (the certificate signing request is no certificate signing request"));
  EXPECT_THAT(std::string(Message(Create({.bearer_token = Token(tokens1)}, {.validity_seconds = 1LL << 60}).status())),
              HasSubstr("greater than the max allowed TTL"));
  EXPECT_EQ(Create({.bearer_token = Token(tokens1)}, {.impersonated_identity = "spiffe://x/ns/a/sa/b"}).status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(CaServerTest, FailuresNameNoToken) {
  std::string text;
  const std::string token = Token(tokens2);
  authentication.Authenticate({.bearer_token = token},
                              [&](auto caller) { text = std::string(Message(caller.status())); });
  kernel.RunUntil(kernel.Now() + 1s);
  EXPECT_THAT(text, HasSubstr("Authenticator ClientCertAuthenticator: no client certificate is presented; "
                              "Authenticator KubeJWTAuthenticator: failed to validate the JWT"));
  EXPECT_THAT(text, Not(HasSubstr(token.substr(0, 30))));
}

TEST(XdsAuthorization, ProxyMustBeWhoItSaysItIs) {
  const std::vector<std::string> ids = {"host.example", "spiffe://cluster.local/ns/sample/sa/sleep"};
  EXPECT_TRUE(CheckConnectionIdentity(ids, "sample", "sleep").ok());
  EXPECT_TRUE(CheckConnectionIdentity(ids, "sample", "").ok());
  EXPECT_EQ(Message(CheckConnectionIdentity(ids, "other", "sleep").status()),
            "authorization failed: no identities ([host.example spiffe://cluster.local/ns/sample/sa/sleep]) matched "
            "other/sleep");
}

TEST(ServiceAccountToken, SaysWhatItWasIssuedFor) {
  const kube::TokenAuthority authority(1, "c"), other(1, "d");
  const kube::TokenClaims of_pod{.ns = "a",
                                 .service_account = "b",
                                 .pod_name = "quote\" and \\",
                                 .pod_uid = "u",
                                 .audiences = {"x", "y\""},
                                 .issued = kStart,
                                 .expires = kStart + kYear};
  const kube::TokenClaims of_account{.ns = "a", .service_account = "b", .issued = kStart, .expires = kStart};
  for (const kube::TokenClaims& claims : {of_pod, of_account}) {
    const std::string token = authority.Issue(claims);
    EXPECT_FALSE(other.Read(token).ok());
    const absl::StatusOr<kube::TokenClaims> read = authority.Read(token);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->ns, claims.ns);
    EXPECT_EQ(read->service_account, claims.service_account);
    EXPECT_EQ(read->pod_name, claims.pod_name);
    EXPECT_EQ(read->pod_uid, claims.pod_uid);
    EXPECT_EQ(read->audiences.size(), std::max<size_t>(claims.audiences.size(), 1));  // the API server's, if none
    if (!claims.audiences.empty()) {
      EXPECT_EQ(read->audiences, claims.audiences);
    }
    EXPECT_EQ(read->issued, claims.issued);
    EXPECT_EQ(read->expires, claims.expires);
  }
}

TEST(ServiceAccountToken, EveryAlteredByteIsNoticed) {
  const kube::TokenAuthority authority(1, "c");
  const std::string token = authority.Issue({.ns = "a", .service_account = "b", .audiences = {"x"}});
  ASSERT_TRUE(authority.Verify(token, {"x"}, kStart + kYear).ok());  // no expiry
  for (size_t i = 0; i < token.size(); ++i) {
    std::string altered = token;
    altered[i] = altered[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(authority.Verify(altered, {"x"}, kStart).ok()) << i;
  }
}

}  // namespace
}  // namespace wavetank::security
