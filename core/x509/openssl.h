// Owners of OpenSSL objects. Private to core/x509; the macro keeps the low-level EC and SHA functions usable, which
// OpenSSL 3 deprecates without offering their speed or a chosen ECDSA nonce in its place.
#pragma once

#define OPENSSL_API_COMPAT 0x10100000L

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace wavetank::x509::ossl {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};
template <class T, auto Free>
using Owner = std::unique_ptr<T, Deleter<Free>>;

using Bio = Owner<BIO, BIO_free_all>;
using BigNum = Owner<BIGNUM, BN_clear_free>;
using BigNumContext = Owner<BN_CTX, BN_CTX_free>;
using Point = Owner<EC_POINT, EC_POINT_free>;
using PKey = Owner<EVP_PKEY, EVP_PKEY_free>;
using DigestContext = Owner<EVP_MD_CTX, EVP_MD_CTX_free>;
using Cert = Owner<X509, X509_free>;
using Request = Owner<X509_REQ, X509_REQ_free>;
using Store = Owner<X509_STORE, X509_STORE_free>;
using StoreContext = Owner<X509_STORE_CTX, X509_STORE_CTX_free>;

inline const unsigned char* Bytes(std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); }
inline unsigned char* Bytes(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }

// The DER of an object by its i2d function; empty if OpenSSL cannot encode it.
template <class T>
std::string Der(int (*i2d)(T*, unsigned char**), T* object) {
  const int n = i2d(object, nullptr);
  if (n <= 0) return {};
  std::string out(static_cast<size_t>(n), '\0');
  unsigned char* p = Bytes(out);
  i2d(object, &p);
  return out;
}

// One block of a PEM text.
struct PemBlock {
  std::string label;   // "CERTIFICATE"
  std::string header;  // "Proc-Type: ..." of an encrypted key
  std::string bytes;
};
// The next block, advancing `text` past it; nullopt when there is no further "-----BEGIN". `malformed` is set when
// there is one that cannot be decoded.
std::optional<PemBlock> NextPemBlock(std::string_view& text, bool& malformed);
std::string EncodePem(std::string_view label, std::string_view der);

}  // namespace wavetank::x509::ossl
