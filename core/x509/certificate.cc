// Certificates: reading and issuing.
#include <algorithm>
#include <ctime>

#include "core/x509/calendar.h"
#include "core/x509/der.h"
#include "core/x509/hash.h"
#include "core/x509/made_here.h"
#include "core/x509/names.h"
#include "core/x509/openssl.h"
#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::x509 {
namespace {

bool ReadTime(const ASN1_TIME* time, Time& out) {
  std::tm tm{};
  if (ASN1_TIME_to_tm(time, &tm) != 1) return false;
  out = FromUnixSeconds(FromCivil({tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec}));
  return true;
}

// Go sets it to the SHA-1 of the public key's bits for CAs.
std::string SubjectKeyId(std::string_view public_key) {
  const unsigned char* p = ossl::Bytes(public_key);
  X509_PUBKEY* parsed = d2i_X509_PUBKEY(nullptr, &p, static_cast<long>(public_key.size()));
  if (parsed == nullptr) {
    ERR_clear_error();
    return {};
  }
  const unsigned char* bits = nullptr;
  int size = 0;
  X509_PUBKEY_get0_param(nullptr, &bits, &size, nullptr, parsed);
  std::string out(SHA_DIGEST_LENGTH, '\0');
  SHA1(bits, static_cast<size_t>(size), ossl::Bytes(out));
  X509_PUBKEY_free(parsed);
  return out;
}

struct Issuer {
  std::string_view name;    // DER
  std::string_view key_id;  // empty: none is written
};

struct TbsCertificate {
  std::string der;
  std::string serial;   // big-endian
  std::string subject;  // DER
  std::string subject_key_id;
};

TbsCertificate ToBeSigned(const CertificateSpec& spec, std::string_view public_key, const Issuer& issuer,
                          std::string_view algorithm) {
  TbsCertificate out;
  // Key usages: certSign for a CA, digitalSignature and keyEncipherment for a leaf.
  std::string extensions =
      EncodeExtension(der::oid::kKeyUsage, true, spec.is_ca ? der::BitString("\x04", 2) : der::BitString("\xa0", 5));
  if (!spec.is_ca && (spec.server_auth || spec.client_auth)) {
    std::string usages;
    if (spec.server_auth) usages += der::oid::kServerAuth;
    if (spec.client_auth) usages += der::oid::kClientAuth;
    extensions += EncodeExtension(der::oid::kExtendedKeyUsage, false, der::Tlv(der::kSequence, usages));
  }
  const std::string yes = spec.is_ca ? der::Tlv(der::kBoolean, "\xff") : std::string();
  extensions += EncodeExtension(der::oid::kBasicConstraints, true, der::Tlv(der::kSequence, yes));
  if (spec.is_ca) {
    out.subject_key_id = SubjectKeyId(public_key);
    extensions += EncodeExtension(der::oid::kSubjectKeyId, false, der::OctetString(out.subject_key_id));
  }
  if (!issuer.key_id.empty()) {
    extensions +=
        EncodeExtension(der::oid::kAuthorityKeyId, false, der::Sequence({der::Tlv(der::Context(0), issuer.key_id)}));
  }
  if (!spec.sans.empty()) extensions += EncodeSans(spec.sans);

  out.subject = EncodeName(spec.subject);
  const std::string validity = der::Sequence({der::DateTime(spec.not_before), der::DateTime(spec.not_after)});
  const std::string wrapped = der::Tlv(der::ContextConstructed(3), der::Tlv(der::kSequence, extensions));
  // 128 bits, as istiod draws them. Here they follow from what the certificate says, so a second certificate with the
  // same serial is the same certificate.
  out.serial = Hash(HashKind::kSha256,
                    {"wavetank serial", issuer.name, issuer.key_id, out.subject, validity, public_key, wrapped});
  out.serial.resize(16);
  out.serial[0] = static_cast<char>(out.serial[0] | 0x01);  // never zero
  static const std::string kVersion3 = der::Tlv(der::ContextConstructed(0), der::SmallInteger(2));
  out.der = der::Sequence(
      {kVersion3, der::Integer(out.serial), algorithm, issuer.name, validity, out.subject, public_key, wrapped});
  return out;
}

std::string HexWithoutLeadingZeros(std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    for (const int nibble : {byte >> 4, byte & 15}) {
      if (!out.empty() || nibble != 0) out.push_back("0123456789abcdef"[static_cast<size_t>(nibble)]);
    }
  }
  return out;
}

}  // namespace

Certificate::Certificate() = default;
Certificate::~Certificate() = default;

absl::StatusOr<CertificateRef> Certificate::FromDer(std::string_view der, std::string_view what) {
  const unsigned char* p = ossl::Bytes(der);
  ossl::Cert x(d2i_X509(nullptr, &p, static_cast<long>(der.size())));
  if (x == nullptr) {
    ERR_clear_error();
    return absl::InvalidArgumentError(fmt::format("{} is not a certificate: its content is no X.509", what));
  }
  if (p != ossl::Bytes(der) + der.size()) {
    return absl::InvalidArgumentError(fmt::format("{} is not a certificate: {} bytes follow it", what,
                                                  static_cast<size_t>(ossl::Bytes(der) + der.size() - p)));
  }
  std::shared_ptr<Certificate> out(new Certificate);
  out->der_ = std::string(der);
  out->fingerprint_ = FingerprintOf(der);
  if (!ReadTime(X509_get0_notBefore(x.get()), out->not_before_) ||
      !ReadTime(X509_get0_notAfter(x.get()), out->not_after_)) {
    return absl::InvalidArgumentError(fmt::format("{} is not a valid certificate: its validity holds no date", what));
  }
  X509_PUBKEY* public_key = X509_get_X509_PUBKEY(x.get());
  out->public_key_ = ossl::Der<const X509_PUBKEY>(i2d_X509_PUBKEY, public_key);
  if (X509_PUBKEY_get0(public_key) == nullptr) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        fmt::format("{} is not a valid certificate: its public key cannot be read", what));
  }
  ossl::BigNum serial(ASN1_INTEGER_to_BN(X509_get0_serialNumber(x.get()), nullptr));
  if (serial != nullptr) {
    std::string bytes(static_cast<size_t>(BN_num_bytes(serial.get())), '\0');
    BN_bn2bin(serial.get(), ossl::Bytes(bytes));
    out->serial_ = HexWithoutLeadingZeros(bytes);
  }
  const X509_NAME* subject = X509_get_subject_name(x.get());
  const X509_NAME* issuer = X509_get_issuer_name(x.get());
  out->subject_ = NameText(subject);
  out->issuer_ = NameText(issuer);
  out->subject_der_ = ossl::Der<const X509_NAME>(i2d_X509_NAME, subject);
  out->issuer_der_ = ossl::Der<const X509_NAME>(i2d_X509_NAME, issuer);
  int critical = 0;
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(x.get(), NID_subject_alt_name, &critical, nullptr));
  // -1: there is none; -2: there are two; anything else with no result: it cannot be decoded.
  const bool readable = names == nullptr ? critical == -1 : ReadSans(names, out->sans_);
  GENERAL_NAMES_free(names);
  if (!readable) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        fmt::format("{} is not a valid certificate: its subjectAltName cannot be read", what));
  }
  if (const ASN1_OCTET_STRING* id = X509_get0_subject_key_id(x.get())) {
    out->subject_key_id_.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(id)),
                                static_cast<size_t>(ASN1_STRING_length(id)));
  }
  out->is_ca_ = X509_check_ca(x.get()) > 0;
  if (out->is_ca_) out->openssl_ = std::shared_ptr<X509>(x.release(), X509_free);
  ERR_clear_error();
  return out;
}

absl::StatusOr<CertificateRef> Certificate::FromPem(std::string_view pem, std::string_view what) {
  absl::StatusOr<std::vector<CertificateRef>> all = ParseCertificates(pem, what);
  if (!all.ok()) return all.status();
  return all->front();
}

std::string Certificate::ToPem() const { return ossl::EncodePem("CERTIFICATE", der_); }

absl::StatusOr<CertificateRef> Certificate::Sign(const CertificateSpec& spec, std::string_view public_key,
                                                 const Certificate* issuer, const KeyPair& key) {
  if (spec.not_after <= spec.not_before) {
    return absl::InvalidArgumentError(fmt::format("a certificate cannot be valid from {} until {}",
                                                  Rfc3339(spec.not_before), Rfc3339(spec.not_after)));
  }
  const std::string own_name = EncodeName(spec.subject);
  const Issuer by = issuer == nullptr ? Issuer{own_name, {}} : Issuer{issuer->subject_der_, issuer->subject_key_id_};
  TbsCertificate tbs = ToBeSigned(spec, public_key, by, key.signature_algorithm());
  const std::string whole = der::Sequence({tbs.der, key.signature_algorithm(), der::BitString(key.Sign(tbs.der))});
  if (spec.is_ca) return FromDer(whole, "the issued certificate");

  // A leaf is not read back: that would cost three times what making it does (FromDer agrees, as a test holds).
  std::shared_ptr<Certificate> out(new Certificate);
  out->der_ = whole;
  out->fingerprint_ = FingerprintOf(whole);
  out->serial_ = HexWithoutLeadingZeros(tbs.serial);
  out->subject_der_ = std::move(tbs.subject);
  out->issuer_der_ = by.name;
  out->subject_ = NameText(out->subject_der_);
  out->issuer_ = issuer == nullptr ? out->subject_ : issuer->subject_;
  out->public_key_ = public_key;
  out->sans_ = SortSans(spec.sans);
  out->not_before_ = FromUnixSeconds(UnixSeconds(spec.not_before));
  out->not_after_ = FromUnixSeconds(UnixSeconds(spec.not_after));
  MadeHere<CertificateRef>().Keep(whole, out);
  return out;
}

absl::StatusOr<CertificateRef> Certificate::SelfSign(const CertificateSpec& spec, const KeyPair& key) {
  return Sign(spec, key.public_key(), nullptr, key);
}

absl::StatusOr<CertificateRef> Certificate::Issue(const CertificateSpec& spec, std::string_view public_key,
                                                  const Certificate& issuer, const KeyPair& issuer_key) {
  if (!issuer.Matches(issuer_key)) {
    return absl::InvalidArgumentError(
        fmt::format("the signing key is not the key of the certificate \"{}\"", issuer.subject()));
  }
  return Sign(spec, public_key, &issuer, issuer_key);
}

namespace {

// Every workload's chain ends with the same few certificates of authorities: those last seen are not read again.
absl::StatusOr<CertificateRef> Parse(std::string_view der, std::string_view what) {
  thread_local Memo<CertificateRef> authorities(16);
  if (const CertificateRef* authority = authorities.Find(der); authority != nullptr) return *authority;
  if (const CertificateRef* leaf = MadeHere<CertificateRef>().Find(der); leaf != nullptr) return *leaf;
  absl::StatusOr<CertificateRef> certificate = Certificate::FromDer(der, what);
  if (certificate.ok() && (*certificate)->is_ca()) authorities.Keep(std::string(der), *certificate);
  return certificate;
}

}  // namespace

absl::StatusOr<std::vector<CertificateRef>> ParseCertificates(std::string_view pem, std::string_view what) {
  std::vector<CertificateRef> out;
  const std::string_view whole = pem;
  bool malformed = false;
  while (std::optional<ossl::PemBlock> block = ossl::NextPemBlock(pem, malformed)) {
    if (block->label != "CERTIFICATE") {
      return absl::InvalidArgumentError(
          fmt::format("{} is not a certificate: it holds a PEM block \"{}\"", what, block->label));
    }
    const std::string name =
        out.empty() ? std::string(what) : fmt::format("{}, certificate no. {},", what, out.size() + 1);
    absl::StatusOr<CertificateRef> certificate = Parse(block->bytes, name);
    if (!certificate.ok()) return certificate.status();
    out.push_back(*std::move(certificate));
  }
  if (malformed) {
    const auto line = 1 + std::count(whole.begin(), whole.begin() + static_cast<long>(whole.size() - pem.size()), '\n');
    return absl::InvalidArgumentError(
        fmt::format("{} is not a certificate: a PEM block that ends before or in line {} is damaged", what, line));
  }
  if (out.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a certificate: it holds no PEM block \"-----BEGIN CERTIFICATE-----\"", what));
  }
  return out;
}

std::string ToPem(absl::Span<const CertificateRef> certificates) {
  std::string out;
  for (const CertificateRef& certificate : certificates) out += certificate->ToPem();
  return out;
}

Fingerprint FingerprintOf(absl::Span<const CertificateRef> chain) {
  std::string all;
  for (const CertificateRef& certificate : chain) {
    for (int shift = 56; shift >= 0; shift -= 8) all.push_back(static_cast<char>(certificate->fingerprint() >> shift));
  }
  return FingerprintOf(all);
}

}  // namespace wavetank::x509
