#include "sim/network/go_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/x509/x509.h"

namespace wavetank::sim {
namespace {

using ::testing::HasSubstr;

constexpr Time kBirth = Time{} + 100h;
constexpr Duration kLife = 24h;

envoysim::TlsServer ServerFor(const std::vector<std::string>& names) {
  const x509::CertificateAuthority ca = x509::MakeRootCa(1, "root", Time{}, 10000h);
  const x509::KeyPairRef key = x509::KeyPair::Derive(1, "leaf");
  x509::CertificateSpec spec;
  spec.sans = names;
  spec.not_before = kBirth;
  spec.not_after = kBirth + kLife;
  envoysim::TlsServer server;
  server.certificate =
      envoysim::CertificateChain::Of({*x509::Certificate::Issue(spec, key->public_key(), *ca.certificate, *ca.key)});
  return server;
}

TEST(GoWords, NameWhatACertificateIsValidFor) {
  EXPECT_EQ(GoTlsRefusal(ServerFor({"istiod.istio-system.svc", "istio-pilot.istio-system.svc"}), "east.example", true,
                         kBirth + 1h),
            "tls: failed to verify certificate: x509: certificate is valid for istiod.istio-system.svc, "
            "istio-pilot.istio-system.svc, not east.example");
}

TEST(GoWords, TellOfNamesBeforeAuthorities) {
  EXPECT_THAT(GoTlsRefusal(ServerFor({"a.example"}), "b.example", false, kBirth + 1h),
              HasSubstr("valid for a.example"));
  EXPECT_THAT(GoTlsRefusal(ServerFor({"*.example"}), "b.example", false, kBirth + 1h),
              HasSubstr("x509: certificate signed by unknown authority"));
}

TEST(GoWords, TellOfTimeFirst) {
  EXPECT_THAT(GoTlsRefusal(ServerFor({"a.example"}), "b.example", true, kBirth + kLife),
              HasSubstr("certificate has expired or is not yet valid: current time 2023-09-06T04:00:00Z is after "
                        "2023-09-06T04:00:00Z"));
  EXPECT_THAT(GoTlsRefusal(ServerFor({"a.example"}), "a.example", false, kBirth - 1h), HasSubstr(" is before "));
}

TEST(GoWords, OfConnectionsAreThoseOfGrpc) {
  EXPECT_EQ(GrpcDialFailure({*IpAddress::Parse("10.0.0.1"), 15012}, "connect: connection refused"),
            "connection error: desc = \"transport: Error while dialing: dial tcp 10.0.0.1:15012: connect: connection "
            "refused\"");
}

}  // namespace
}  // namespace wavetank::sim
