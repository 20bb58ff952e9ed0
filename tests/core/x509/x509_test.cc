#include "core/x509/x509.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "core/base/status.h"
#include "core/x509/der.h"
#include "core/x509/openssl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::x509 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Time kStart{};
constexpr Duration kYear = 24h * 365;
constexpr char kId[] = "spiffe://cluster.local/ns/sample/sa/helloworld";

std::string Hex(std::string_view bytes) {
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}
// By hand: Debian 13's abseil deprecates the function that Debian 12's has.
std::string Bytes(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

// "EC PRIVATE KEY" of a given scalar.
KeyPairRef EcKey(std::string_view curve, std::string_view scalar_hex) {
  const std::string key = der::Sequence(
      {der::SmallInteger(1), der::OctetString(Bytes(scalar_hex)), der::Tlv(der::ContextConstructed(0), curve)});
  return KeyPair::FromPem(ossl::EncodePem("EC PRIVATE KEY", key), "the test's key").value();
}

std::string Signature(std::string_view r_hex, std::string_view s_hex) {
  return Hex(der::Sequence({der::Integer(Bytes(r_hex)), der::Integer(Bytes(s_hex))}));
}

struct Pki {
  CertificateAuthority root = MakeRootCa(1, "Root CA", kStart, 10 * kYear);
  CertificateAuthority cluster1 = MakeIntermediateCa(1, "Intermediate CA cluster1", root, kStart, 2 * kYear);
  CertificateAuthority cluster2 = MakeIntermediateCa(1, "Intermediate CA cluster2", root, kStart, 2 * kYear);
  TrustBundleRef bundle = TrustBundle::Of({root.root});

  static CertificateSpec Workload(Time not_before, Duration ttl) {
    CertificateSpec spec;
    spec.sans = {kId};
    spec.not_before = not_before;
    spec.not_after = not_before + ttl;
    return spec;
  }
  std::vector<CertificateRef> Leaf(const CertificateAuthority& ca, const CertificateSpec& spec,
                                   std::string_view key = "helloworld") const {
    std::vector<CertificateRef> out{
        Certificate::Issue(spec, KeyPair::Derive(1, key)->public_key(), *ca.certificate, *ca.key).value()};
    out.insert(out.end(), ca.chain.begin(), ca.chain.end());
    return out;
  }
};

TEST(KeyPair, SignaturesAreThoseOfRfc6979) {
  const KeyPairRef p256 =
      EcKey(der::oid::kPrime256v1, "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721");
  EXPECT_EQ(Hex(p256->Sign("sample")), Signature("EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
                                                 "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"));
  EXPECT_EQ(Hex(p256->Sign("test")), Signature("F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367",
                                               "019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083"));
  const KeyPairRef p384 = EcKey(der::oid::kSecp384r1,
                                "6B9D3DAD2E1B8C1C05B19875B6659F4DE23C3B667BF297BA9AA47740787137D8"
                                "96D5724E4C70A825F872C9EA60D2EDF5");
  EXPECT_EQ(Hex(p384->Sign("sample")), Signature("94EDBB92A5ECB8AAD4736E56C691916B3F88140666CE9FA7"
                                                 "3D64C4EA95AD133C81A648152E44ACF96E36DD1E80FABE46",
                                                 "99EF4AEB15F178CEA1FE40DB2603138F130E740A19624526"
                                                 "203B6351D0A3A94FA329C145786E679E7B82C71A38628AC8"));
}

TEST(KeyPair, DependsOnSeedAndNameOnly) {
  EXPECT_EQ(KeyPair::Derive(7, "a")->public_key(), KeyPair::Derive(7, "a")->public_key());
  EXPECT_NE(KeyPair::Derive(7, "a")->public_key(), KeyPair::Derive(7, "b")->public_key());
  EXPECT_NE(KeyPair::Derive(7, "a")->public_key(), KeyPair::Derive(8, "a")->public_key());
}

TEST(KeyPair, ExportedKeyReadsBackAsTheSameKey) {
  const KeyPairRef key = KeyPair::Derive(7, "a");
  for (const KeyForm form : {KeyForm::kPkcs8, KeyForm::kOfAlgorithm}) {
    const auto again = KeyPair::FromPem(key->ExportPrivateKeyPem(form), "key");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ((*again)->public_key(), key->public_key());
    EXPECT_EQ((*again)->Sign("x"), key->Sign("x"));
  }
  EXPECT_THAT(key->ExportPrivateKeyPem(), StartsWith("-----BEGIN PRIVATE KEY-----\n"));
  EXPECT_THAT(key->ExportPrivateKeyPem(KeyForm::kOfAlgorithm), StartsWith("-----BEGIN EC PRIVATE KEY-----\n"));
}

TEST(KeyPair, WhatIsNoKeyIsNamedAndNotQuoted) {
  const std::string pem = KeyPair::Derive(7, "a")->ExportPrivateKeyPem();
  const auto message = [](std::string_view text) {
    return std::string(Message(KeyPair::FromPem(text, "key ca-key.pem").status()));
  };
  EXPECT_THAT(message("hello"), StartsWith("key ca-key.pem is no private key: it holds no PEM block"));
  EXPECT_THAT(message(""), HasSubstr("holds no PEM block"));
  EXPECT_THAT(message(pem.substr(0, 60)), HasSubstr("damaged"));
  EXPECT_THAT(message(MakeRootCa(1, "r", kStart, kYear).root->ToPem()), HasSubstr("it is a PEM block \"CERTIFICATE\""));
  EXPECT_THAT(message(ossl::EncodePem("PRIVATE KEY", "nonsense")), HasSubstr("cannot be read"));
  EXPECT_THAT(message(ossl::EncodePem("ENCRYPTED PRIVATE KEY", "x")), HasSubstr("without a passphrase"));
  EXPECT_THAT(message(pem.substr(0, 60)), Not(HasSubstr(pem.substr(30, 20))));
}

// The key is a new one in every run: OpenSSL cannot derive one, and none is kept in the repository.
TEST(KeyPair, RsaKeysSignDeterministicallyToo) {
  ossl::PKey made(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", static_cast<size_t>(2048)));
  ossl::Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey_traditional(bio.get(), made.get(), nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  const long n = BIO_get_mem_data(bio.get(), &data);
  const auto key = KeyPair::FromPem(std::string_view(data, static_cast<size_t>(n)), "key");
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ((*key)->Sign("x"), (*key)->Sign("x"));
  EXPECT_EQ((*key)->ExportPrivateKeyPem(KeyForm::kOfAlgorithm), std::string(data, static_cast<size_t>(n)));
  CertificateSpec spec = Pki::Workload(kStart, 1h);
  spec.is_ca = true;
  spec.subject.common_name = "RSA root";
  const auto root = Certificate::SelfSign(spec, **key);
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_TRUE((*root)->Matches(**key));
  const auto leaf = Certificate::Issue(Pki::Workload(kStart, 1h), KeyPair::Derive(1, "w")->public_key(), **root, **key);
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  EXPECT_TRUE(Verify({*leaf}, *TrustBundle::Of({*root}), kStart).ok());
}

TEST(Certificate, SameSeedGivesTheSameBytes) {
  const Pki a, b;
  EXPECT_EQ(a.root.root->der(), b.root.root->der());
  EXPECT_EQ(a.Leaf(a.cluster1, Pki::Workload(kStart, 24h))[0]->der(),
            b.Leaf(b.cluster1, Pki::Workload(kStart, 24h))[0]->der());
  EXPECT_NE(a.cluster1.certificate->der(), a.cluster2.certificate->der());
}

// Pinned, so that a compiler, an OpenSSL or an edit that changes what a seed means is noticed.
TEST(Certificate, BytesOfSeedOneAreStable) {
  const Pki pki;
  EXPECT_EQ(pki.root.root->fingerprint(), 1371655962235011738u);
  EXPECT_EQ(pki.Leaf(pki.cluster1, Pki::Workload(kStart, 24h))[0]->fingerprint(), 4402406220615379918u);
}

TEST(Certificate, WorkloadCarriesWhatIstiodPutsIn) {
  const Pki pki;
  const CertificateRef leaf = pki.Leaf(pki.cluster1, Pki::Workload(kStart + 1500ms, 24h))[0];
  EXPECT_THAT(leaf->sans().uris, ElementsAre(kId));
  EXPECT_THAT(leaf->sans().dns_names, IsEmpty());
  EXPECT_EQ(leaf->subject(), "");
  EXPECT_EQ(leaf->issuer(), "O=Wavetank, CN=Intermediate CA cluster1");
  EXPECT_EQ(leaf->not_before(), kStart + 1s);
  EXPECT_EQ(leaf->not_after(), kStart + 24h + 1s);
  EXPECT_FALSE(leaf->is_ca());
  EXPECT_TRUE(pki.cluster1.certificate->is_ca());
  EXPECT_TRUE(pki.root.root->self_signed());

  const unsigned char* p = ossl::Bytes(leaf->der());
  const ossl::Cert x(d2i_X509(nullptr, &p, static_cast<long>(leaf->der().size())));
  EXPECT_EQ(X509_get_version(x.get()), 2);
  EXPECT_EQ(X509_get_key_usage(x.get()), static_cast<unsigned>(KU_DIGITAL_SIGNATURE | KU_KEY_ENCIPHERMENT));
  EXPECT_EQ(X509_get_extended_key_usage(x.get()), static_cast<unsigned>(XKU_SSL_SERVER | XKU_SSL_CLIENT));
  const int san = X509_get_ext_by_NID(x.get(), NID_subject_alt_name, -1);
  EXPECT_EQ(X509_EXTENSION_get_critical(X509_get_ext(x.get(), san)), 1);
  EXPECT_EQ(X509_get_extension_flags(x.get()) & (EXFLAG_INVALID | EXFLAG_INVALID_POLICY), 0u);
}

TEST(Certificate, SansOfEveryKindReadBack) {
  const Pki pki;
  CertificateSpec spec = Pki::Workload(kStart, 1h);
  spec.sans = {"istiod.istio-system.svc", "10.1.2.3", "fd00::1", kId};
  const SubjectAltNames sans = pki.Leaf(pki.cluster1, spec)[0]->sans();
  EXPECT_THAT(sans.dns_names, ElementsAre("istiod.istio-system.svc"));
  EXPECT_THAT(sans.ip_addresses, ElementsAre("10.1.2.3", "fd00::1"));
  EXPECT_THAT(sans.uris, ElementsAre(kId));
}

TEST(Certificate, IssuedLeafIsWhatItsBytesSay) {
  const Pki pki;
  CertificateSpec spec = Pki::Workload(kStart + 1500ms, 1h);
  spec.sans = {"istiod.istio-system.svc", "10.1.2.3", "fd00:0:0::1", kId};
  spec.subject = {"istiod", {"a", "b"}};
  const CertificateRef made = pki.Leaf(pki.cluster1, spec)[0];
  const CertificateRef read = Certificate::FromDer(made->der(), "x").value();
  EXPECT_EQ(made->fingerprint(), read->fingerprint());
  EXPECT_EQ(made->serial(), read->serial());
  EXPECT_EQ(made->subject(), read->subject());
  EXPECT_EQ(made->issuer(), read->issuer());
  EXPECT_EQ(made->public_key(), read->public_key());
  EXPECT_EQ(made->sans().uris, read->sans().uris);
  EXPECT_EQ(made->sans().dns_names, read->sans().dns_names);
  EXPECT_EQ(made->sans().ip_addresses, read->sans().ip_addresses);
  EXPECT_EQ(made->not_before(), read->not_before());
  EXPECT_EQ(made->not_after(), read->not_after());
  EXPECT_EQ(made->is_ca(), read->is_ca());
  EXPECT_EQ(made->self_signed(), read->self_signed());
}

TEST(Certificate, DatesAfter2049AreGeneralizedTime) {
  const Pki pki;
  const CertificateRef leaf = pki.Leaf(pki.cluster1, Pki::Workload(kStart, 40 * kYear))[0];
  EXPECT_EQ(Rfc3339(leaf->not_before()), "2023-09-01T00:00:00Z");
  EXPECT_EQ(Rfc3339(leaf->not_after()), "2063-08-22T00:00:00Z");
}

TEST(Certificate, IssuingWithAnotherCasKeyIsRefused) {
  const Pki pki;
  const auto issued = Certificate::Issue(Pki::Workload(kStart, 1h), KeyPair::Derive(1, "w")->public_key(),
                                         *pki.cluster1.certificate, *pki.cluster2.key);
  EXPECT_THAT(std::string(Message(issued.status())), HasSubstr("is not the key of the certificate"));
}

TEST(Certificate, WhatIsNoCertificateIsNamed) {
  const auto message = [](std::string_view text) {
    return std::string(Message(Certificate::FromPem(text, "root-cert.pem").status()));
  };
  const Pki pki;
  const std::string pem = pki.root.root->ToPem();
  EXPECT_THAT(message("not a certificate at all"), StartsWith("root-cert.pem is not a certificate: it holds no PEM"));
  EXPECT_THAT(message(pem.substr(0, pem.size() / 2)), HasSubstr("damaged"));
  EXPECT_THAT(message(absl::StrReplaceAll(pem, {{"M", "!"}})), HasSubstr("damaged"));
  EXPECT_THAT(message(ossl::EncodePem("CERTIFICATE", "nonsense")), HasSubstr("its content is no X.509"));
  EXPECT_THAT(message(ossl::EncodePem("CERTIFICATE", pki.root.root->der() + "x")), HasSubstr("1 bytes follow"));
  EXPECT_THAT(message(pki.root.key->ExportPrivateKeyPem()), HasSubstr("it holds a PEM block \"PRIVATE KEY\""));
  EXPECT_THAT(message(pem + ossl::EncodePem("CERTIFICATE", "x")), HasSubstr("root-cert.pem, certificate no. 2,"));
}

// Every prefix and every single flipped byte is either refused or reads as some certificate: no crash, and never the
// original's signature over other content.
TEST(Certificate, DamagedBytesNeverVerify) {
  const Pki pki;
  const std::vector<CertificateRef> chain = pki.Leaf(pki.cluster1, Pki::Workload(kStart, 24h));
  const std::string& der = chain[0]->der();
  for (size_t i = 0; i < der.size(); ++i) {
    EXPECT_FALSE(Certificate::FromDer(der.substr(0, i), "x").ok()) << i;
    std::string flipped = der;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x41);
    const auto parsed = Certificate::FromDer(flipped, "x");
    if (!parsed.ok()) continue;
    EXPECT_FALSE(Verify({*parsed, chain[1]}, *pki.bundle, kStart).ok()) << i;
  }
}

TEST(Verify, ClustersTrustEachOtherThroughTheCommonRoot) {
  const Pki pki;
  EXPECT_TRUE(Verify(pki.Leaf(pki.cluster1, Pki::Workload(kStart, 24h)), *pki.bundle, kStart).ok());
  EXPECT_TRUE(
      Verify(pki.Leaf(pki.cluster2, Pki::Workload(kStart, 24h)), *pki.bundle, kStart, Purpose::kServerAuth).ok());
  EXPECT_TRUE(
      Verify(pki.Leaf(pki.cluster2, Pki::Workload(kStart, 24h)), *pki.bundle, kStart, Purpose::kClientAuth).ok());
}

TEST(Verify, AnotherRootIsUnknown) {
  const Pki pki;
  const CertificateAuthority other = MakeRootCa(2, "Root CA", kStart, kYear);
  const VerifyResult result =
      Verify(pki.Leaf(pki.cluster1, Pki::Workload(kStart, 24h)), *TrustBundle::Of({other.root}), kStart);
  EXPECT_EQ(result.error, VerifyError::kUnknownCa);
  EXPECT_EQ(result.openssl_error, "X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY");
  EXPECT_EQ(result.tls_error, "CERTIFICATE_VERIFY_FAILED");
  EXPECT_EQ(result.tls_alert, "unknown_ca");
}

TEST(Verify, MissingIntermediateIsUnknown) {
  const Pki pki;
  const std::vector<CertificateRef> chain = pki.Leaf(pki.cluster1, Pki::Workload(kStart, 24h));
  EXPECT_EQ(Verify({chain[0]}, *pki.bundle, kStart).error, VerifyError::kUnknownCa);
  // ... unless the intermediate itself is trusted.
  EXPECT_TRUE(Verify({chain[0]}, *TrustBundle::Of({pki.cluster1.certificate}), kStart).ok());
}

TEST(Verify, ValidityIsHalfOpenInVirtualTime) {
  const Pki pki;
  const std::vector<CertificateRef> chain = pki.Leaf(pki.cluster1, Pki::Workload(kStart + 10s, 1h));
  const VerifyResult early = Verify(chain, *pki.bundle, kStart + 10s - 1ns);
  EXPECT_EQ(early.error, VerifyError::kNotYetValid);
  EXPECT_EQ(early.tls_alert, "certificate_expired");
  EXPECT_EQ(early.holds_until, kStart + 10s);
  EXPECT_TRUE(Verify(chain, *pki.bundle, kStart + 10s).ok());
  const VerifyResult last = Verify(chain, *pki.bundle, kStart + 10s + 1h - 1ns);
  EXPECT_TRUE(last.ok()) << last.reason;
  EXPECT_EQ(last.holds_from, kStart + 10s);
  EXPECT_EQ(last.holds_until, kStart + 10s + 1h);
  const VerifyResult late = Verify(chain, *pki.bundle, kStart + 10s + 1h);
  EXPECT_EQ(late.error, VerifyError::kExpired);
  EXPECT_EQ(late.reason, "certificate has expired");
  EXPECT_EQ(late.tls_alert, "certificate_expired");
}

TEST(Verify, ExpiredIntermediateFailsAValidLeaf) {
  const Pki pki;
  const auto leaf = pki.Leaf(pki.cluster1, Pki::Workload(kStart + 2 * kYear - 1h, 24h));
  EXPECT_TRUE(Verify(leaf, *pki.bundle, kStart + 2 * kYear - 1s).ok());
  EXPECT_EQ(Verify(leaf, *pki.bundle, kStart + 2 * kYear).error, VerifyError::kExpired);
}

TEST(Verify, LeafCannotIssue) {
  const Pki pki;
  const KeyPairRef key = KeyPair::Derive(1, "helloworld");
  std::vector<CertificateRef> chain = pki.Leaf(pki.cluster1, Pki::Workload(kStart, 24h));
  // istiod's leaves have no name, so a certificate below one is found by its key id or not at all.
  CertificateSpec named = Pki::Workload(kStart, 24h);
  named.subject.common_name = "leaf";
  chain = pki.Leaf(pki.cluster1, named);
  const CertificateRef forged =
      Certificate::Issue(Pki::Workload(kStart, 1h), KeyPair::Derive(1, "evil")->public_key(), *chain[0], *key).value();
  chain.insert(chain.begin(), forged);
  EXPECT_FALSE(Verify(chain, *pki.bundle, kStart).ok());
}

TEST(Verify, PurposeIsChecked) {
  const Pki pki;
  CertificateSpec spec = Pki::Workload(kStart, 24h);
  spec.client_auth = false;
  const auto chain = pki.Leaf(pki.cluster1, spec);
  EXPECT_TRUE(Verify(chain, *pki.bundle, kStart, Purpose::kServerAuth).ok());
  EXPECT_EQ(Verify(chain, *pki.bundle, kStart, Purpose::kClientAuth).error, VerifyError::kWrongPurpose);
}

TEST(Verify, NoCertificateAndNoRootsAreFailures) {
  const Pki pki;
  EXPECT_EQ(Verify({}, *pki.bundle, kStart).tls_alert, "certificate_required");
  EXPECT_EQ(Verify(pki.Leaf(pki.cluster1, Pki::Workload(kStart, 1h)), *TrustBundle::Of({}), kStart).error,
            VerifyError::kUnknownCa);
}

TEST(VerificationCache, AsksAgainOnlyWhenAnAnswerMayHaveChanged) {
  const Pki pki;
  VerificationCache cache;
  const auto chain = pki.Leaf(pki.cluster1, Pki::Workload(kStart, 1h));
  EXPECT_TRUE(cache.Verify(chain, *pki.bundle, kStart).ok());
  EXPECT_TRUE(cache.Verify(chain, *pki.bundle, kStart + 1h - 1ns).ok());
  EXPECT_EQ(cache.misses(), 1u);
  EXPECT_FALSE(cache.Verify(chain, *pki.bundle, kStart + 1h).ok());
  EXPECT_EQ(cache.misses(), 2u);
}

TEST(TrustBundle, DropsDuplicatesAndKeepsOrder) {
  const CertificateAuthority a = MakeRootCa(1, "a", kStart, kYear), b = MakeRootCa(1, "b", kStart, kYear);
  const auto bundle = TrustBundle::FromPem(b.root->ToPem() + a.root->ToPem() + b.root->ToPem(), "roots");
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  ASSERT_EQ((*bundle)->roots().size(), 2u);
  EXPECT_EQ((*bundle)->roots()[0]->der(), b.root->der());
  EXPECT_EQ((*bundle)->fingerprint(), TrustBundle::Of({b.root, a.root})->fingerprint());
  EXPECT_NE((*bundle)->fingerprint(), TrustBundle::Of({a.root, b.root})->fingerprint());
}

TEST(Csr, CarriesKeyNameAndIdentity) {
  const KeyPairRef key = KeyPair::Derive(1, "w");
  const auto csr = ParseCsr(CreateCsr(*key, {"", {"org"}}, {kId}), "the CSR");
  ASSERT_TRUE(csr.ok()) << csr.status();
  EXPECT_EQ(csr->public_key, key->public_key());
  EXPECT_THAT(csr->subject.organizations, ElementsAre("org"));
  EXPECT_THAT(csr->sans.uris, ElementsAre(kId));
}

TEST(Csr, ReadingItBackIsWhatItsBytesSay) {
  const KeyPairRef key = KeyPair::Derive(1, "w");
  const std::string pem = CreateCsr(*key, {"name", {"org", "b"}}, {kId, "10.1.2.3", "fd00:0:0::1", "a.svc"});
  const auto remembered = ParseCsr(pem, "the CSR"), read = ParseCsr("as from elsewhere\n" + pem, "the CSR");
  ASSERT_TRUE(remembered.ok() && read.ok());
  EXPECT_EQ(remembered->public_key, read->public_key);
  EXPECT_EQ(remembered->subject.common_name, read->subject.common_name);
  EXPECT_EQ(remembered->subject.organizations, read->subject.organizations);
  EXPECT_EQ(remembered->sans.uris, read->sans.uris);
  EXPECT_EQ(remembered->sans.dns_names, read->sans.dns_names);
  EXPECT_EQ(remembered->sans.ip_addresses, read->sans.ip_addresses);
}

TEST(Csr, WhatIsNoRequestIsNamed) {
  const KeyPairRef key = KeyPair::Derive(1, "w");
  const std::string pem = CreateCsr(*key, {}, {kId});
  const auto message = [](std::string_view text) { return std::string(Message(ParseCsr(text, "the CSR").status())); };
  EXPECT_THAT(message("x"), HasSubstr("the CSR is no certificate signing request"));
  EXPECT_THAT(message(MakeRootCa(1, "r", kStart, kYear).root->ToPem()), HasSubstr("no certificate signing request"));
  EXPECT_THAT(message(ossl::EncodePem("CERTIFICATE REQUEST", "x")), HasSubstr("no PKCS#10"));
  // Another key's public half in place of the signer's.
  std::string_view text = pem;
  bool malformed = false;
  std::string der = ossl::NextPemBlock(text, malformed)->bytes;
  const std::string other = KeyPair::Derive(1, "other")->public_key();
  der.replace(der.find(key->public_key()), other.size(), other);
  EXPECT_THAT(message(ossl::EncodePem("CERTIFICATE REQUEST", der)), HasSubstr("is not signed by the key"));
}

TEST(CaCerts, SecretDataVerifiesAndHasIstiosKeys) {
  const Pki pki;
  const auto data = CaCertsSecretData(pki.cluster1);
  ASSERT_EQ(data.size(), 4u);
  const auto chain = ParseCertificates(data.at("cert-chain.pem"), "cert-chain.pem");
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ(chain->size(), 2u);
  EXPECT_TRUE(Verify(*chain, **TrustBundle::FromPem(data.at("root-cert.pem"), "root"), kStart).ok());
  EXPECT_TRUE((*chain)[0]->Matches(**KeyPair::FromPem(data.at("ca-key.pem"), "ca-key.pem")));
}

}  // namespace
}  // namespace wavetank::x509
