// Certificate signing requests (PKCS#10).
#include "core/x509/der.h"
#include "core/x509/made_here.h"
#include "core/x509/names.h"
#include "core/x509/openssl.h"
#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::x509 {
std::string CreateCsr(const KeyPair& key, const Subject& subject, const std::vector<std::string>& sans) {
  std::string attributes;
  if (!sans.empty()) {
    attributes = der::Sequence({der::oid::kExtensionRequest, der::Set(der::Tlv(der::kSequence, EncodeSans(sans)))});
  }
  const std::string info = der::Sequence(
      {der::SmallInteger(0), EncodeName(subject), key.public_key(), der::Tlv(der::ContextConstructed(0), attributes)});
  std::string pem = ossl::EncodePem("CERTIFICATE REQUEST",
                                    der::Sequence({info, key.signature_algorithm(), der::BitString(key.Sign(info))}));
  MadeHere<CertificateRequest>().Keep(pem, {subject, SortSans(sans), key.public_key()});
  return pem;
}

absl::StatusOr<CertificateRequest> ParseCsr(std::string_view pem, std::string_view what) {
  if (const auto* made = MadeHere<CertificateRequest>().Find(pem); made != nullptr) return *made;
  bool malformed = false;
  const std::optional<ossl::PemBlock> block = ossl::NextPemBlock(pem, malformed);
  if (!block || (block->label != "CERTIFICATE REQUEST" && block->label != "NEW CERTIFICATE REQUEST")) {
    return absl::InvalidArgumentError(
        fmt::format("{} is no certificate signing request: it holds no sound PEM block "
                    "\"CERTIFICATE REQUEST\"",
                    what));
  }
  const unsigned char* p = ossl::Bytes(block->bytes);
  const ossl::Request request(d2i_X509_REQ(nullptr, &p, static_cast<long>(block->bytes.size())));
  EVP_PKEY* key = request == nullptr ? nullptr : X509_REQ_get0_pubkey(request.get());
  if (key == nullptr) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        fmt::format("{} is no certificate signing request: its content is no PKCS#10", what));
  }
  if (X509_REQ_verify(request.get(), key) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(fmt::format("{} is not signed by the key that it names", what));
  }
  CertificateRequest out;
  out.subject = ReadName(X509_REQ_get_subject_name(request.get()));
  out.public_key = ossl::Der<const X509_PUBKEY>(i2d_X509_PUBKEY, X509_REQ_get_X509_PUBKEY(request.get()));
  if (STACK_OF(X509_EXTENSION)* extensions = X509_REQ_get_extensions(request.get())) {
    int critical = 0;
    auto* names = static_cast<GENERAL_NAMES*>(X509V3_get_d2i(extensions, NID_subject_alt_name, &critical, nullptr));
    const bool readable = names == nullptr ? critical == -1 : ReadSans(names, out.sans);
    GENERAL_NAMES_free(names);
    sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
    ERR_clear_error();
    if (!readable)
      return absl::InvalidArgumentError(fmt::format("{} asks for a subjectAltName that cannot be read", what));
  }
  return out;
}

}  // namespace wavetank::x509
