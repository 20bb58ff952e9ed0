// Secrets that istiod itself serves: a credentialName's, over ADS.
#include <string>

#include "envoy/extensions/transport_sockets/tls/v3/secret.pb.h"
#include "fakes/envoy/tls/tls_config.h"
#include "gmock/gmock.h"
#include "google/protobuf/any.pb.h"
#include "gtest/gtest.h"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace tls = envoy::extensions::transport_sockets::tls::v3;

constexpr char kRoots[] = "kubernetes://edge-cacert";

std::string RootsSecret(const std::string& pem) {
  tls::Secret secret;
  secret.set_name(kRoots);
  secret.mutable_validation_context()->mutable_trusted_ca()->set_inline_bytes(pem);
  return secret.SerializeAsString();
}

class AdsSecretTest : public ::testing::Test {
 protected:
  AdsSecretTest() {
    // The client takes its roots from a Secret of its cluster.
    const std::string tls_json = R"({"name": "envoy.transport_sockets.tls", "typed_config": {
      "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": ")" +
                                 std::string(kHelloSni) + R"(", "common_tls_context": {"alpn_protocols": ["istio"],
      "tls_certificate_sds_secret_configs": [{"name": "default", "sds_config": {"ads": {}, "resource_api_version": "V3"}}],
      "validation_context_sds_secret_config": {"name": ")" +
                                 std::string(kRoots) +
                                 R"(", "sds_config": {"ads": {}, "resource_api_version": "V3"}}}}})";
    mesh.sleep->ads->world[XdsType::kCds][std::string(kHelloCluster)] =
        EdsCluster(kHelloCluster, "\"transport_socket\": " + tls_json);
  }
  static Mesh::Options OneTry() {
    Mesh::Options options;
    options.retry = false;
    return options;
  }
  void Give(const std::string& pem) { mesh.sleep->ads->world[XdsType::kSds][kRoots] = RootsSecret(pem); }
  void Push() {
    mesh.sleep->ads->Push(XdsType::kSds);
    mesh.lab.RunFor(100ms);
  }
  Lab::Result Ask() { return mesh.Ask(/*keep_alive=*/false); }

  Mesh mesh{OneTry()};
};

TEST_F(AdsSecretTest, IsAskedForByNameAndTakesPartInHandshakes) {
  Give(mesh.ca.Root().trusted_ca->ToPem());
  mesh.Start();
  EXPECT_EQ(Ask().record.code, 200);
  std::vector<std::string> asked;
  for (const AdsScript::Message& message : mesh.sleep->ads->log) {
    if (message.type == XdsType::kSds && message.nonce.empty()) asked = message.names;
  }
  EXPECT_THAT(asked, ElementsAre(kRoots));
}

TEST_F(AdsSecretTest, RotationReachesNewConnections) {
  Give(mesh.foreign.Root().trusted_ca->ToPem());
  mesh.Start();
  const Lab::Result refused = Ask();
  EXPECT_EQ(refused.flags, "UF");
  EXPECT_THAT(refused.details, HasSubstr("CERTIFICATE_VERIFY_FAILED"));
  Give(mesh.ca.Root().trusted_ca->ToPem());
  Push();
  EXPECT_EQ(Ask().record.code, 200);
}

TEST_F(AdsSecretTest, ABadOneIsRejectedAndTheLastGoodOneStays) {
  Give(mesh.ca.Root().trusted_ca->ToPem());
  mesh.Start();
  Give("no certificate");
  Push();
  EXPECT_EQ(Ask().record.code, 200);
  std::string error;
  for (const AdsScript::Message& message : mesh.sleep->ads->log) {
    if (message.type == XdsType::kSds && !message.error.empty()) error = message.error;
  }
  EXPECT_THAT(error, HasSubstr("Failed to load trusted CA certificates from <inline>"));
}

TEST(ReadSecretTest, TheKeyMustBelongToTheCertificate) {
  const x509::CertificateAuthority a = x509::MakeRootCa(1, "a", Time{}, 24h), b = x509::MakeRootCa(1, "b", Time{}, 24h);
  const auto read = [&](const std::string& key) {
    tls::Secret secret;
    secret.set_name("kubernetes://web");
    secret.mutable_tls_certificate()->mutable_certificate_chain()->set_inline_bytes(a.certificate->ToPem());
    secret.mutable_tls_certificate()->mutable_private_key()->set_inline_bytes(key);
    google::protobuf::Any any;
    any.PackFrom(secret);
    return ReadSecret(any.type_url(), any.value());
  };
  ASSERT_TRUE(read(a.key->ExportPrivateKeyPem()).ok());
  EXPECT_EQ(read(a.key->ExportPrivateKeyPem())->secret.certificate->certificates.size(), 1u);
  EXPECT_THAT(std::string(read(b.key->ExportPrivateKeyPem()).status().message()), HasSubstr("KEY_VALUES_MISMATCH"));
  EXPECT_THAT(std::string(read("nonsense").status().message()), HasSubstr("Failed to load private key"));
}

}  // namespace
}  // namespace wavetank::envoysim::lab
