// Reading and writing lists of revoked certificates (RFC 5280, 5).
#include "core/x509/revocation.h"

#include "core/x509/der.h"
#include "core/x509/names.h"
#include "core/x509/openssl.h"
#include "fmt/format.h"

namespace wavetank::x509 {
namespace {

std::string BytesOfHex(std::string_view hex) {
  std::string out;
  const auto digit = [](char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::string even(hex);
  if (even.size() % 2 != 0) even.insert(0, "0");
  for (size_t i = 0; i < even.size(); i += 2) {
    out.push_back(static_cast<char>(digit(even[i]) << 4 | digit(even[i + 1])));
  }
  return out;
}

std::string SubjectDer(const Certificate& certificate) {
  const unsigned char* p = ossl::Bytes(certificate.der());
  const ossl::Cert parsed(d2i_X509(nullptr, &p, static_cast<long>(certificate.der().size())));
  return ossl::Der<const X509_NAME>(i2d_X509_NAME, X509_get_subject_name(parsed.get()));
}

}  // namespace

RevocationList::RevocationList() = default;
RevocationList::~RevocationList() = default;

absl::StatusOr<RevocationListRef> RevocationList::FromPem(std::string_view pem, std::string_view what) {
  std::shared_ptr<RevocationList> out(new RevocationList);
  bool malformed = false;
  while (std::optional<ossl::PemBlock> block = ossl::NextPemBlock(pem, malformed)) {
    if (block->label != "X509 CRL") continue;
    const unsigned char* p = ossl::Bytes(block->bytes);
    X509_CRL* list = d2i_X509_CRL(nullptr, &p, static_cast<long>(block->bytes.size()));
    ERR_clear_error();
    if (list == nullptr) {
      return absl::InvalidArgumentError(fmt::format("{} is not a revocation list: its content is no X.509 CRL", what));
    }
    out->lists_.emplace_back(list, [](void* owned) { X509_CRL_free(static_cast<X509_CRL*>(owned)); });
  }
  if (malformed) {
    return absl::InvalidArgumentError(fmt::format("{} is not a revocation list: a PEM block of it is damaged", what));
  }
  return out;
}

absl::StatusOr<CertificateRef> WithCrlSign(const Certificate& authority, const KeyPair& issuer_key) {
  const unsigned char* p = ossl::Bytes(authority.der());
  const ossl::Cert parsed(d2i_X509(nullptr, &p, static_cast<long>(authority.der().size())));
  std::string tbs = ossl::Der<X509>(i2d_re_X509_tbs, parsed.get());
  const std::string before = EncodeExtension(der::oid::kKeyUsage, true, der::BitString("\x04", 2));
  const size_t at = tbs.find(before);
  if (at == std::string::npos)
    return absl::InvalidArgumentError("the certificate is no authority's that was made here");
  // keyCertSign and cRLSign; of one length with the former alone.
  tbs.replace(at, before.size(), EncodeExtension(der::oid::kKeyUsage, true, der::BitString("\x06", 1)));
  return Certificate::FromDer(
      der::Sequence({tbs, issuer_key.signature_algorithm(), der::BitString(issuer_key.Sign(tbs))}),
      "the certificate with the right to sign lists");
}

std::string MakeRevocationList(const Certificate& issuer, const KeyPair& key,
                               const std::vector<CertificateRef>& revoked, Time since, Time until) {
  std::string entries;
  for (const CertificateRef& certificate : revoked) {
    entries += der::Sequence({der::Integer(BytesOfHex(certificate->serial())), der::DateTime(since)});
  }
  const std::string listed = revoked.empty() ? "" : der::Tlv(der::kSequence, entries);
  const std::string signed_part = der::Sequence({der::SmallInteger(1), key.signature_algorithm(), SubjectDer(issuer),
                                                 der::DateTime(since), der::DateTime(until), listed});
  return ossl::EncodePem(
      "X509 CRL", der::Sequence({signed_part, key.signature_algorithm(), der::BitString(key.Sign(signed_part))}));
}

}  // namespace wavetank::x509
