// Keys and X.509 certificates that derive from a seed: the same seed, names and virtual times give the same bytes on
// every machine. Keys are ECDSA P-256, signatures deterministic (RFC 6979); chains are verified by OpenSSL at an
// instant of virtual time.
//
// All objects are immutable and shared. Everything that comes from outside (PEM, DER) is hostile until parsed; a bad
// one is InvalidArgument with one message that says what was expected. Private keys never appear in a message, and
// leave a KeyPair only through ExportPrivateKeyPem().
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/time.h"

namespace wavetank::x509 {

using Sha256Digest = std::array<uint8_t, 32>;
Sha256Digest Sha256(std::string_view bytes);

// Identity of some bytes for caches: the first 64 bits of their SHA-256. Equal bytes have equal fingerprints; an
// attacker who chooses both of two inputs could collide them with 2^32 work, which nothing here guards against.
using Fingerprint = uint64_t;
Fingerprint FingerprintOf(std::string_view bytes);

class KeyPair;
class Certificate;
class TrustBundle;
using KeyPairRef = std::shared_ptr<const KeyPair>;
using CertificateRef = std::shared_ptr<const Certificate>;
using TrustBundleRef = std::shared_ptr<const TrustBundle>;

// How a private key is written: PKCS#8 for all, or as its algorithm's own standard says, SEC 1 ("EC PRIVATE KEY") or
// PKCS#1 ("RSA PRIVATE KEY").
enum class KeyForm : uint8_t { kPkcs8, kOfAlgorithm };

// A private key with its public one. Derived keys are P-256; RSA, P-256 and P-384 can be read from PEM.
class KeyPair {
 public:
  // The key of `name` in a world of this seed. About 20 us.
  static KeyPairRef Derive(uint64_t seed, std::string_view name);
  // PKCS#8, SEC 1 ("EC PRIVATE KEY") or PKCS#1 ("RSA PRIVATE KEY"). `what` names the input in the message.
  // InvalidArgument: it is none of them, or damaged.
  static absl::StatusOr<KeyPairRef> FromPem(std::string_view pem, std::string_view what);

  virtual ~KeyPair() = default;
  KeyPair(const KeyPair&) = delete;
  KeyPair& operator=(const KeyPair&) = delete;

  // SubjectPublicKeyInfo, DER.
  const std::string& public_key() const { return public_key_; }

  // The signature's AlgorithmIdentifier, DER: ecdsa-with-SHA256/384 or sha256WithRSAEncryption.
  virtual std::string_view signature_algorithm() const = 0;
  // A signature over `message` (hashed inside), as X.509 carries it. Deterministic.
  virtual std::string Sign(std::string_view message) const = 0;

  // The key itself, in PEM. Only for Secrets and SDS; never for logs.
  virtual std::string ExportPrivateKeyPem(KeyForm form = KeyForm::kPkcs8) const = 0;

 protected:
  explicit KeyPair(std::string public_key);

 private:
  std::string public_key_;
};

struct Subject {
  std::string common_name;
  std::vector<std::string> organizations;
  bool empty() const { return common_name.empty() && organizations.empty(); }
};

struct SubjectAltNames {
  std::vector<std::string> uris, dns_names;
  std::vector<std::string> ip_addresses;  // as text
};

// What to put into a certificate. Extensions and their order are those of Go's x509.CreateCertificate with istiod's
// template (istiod: security/pkg/pki/util/generate_cert.go).
struct CertificateSpec {
  Subject subject;
  // "spiffe://..." becomes a URI, an IP address an iPAddress, anything else a dNSName; the extension is critical.
  std::vector<std::string> sans;
  // Seconds count; what is below is cut off.
  Time not_before{}, not_after{};
  bool is_ca = false;
  bool server_auth = true, client_auth = true;  // extended key usages of a leaf
};

// The time by which istiod lets a workload certificate's validity begin earlier (ClockSkewGracePeriod).
inline constexpr Duration kClockSkewGracePeriod = 2min;

class Certificate {
 public:
  // InvalidArgument if the text is none. `what` names the input in messages, e.g. "Secret istio-system/cacerts, key
  // root-cert.pem".
  static absl::StatusOr<CertificateRef> FromDer(std::string_view der, std::string_view what);
  static absl::StatusOr<CertificateRef> FromPem(std::string_view pem, std::string_view what);

  // Signs `spec` with the issuer's key. The serial number derives from everything that the certificate says.
  // InvalidArgument: it would end before it begins, or `issuer_key` is not the key of `issuer`.
  static absl::StatusOr<CertificateRef> SelfSign(const CertificateSpec& spec, const KeyPair& key);
  static absl::StatusOr<CertificateRef> Issue(const CertificateSpec& spec, std::string_view public_key,
                                              const Certificate& issuer, const KeyPair& issuer_key);
  ~Certificate();
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;

  const std::string& der() const { return der_; }
  std::string ToPem() const;
  Fingerprint fingerprint() const { return fingerprint_; }

  const std::string& serial() const { return serial_; }  // lower-case hex, no leading zeros
  // One line each, e.g. "O=Wavetank, CN=Root CA"; empty for an empty name.
  const std::string& subject() const { return subject_; }
  const std::string& issuer() const { return issuer_; }
  const SubjectAltNames& sans() const { return sans_; }
  const std::string& public_key() const { return public_key_; }  // SubjectPublicKeyInfo, DER
  // Valid for not_before <= t < not_after. Dates beyond Time's range (292 years) are cut to it.
  Time not_before() const { return not_before_; }
  Time not_after() const { return not_after_; }
  bool is_ca() const { return is_ca_; }
  bool self_signed() const { return subject_der_ == issuer_der_; }
  bool Matches(const KeyPair& key) const { return key.public_key() == public_key_; }

 private:
  friend class TrustBundle;
  friend struct VerifierAccess;
  Certificate();
  // Self-signed if there is no issuer.
  static absl::StatusOr<CertificateRef> Sign(const CertificateSpec& spec, std::string_view public_key,
                                             const Certificate* issuer, const KeyPair& key);

  std::string der_, serial_, subject_, issuer_, public_key_, subject_der_, issuer_der_, subject_key_id_;
  SubjectAltNames sans_;
  Time not_before_{}, not_after_{};
  bool is_ca_ = false;
  Fingerprint fingerprint_ = 0;
  mutable std::shared_ptr<void> openssl_;  // X509, parsed when first needed for verification; kept for CAs only
};

// All certificates of a PEM text, in order; InvalidArgument if there is none or one cannot be read.
absl::StatusOr<std::vector<CertificateRef>> ParseCertificates(std::string_view pem, std::string_view what);
std::string ToPem(absl::Span<const CertificateRef> certificates);

// Certificates that end a chain. Any of them does, self-signed or not: Envoy since 1.23 and Go's CertPool both take
// an intermediate CA for a trust anchor.
class TrustBundle {
 public:
  // Duplicates are dropped, the order of the rest is kept.
  static TrustBundleRef Of(std::vector<CertificateRef> roots);
  // InvalidArgument: as ParseCertificates().
  static absl::StatusOr<TrustBundleRef> FromPem(std::string_view pem, std::string_view what);
  ~TrustBundle();

  const std::vector<CertificateRef>& roots() const { return roots_; }
  Fingerprint fingerprint() const { return fingerprint_; }
  std::string ToPem() const { return x509::ToPem(roots_); }

 private:
  friend struct VerifierAccess;
  explicit TrustBundle(std::vector<CertificateRef> roots);

  std::vector<CertificateRef> roots_;
  Fingerprint fingerprint_ = 0;
  mutable std::shared_ptr<void> store_;  // X509_STORE, made when first needed
};

enum class VerifyError : uint8_t {
  kNone,
  kExpired,       // some certificate of the chain
  kNotYetValid,   // some certificate of the chain
  kUnknownCa,     // no chain to the bundle
  kBadSignature,  // a signature does not fit the issuer's key
  kNotACa,        // an issuer is no CA
  kWrongPurpose,  // the leaf may not be used so
  kEmpty,         // no certificate was presented, or the bundle is empty
  kOther,
};

enum class Purpose : uint8_t { kAny, kServerAuth, kClientAuth };

struct VerifyResult {
  VerifyError error = VerifyError::kNone;
  std::string openssl_error;  // "X509_V_ERR_CERT_HAS_EXPIRED"
  std::string reason;         // OpenSSL's words: "certificate has expired"; empty if ok
  int depth = 0;              // of the certificate at fault: 0 is the leaf
  // What Envoy's %TRANSPORT_FAILURE_REASON% names at the side that refuses, and the alert its peer gets
  // ("unknown_ca", "certificate_expired", "bad_certificate", ...).
  std::string tls_error;  // "CERTIFICATE_VERIFY_FAILED"
  std::string tls_alert;
  // The result holds for t in [holds_from, holds_until).
  Time holds_from{}, holds_until{};
  bool ok() const { return error == VerifyError::kNone; }
};

// Verifies `chain` (leaf first, intermediates in any order) against `bundle` at `now`. About 0.3 ms.
VerifyResult Verify(absl::Span<const CertificateRef> chain, const TrustBundle& bundle, Time now,
                    Purpose purpose = Purpose::kAny);

// Remembers results for as long as they hold. The memory is bounded: when `capacity` results are kept, all are
// forgotten.
class VerificationCache {
 public:
  explicit VerificationCache(size_t capacity = 65536) : capacity_(capacity) {}
  const VerifyResult& Verify(absl::Span<const CertificateRef> chain, const TrustBundle& bundle, Time now,
                             Purpose purpose = Purpose::kAny);
  size_t misses() const { return misses_; }

 private:
  using Key = std::tuple<Fingerprint, Fingerprint, Purpose>;
  std::map<Key, VerifyResult> results_;
  size_t capacity_;
  size_t misses_ = 0;
};

Fingerprint FingerprintOf(absl::Span<const CertificateRef> chain);

// A certificate signing request whose signature was verified.
struct CertificateRequest {
  Subject subject;
  SubjectAltNames sans;
  std::string public_key;  // SubjectPublicKeyInfo, DER
};

// PEM. istiod: security/pkg/pki/util/generate_csr.go.
std::string CreateCsr(const KeyPair& key, const Subject& subject, const std::vector<std::string>& sans);
// InvalidArgument: it cannot be read, or its signature is not that of its key.
absl::StatusOr<CertificateRequest> ParseCsr(std::string_view pem, std::string_view what);

// "2023-09-01T00:00:00Z"
std::string Rfc3339(Time time);

// A chain of one world's CAs, as Istio's guide "Plug in CA Certificates" makes them.
struct CertificateAuthority {
  KeyPairRef key;
  CertificateRef certificate;
  std::vector<CertificateRef> chain;  // certificate, then its issuers up to but without the root
  CertificateRef root;
};

// Both valid from `not_before` for `validity`. Names key the derivation: equal (seed, name) are equal keys.
CertificateAuthority MakeRootCa(uint64_t seed, std::string_view name, Time not_before, Duration validity);
CertificateAuthority MakeIntermediateCa(uint64_t seed, std::string_view name, const CertificateAuthority& parent,
                                        Time not_before, Duration validity);

// The data of a `cacerts` Secret: ca-cert.pem, ca-key.pem, root-cert.pem, cert-chain.pem (not base64).
std::map<std::string, std::string> CaCertsSecretData(const CertificateAuthority& ca);

}  // namespace wavetank::x509
