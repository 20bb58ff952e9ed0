#include "core/istiod/peer_cert_verifier.h"

#include <map>
#include <string>

#include "absl/strings/escaping.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/istiod/istiod.h"
#include "core/istiod/start_lines.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::pilot {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class PeerCertVerifierTest : public ::testing::Test {
 protected:
  static x509::CertificateAuthority Ca(const char* name) { return x509::MakeRootCa(1, name, Time{}, 24h * 365); }
  static std::string Bundle(const x509::CertificateAuthority& ca) {
    const nlohmann::json key = {
        {"use", "x509-svid"}, {"kty", "EC"}, {"x5c", nlohmann::json::array({absl::Base64Escape(ca.root->der())})}};
    return JsonText(nlohmann::json{{"keys", nlohmann::json::array({key})}});
  }
  // A workload's certificate.
  static std::vector<x509::CertificateRef> Signed(const x509::CertificateAuthority& ca, std::vector<std::string> sans) {
    const x509::KeyPairRef key = x509::KeyPair::Derive(1, "workload");
    x509::CertificateSpec spec;
    spec.sans = std::move(sans);
    spec.not_after = Time{} + 24h;
    return {x509::Certificate::Issue(spec, key->public_key(), *ca.certificate, *ca.key).value()};
  }
  void Fetch(const std::string& endpoints) {
    verifier.Fetch(endpoints, [this](absl::Status status) { ends.push_back(std::move(status)); });
  }
  std::string Refusal(const std::vector<x509::CertificateRef>& chain) const {
    return std::string(Message(verifier.Verify(chain, "cluster.local", own.root->ToPem())));
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  std::map<std::string, std::string> web;
  std::vector<std::string> said;
  LogSink log{[this](const LogLine& line) { said.push_back(line.text); }};
  IstiodOptions options;
  StartLines lines{log, host, options};
  PeerCertVerifier verifier{
      host, [this](const std::string& url) { return web.contains(url) ? std::optional(web[url]) : std::nullopt; },
      lines};
  std::vector<absl::Status> ends;
  x509::CertificateAuthority own = Ca("own");
};

TEST_F(PeerCertVerifierTest, ACertificateOfItsOwnTrustDomainIsBelievedByItsOwnRootsAlone) {
  EXPECT_EQ(Refusal(Signed(own, {"spiffe://cluster.local/ns/a/sa/b"})), "");
  EXPECT_EQ(Refusal(Signed(Ca("other"), {"spiffe://cluster.local/ns/a/sa/b"})),
            "x509: certificate signed by unknown authority");
}

TEST_F(PeerCertVerifierTest, OfAnotherTrustDomainItsBundleDecides) {
  const x509::CertificateAuthority other = Ca("other");
  EXPECT_EQ(Refusal(Signed(other, {"spiffe://other.example/ns/a/sa/b"})),
            "no cert pool found for trust domain other.example");
  web["https://spiffe.example/bundle"] = Bundle(other);
  Fetch("other.example|spiffe.example/bundle");
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_TRUE(ends[0].ok()) << ends[0];
  EXPECT_EQ(Refusal(Signed(other, {"spiffe://other.example/ns/a/sa/b"})), "");
  EXPECT_EQ(Refusal(Signed(other, {"spiffe://cluster.local/ns/a/sa/b"})),
            "x509: certificate signed by unknown authority");
}

TEST_F(PeerCertVerifierTest, ACertificateNamesOneUriAndNoChainIsNothingToRefuse) {
  EXPECT_EQ(Refusal({}), "");
  EXPECT_EQ(Refusal(Signed(own, {"web.example"})), "peer certificate does not contain 1 URI type SAN, detected 0");
  EXPECT_EQ(Refusal(Signed(own, {"spiffe://cluster.local/ns/a/sa/b", "spiffe://cluster.local/ns/a/sa/c"})),
            "peer certificate does not contain 1 URI type SAN, detected 2");
}

// istiod: pkg/spiffe/spiffe.go: 50 ms, doubled each time, for ten seconds.
TEST_F(PeerCertVerifierTest, AnEndpointThatIsLateIsAskedAgainForTenSeconds) {
  Fetch("other.example|https://spiffe.example");
  kernel.RunUntil(Time{} + 1s);
  EXPECT_THAT(ends, SizeIs(0));
  EXPECT_THAT(said, SizeIs(5));  // at 0, 50, 150, 350 and 750 ms
  web["https://spiffe.example"] = Bundle(Ca("other"));
  kernel.RunUntil(Time{} + 2s);
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_TRUE(ends[0].ok()) << ends[0];
}

TEST_F(PeerCertVerifierTest, AnEndpointThatNeverAnswersEndsTheStart) {
  Fetch("other.example|https://spiffe.example");
  kernel.RunUntil(Time{} + 1min);
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_THAT(std::string(Message(ends[0])), HasSubstr("exhausted retries to fetch the SPIFFE bundle other.example"));
}

TEST_F(PeerCertVerifierTest, EndpointsAreADomainAndAUrl) {
  Fetch("other.example");
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_THAT(std::string(Message(ends[0])), HasSubstr("other.example. Expected <trustdomain>|<url>"));
}

}  // namespace
}  // namespace wavetank::pilot
