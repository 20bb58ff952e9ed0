// Certificates that somebody else signs for istiod.
#include <string>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/security/signing/external_ca.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"
#include "tests/core/security/year.h"

namespace wavetank::security {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kSpiffe = "spiffe://cluster.local/ns/sample/sa/sleep";

class ExternalCaTest : public ::testing::Test {
 protected:
  ExternalCa& Make(ExternalCa::Options options) {
    options.cluster = "cluster1";
    options.max_workload_ttl = 24h * 90;
    options.serving_ttl = 24h;
    options.dns_names = {"istiod.istio-system.svc"};
    external = std::make_unique<ExternalCa>(host, client, std::move(options),
                                            [this]() -> const std::vector<config::SignerRoots>& { return mesh_roots; });
    return *external;
  }
  absl::Status Start() {
    absl::Status out = absl::UnknownError("no answer");
    external->Start([&](absl::Status status) { out = std::move(status); });
    Run(2s);
    return out;
  }
  absl::StatusOr<SignedCertificate> Sign(SigningRequest request, Duration wait = 2s) {
    auto out = std::make_shared<absl::StatusOr<SignedCertificate>>(absl::UnknownError("no answer"));
    if (request.csr_pem.empty()) request.csr_pem = x509::CreateCsr(*x509::KeyPair::Derive(1, "w"), {}, {kSpiffe});
    request.sans = {kSpiffe};
    external->ra()->Sign(std::move(request), [out](auto made) { *out = std::move(made); });
    Run(wait);
    return *out;
  }
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }
  // Signs whatever of this signer is approved, ten times a second.
  void SignFor(const std::string& signer) {
    client.List(kSigningRequestKind, {}, [this, signer](const absl::StatusOr<kube::ObjectList>& list) {
      for (const kube::ObjectRef& request : list->items) {
        json body = request->body;
        last_request = body;
        if (body["spec"]["signerName"] != signer || At(body, {"status", "certificate"}).is_string()) continue;
        if (Items(At(body, {"status", "conditions"})).empty()) continue;
        std::string csr;
        ASSERT_TRUE(absl::Base64Unescape(body["spec"]["request"].get<std::string>(), &csr));
        const auto parsed = x509::ParseCsr(csr, "csr").value();
        x509::CertificateSpec spec;
        for (const auto& names : {parsed.sans.uris, parsed.sans.dns_names})
          spec.sans.insert(spec.sans.end(), names.begin(), names.end());
        spec.not_before = kernel.Now();
        spec.not_after = kernel.Now() + 24h;
        const auto leaf = x509::Certificate::Issue(spec, parsed.public_key, *root.certificate, *root.key).value();
        body["status"]["certificate"] = absl::Base64Escape(leaf->ToPem());
        client.Put(body);
      }
    });
    host.RunAfter(100ms, [this, signer] { SignFor(signer); });
  }
  std::string RequestsLeft() {
    std::string out;
    client.List(kSigningRequestKind, {}, [&](const absl::StatusOr<kube::ObjectList>& list) {
      for (const kube::ObjectRef& request : list->items) out += request->meta.name;
    });
    Run(10ms);
    return out;
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  x509::CertificateAuthority root = x509::MakeRootCa(1, "Signer", Time{}, 10 * kYear);
  std::vector<config::SignerRoots> mesh_roots = {{{"signers.example/a"}, root.root->ToPem()}};
  json last_request;
  std::unique_ptr<ExternalCa> external;
};

TEST_F(ExternalCaTest, AWorkloadsOwnSignerSignsAndTheMeshSaysItsRoot) {
  Make({.type = "ISTIOD_RA_KUBERNETES_API", .signer_domain = "signers.example", .cert_provider = "istiod"});
  ASSERT_TRUE(Start().ok());
  SignFor("signers.example/a");
  const auto made = Sign({.ttl = 1h, .cert_signer = "a"});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->cert_chain.size(), 2u);
  EXPECT_EQ(made->cert_chain[1], root.root->ToPem());
  EXPECT_TRUE(x509::Verify({made->leaf}, *x509::TrustBundle::Of({root.root}), kernel.Now()).ok());
  EXPECT_EQ(last_request["metadata"]["annotations"]["experimental.cert-manager.io/request-duration"], "1h0m0s");
  EXPECT_EQ(RequestsLeft(), "");
}

TEST_F(ExternalCaTest, ARootThatDidNotSignIsRefused) {
  mesh_roots[0].pem = x509::MakeRootCa(2, "Other", Time{}, kYear).root->ToPem();
  Make({.type = "ISTIOD_RA_KUBERNETES_API", .signer_domain = "signers.example", .cert_provider = "istiod"});
  ASSERT_TRUE(Start().ok());
  SignFor("signers.example/a");
  EXPECT_THAT(std::string(Message(Sign({.cert_signer = "a"}).status())),
              HasSubstr("root cert from signed cert-chain is invalid"));
}

TEST_F(ExternalCaTest, WithoutAnyRootTheCertificateIsRefused) {
  mesh_roots.clear();
  Make({.type = "ISTIOD_RA_KUBERNETES_API", .signer_domain = "signers.example", .cert_provider = "istiod"});
  ASSERT_TRUE(Start().ok());
  SignFor("signers.example/a");
  EXPECT_EQ(std::string(Message(Sign({.cert_signer = "a"}).status())),
            "failed to find root cert from either signed cert-chain or mesh config");
}

TEST_F(ExternalCaTest, ARequestMayNameOnlyTheCallersOwnIdentities) {
  Make({.type = "ISTIOD_RA_KUBERNETES_API", .signer_domain = "signers.example", .cert_provider = "istiod"});
  ASSERT_TRUE(Start().ok());
  const std::string other =
      x509::CreateCsr(*x509::KeyPair::Derive(1, "w"), {}, {"spiffe://cluster.local/ns/kube-system/sa/admin"});
  EXPECT_EQ(std::string(Message(Sign({.csr_pem = other, .cert_signer = "a"}).status())),
            "unable to validate SAN Identities in CSR");
  EXPECT_THAT(std::string(Message(Sign({.ttl = 24h * 91, .cert_signer = "a"}).status())),
              HasSubstr("is greater than the max allowed TTL"));
}

TEST_F(ExternalCaTest, ASignerThatNeverAnswersIsGivenUpAfterAMinute) {
  Make({.type = "ISTIOD_RA_KUBERNETES_API", .signer_domain = "signers.example", .cert_provider = "istiod"});
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(Message(Sign({.cert_signer = "a"}, 64s).status()), "no answer");
  Run(3s);
  EXPECT_EQ(RequestsLeft(), "");
}

TEST_F(ExternalCaTest, TheLegacySignerIsOfAnApiThatIsGone) {
  client.Put({{"apiVersion", "v1"},
              {"kind", "ConfigMap"},
              {"metadata", {{"name", "kube-root-ca.crt"}, {"namespace", "istio-system"}}},
              {"data", {{"ca.crt", root.root->ToPem()}}}});
  Make({.type = "ISTIOD_RA_KUBERNETES_API", .signer = "kubernetes.io/legacy-unknown", .cert_provider = "istiod"});
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(std::string(Message(Sign({}).status())),
            "unable to submit CSR request (). Error: the server could not find the requested resource");
}

TEST_F(ExternalCaTest, ItsServingCertificateIsTheSignersAndIsRenewedAtHalfOfItsLife) {
  SignFor("signers.example/a");
  Make({.type = "ISTIOD_RA_KUBERNETES_API",
        .signer_domain = "signers.example",
        .cert_provider = "k8s.io/signers.example/a"});
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(external->replaces_istiod_ca());
  EXPECT_EQ(external->ca_bundle_pem(), root.root->ToPem());
  const x509::CertificateRef first = external->serving_certificate().chain.front();
  EXPECT_THAT(first->sans().dns_names, testing::ElementsAre("istiod.istio-system.svc"));
  Run(11h);
  EXPECT_EQ(external->serving_certificate().chain.front(), first);
  Run(2h);
  EXPECT_NE(external->serving_certificate().chain.front(), first);
}

TEST_F(ExternalCaTest, AnExternalCasGrpcIsNamedAndRefusedAsIn1182) {
  Make({.type = "ISTIOD_RA_ISTIO_API", .cert_provider = "istiod"});
  EXPECT_THAT(std::string(Message(Start())), HasSubstr("failed to create RA: invalid CA Name ISTIOD_RA_ISTIO_API"));
}

}  // namespace
}  // namespace wavetank::security
