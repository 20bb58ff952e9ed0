// What connections see while a mesh changes its root certificate, in and out of the order that Istio's guide asks for.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

using ::testing::HasSubstr;

class RootRotationTest : public ::testing::Test {
 protected:
  static Mesh::Options OneTry() {
    Mesh::Options options;
    options.retry = false;
    return options;
  }
  Secret BothRoots() const {
    const x509::TrustBundleRef ours = mesh.ca.Root().trusted_ca, theirs = mesh.foreign.Root().trusted_ca;
    std::vector<x509::CertificateRef> roots = ours->roots();
    roots.insert(roots.end(), theirs->roots().begin(), theirs->roots().end());
    Secret out;
    out.trusted_ca = x509::TrustBundle::Of(roots);
    return out;
  }
  std::vector<Lab::Proxy*> Servers() { return {mesh.v1, mesh.v2}; }
  // New connections only: those of before keep what they agreed on.
  Lab::Result AskAnew() {
    mesh.lab.RunFor(10ms);
    return mesh.Ask(/*keep_alive=*/false);
  }
  void ForgetConnections() {
    mesh.sleep->envoy->Stop(Envoy::StopKind::kKill);
    mesh.sleep->envoy->Start();
    mesh.lab.RunFor(1s);
  }

  Mesh mesh{OneTry()};
};

TEST_F(RootRotationTest, AServerOfAnotherRootIsRefusedByTheClientWithUpstreamConnectionFailure) {
  for (Lab::Proxy* server : Servers()) {
    server->secrets->Set("default", mesh.foreign.Identity(kHelloId));
    server->secrets->Set("ROOTCA", mesh.foreign.Root());
  }
  mesh.Start();
  const Lab::Result r = AskAnew();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_EQ(r.flags, "UF");
  EXPECT_THAT(r.details, HasSubstr("upstream_reset_before_response_started{remote_connection_failure|TLS_error:"));
  EXPECT_THAT(r.details, HasSubstr("CERTIFICATE_VERIFY_FAILED"));
  EXPECT_EQ(mesh.ClientCounter("ssl.fail_verify_error"), 1u);
  EXPECT_EQ(mesh.ClientCounter("ssl.handshake"), 0u);
}

TEST_F(RootRotationTest, AClientOfAnotherRootIsRefusedByTheServerAndToldUnknownCa) {
  mesh.sleep->secrets->Set("default", mesh.foreign.Identity(kSleepId));
  mesh.sleep->secrets->Set("ROOTCA", BothRoots());
  mesh.Start();
  const Lab::Result r = AskAnew();
  EXPECT_EQ(r.flags, "UF");
  EXPECT_THAT(r.details, HasSubstr("TLSV1_ALERT_UNKNOWN_CA"));
  EXPECT_EQ(mesh.ClientCounter("ssl.connection_error"), 1u);
  EXPECT_EQ(mesh.ClientCounter("ssl.fail_verify_error"), 0u);
}

TEST_F(RootRotationTest, RootsFirstThenCertificatesThenTheOldRootAwayLosesNothing) {
  mesh.Start();
  const std::vector<Lab::Proxy*> all = {mesh.sleep, mesh.v1, mesh.v2};
  const auto expect_served = [&](const char* when) {
    ForgetConnections();
    for (int i = 0; i < 10; ++i) {
      const Lab::Result r = AskAnew();
      EXPECT_EQ(r.record.code, 200) << when << ": " << r.details;
    }
  };
  expect_served("before");
  for (Lab::Proxy* proxy : all) {
    proxy->secrets->Set("ROOTCA", BothRoots());
    expect_served("while both roots spread");
  }
  for (Lab::Proxy* proxy : all) {
    proxy->secrets->Set("default", mesh.foreign.Identity(proxy == mesh.sleep ? kSleepId : kHelloId));
    expect_served("while certificates are renewed");
  }
  for (Lab::Proxy* proxy : all) {
    proxy->secrets->Set("ROOTCA", mesh.foreign.Root());
    expect_served("while the old root goes");
  }
}

TEST_F(RootRotationTest, CertificatesBeforeRootsBreakWhoHasNotHeardYet) {
  mesh.Start();
  EXPECT_EQ(AskAnew().record.code, 200);
  for (Lab::Proxy* server : Servers()) server->secrets->Set("default", mesh.foreign.Identity(kHelloId));
  ForgetConnections();
  const Lab::Result broken = AskAnew();
  EXPECT_EQ(broken.flags, "UF");
  EXPECT_THAT(broken.details, HasSubstr("CERTIFICATE_VERIFY_FAILED"));
  mesh.sleep->secrets->Set("ROOTCA", BothRoots());
  EXPECT_EQ(AskAnew().record.code, 200) << "heals with the roots, without a new connection by hand";
}

}  // namespace
}  // namespace wavetank::envoysim::lab
