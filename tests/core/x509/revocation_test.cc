// Lists of revoked certificates and the other rules that few ask for.
#include "core/x509/revocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/x509/calendar.h"

namespace wavetank::x509 {
namespace {

using ::testing::HasSubstr;

Time Year(int year) { return FromUnixSeconds(FromCivil({year, 1, 1, 0, 0, 0})); }

class RevocationTest : public ::testing::Test {
 protected:
  RevocationTest() {
    root = MakeRootCa(1, "root", Year(2020), Year(2060) - Year(2020));
    root.root = root.certificate = WithCrlSign(*root.certificate, *root.key).value();
    ca = MakeIntermediateCa(1, "ca", root, Year(2020), Year(2060) - Year(2020));
    ca.certificate = WithCrlSign(*ca.certificate, *root.key).value();
    CertificateSpec spec;
    spec.sans = {"spiffe://a"};
    spec.not_before = Year(2021);
    spec.not_after = Year(2040);
    leaf = Certificate::Issue(spec, KeyPair::Derive(1, "leaf")->public_key(), *ca.certificate, *ca.key).value();
    bundle = TrustBundle::Of({root.certificate});
  }
  VerifyResult Verified(const VerifyRules& rules, int year = 2030) {
    return Verify({leaf, ca.certificate}, *bundle, Year(year), Purpose::kServerAuth, rules);
  }
  std::string Lists(const std::vector<CertificateRef>& leaves, const std::vector<CertificateRef>& authorities,
                    int until = 2050) {
    return MakeRevocationList(*ca.certificate, *ca.key, leaves, Year(2022), Year(until)) +
           MakeRevocationList(*root.certificate, *root.key, authorities, Year(2022), Year(until));
  }
  static VerifyRules By(const std::string& pem) { return {RevocationList::FromPem(pem, "the test's").value()}; }

  CertificateAuthority root, ca;
  CertificateRef leaf;
  TrustBundleRef bundle;
};

TEST_F(RevocationTest, ListsThatRevokeNothingLetAllPass) { EXPECT_TRUE(Verified(By(Lists({}, {}))).ok()); }

TEST_F(RevocationTest, ARevokedLeafIsRefusedAndThePeerIsToldSo) {
  const VerifyResult result = Verified(By(Lists({leaf}, {})));
  EXPECT_EQ(result.openssl_error, "X509_V_ERR_CERT_REVOKED");
  EXPECT_EQ(result.tls_alert, "certificate_revoked");
  EXPECT_EQ(result.depth, 0);
}

TEST_F(RevocationTest, ARevokedIntermediateCountsUnlessLeavesAloneAreLookedUp) {
  VerifyRules rules = By(Lists({}, {ca.certificate}));
  EXPECT_EQ(Verified(rules).depth, 1);
  rules.leaf_only = true;
  EXPECT_TRUE(Verified(rules).ok());
}

TEST_F(RevocationTest, WithoutAListOfItsIssuerACertificateIsRefused) {
  EXPECT_EQ(Verified(By(MakeRevocationList(*root.certificate, *root.key, {}, Year(2022), Year(2050)))).openssl_error,
            "X509_V_ERR_UNABLE_TO_GET_CRL");
}

TEST_F(RevocationTest, AListThatIsOutOfDateRefusesAll) {
  EXPECT_EQ(Verified(By(Lists({}, {}, 2025))).openssl_error, "X509_V_ERR_CRL_HAS_EXPIRED");
}

TEST_F(RevocationTest, TextsThatAreNoListsAreErrorsThatNameThem) {
  for (const char* text : {"-----BEGIN X509 CRL-----\n!\n-----END X509 CRL-----\n",
                           "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"}) {
    const auto read = RevocationList::FromPem(text, "Secret a/b, key crl");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("Secret a/b, key crl is not a revocation list"));
  }
}

TEST_F(RevocationTest, ATextWithoutListsKnowsNoIssuer) {
  EXPECT_EQ(Verified(By("nothing")).openssl_error, "X509_V_ERR_UNABLE_TO_GET_CRL");
}

TEST_F(RevocationTest, AnAuthorityWithoutTheRightToSignListsSignsNone) {
  const CertificateAuthority plain = MakeRootCa(1, "root", Year(2020), Year(2060) - Year(2020));
  const TrustBundleRef trusted = TrustBundle::Of({plain.certificate});
  const VerifyResult result =
      Verify({leaf, ca.certificate}, *trusted, Year(2030), Purpose::kServerAuth, By(Lists({}, {})));
  EXPECT_EQ(result.reason, "key usage does not include CRL signing");
}

TEST_F(RevocationTest, DatesDoNotCountWhereTheyAreForgiven) {
  EXPECT_EQ(Verified({}, 2045).error, VerifyError::kExpired);
  VerifyRules rules;
  rules.ignores_dates = true;
  EXPECT_TRUE(Verified(rules, 2045).ok());
}

TEST_F(RevocationTest, AChainMayBeTooDeep) {
  VerifyRules rules;
  rules.max_depth = 1;
  EXPECT_TRUE(Verified(rules).ok());
  rules.max_depth = 0;
  EXPECT_EQ(Verified(rules).openssl_error, "X509_V_ERR_CERT_CHAIN_TOO_LONG");
}

}  // namespace
}  // namespace wavetank::x509
