#include "core/x509/jws.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "core/x509/openssl.h"
#include "fmt/format.h"

namespace wavetank::x509 {
namespace {

using ParamBuilder = ossl::Owner<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;
using ParamList = ossl::Owner<OSSL_PARAM, OSSL_PARAM_free>;
using KeyContext = ossl::Owner<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using EcdsaSignature = ossl::Owner<ECDSA_SIG, ECDSA_SIG_free>;

constexpr std::pair<std::string_view, JwsAlgorithm> kJwsAlgorithms[] = {
    {"RS256", JwsAlgorithm::kRs256}, {"RS384", JwsAlgorithm::kRs384}, {"RS512", JwsAlgorithm::kRs512},
    {"PS256", JwsAlgorithm::kPs256}, {"PS384", JwsAlgorithm::kPs384}, {"PS512", JwsAlgorithm::kPs512},
    {"ES256", JwsAlgorithm::kEs256}, {"ES384", JwsAlgorithm::kEs384}, {"ES512", JwsAlgorithm::kEs512},
    {"HS256", JwsAlgorithm::kHs256}, {"HS384", JwsAlgorithm::kHs384}, {"HS512", JwsAlgorithm::kHs512},
    {"EdDSA", JwsAlgorithm::kEdDsa},
};

enum class JwsFamily : uint8_t { kRsa, kRsaPss, kEc, kHmac, kEdDsa };

JwsFamily FamilyOf(JwsAlgorithm algorithm) {
  if (algorithm <= JwsAlgorithm::kRs512) return JwsFamily::kRsa;
  if (algorithm <= JwsAlgorithm::kPs512) return JwsFamily::kRsaPss;
  if (algorithm <= JwsAlgorithm::kEs512) return JwsFamily::kEc;
  if (algorithm <= JwsAlgorithm::kHs512) return JwsFamily::kHmac;
  return JwsFamily::kEdDsa;
}

const EVP_MD* DigestOf(JwsAlgorithm algorithm) {
  switch (static_cast<int>(algorithm) % 3) {
    case 0:
      return EVP_sha256();
    case 1:
      return EVP_sha384();
    default:
      return EVP_sha512();
  }
}

// The algorithm's hash where it is of this family, else SHA-256.
const EVP_MD* DigestOf(JwsAlgorithm algorithm, JwsFamily family) {
  return FamilyOf(algorithm) == family ? DigestOf(algorithm) : EVP_sha256();
}

ossl::BigNum ReadNumber(std::string_view bytes) {
  return ossl::BigNum(BN_bin2bn(ossl::Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

// A public key out of its parameters; null if OpenSSL does not take them for one.
ossl::PKey MakePublicKey(const char* type, OSSL_PARAM_BLD* builder) {
  const ParamList params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  return ossl::PKey(key);
}

class AsymmetricJwsKey final : public JwsKey {
 public:
  AsymmetricJwsKey(ossl::PKey key, bool rsa) : key_(std::move(key)), rsa_(rsa) {}

  bool Verifies(JwsAlgorithm algorithm, std::string_view data, std::string_view signature) const override {
    const JwsFamily family = FamilyOf(algorithm);
    if (rsa_ && family != JwsFamily::kRsa && family != JwsFamily::kRsaPss) return false;
    const EVP_MD* digest = rsa_ ? DigestOf(algorithm) : DigestOf(algorithm, JwsFamily::kEc);
    std::string encoded;
    if (!rsa_) {
      encoded = DerSignature(signature);
      signature = encoded;
    }
    const ossl::DigestContext context(EVP_MD_CTX_new());
    EVP_PKEY_CTX* key_context = nullptr;
    bool ok = EVP_DigestVerifyInit(context.get(), &key_context, digest, nullptr, key_.get()) == 1;
    if (ok && family == JwsFamily::kRsaPss) {
      // The salt may be of any length, as BoringSSL's verifier has it.
      ok = EVP_PKEY_CTX_set_rsa_padding(key_context, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_mgf1_md(key_context, digest) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(key_context, RSA_PSS_SALTLEN_AUTO) == 1;
    }
    ok = ok &&
         EVP_DigestVerify(context.get(), ossl::Bytes(signature), signature.size(), ossl::Bytes(data), data.size()) == 1;
    ERR_clear_error();
    return ok;
  }

 private:
  // r and s, one half each, whatever the size, as OpenSSL wants them.
  static std::string DerSignature(std::string_view raw) {
    const EcdsaSignature signature(ECDSA_SIG_new());
    ossl::BigNum r = ReadNumber(raw.substr(0, raw.size() / 2));
    ossl::BigNum s = ReadNumber(raw.substr(raw.size() / 2, raw.size() / 2));
    ECDSA_SIG_set0(signature.get(), r.release(), s.release());
    return ossl::Der<const ECDSA_SIG>(i2d_ECDSA_SIG, signature.get());
  }

  ossl::PKey key_;
  bool rsa_;
};

class Ed25519JwsKey final : public JwsKey {
 public:
  explicit Ed25519JwsKey(ossl::PKey key) : key_(std::move(key)) {}
  bool Verifies(JwsAlgorithm, std::string_view data, std::string_view signature) const override {
    const ossl::DigestContext context(EVP_MD_CTX_new());
    const bool ok =
        EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
        EVP_DigestVerify(context.get(), ossl::Bytes(signature), signature.size(), ossl::Bytes(data), data.size()) == 1;
    ERR_clear_error();
    return ok;
  }

 private:
  ossl::PKey key_;
};

class SecretJwsKey final : public JwsKey {
 public:
  explicit SecretJwsKey(std::string_view bytes) : bytes_(bytes) {}
  ~SecretJwsKey() override { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }
  bool Verifies(JwsAlgorithm algorithm, std::string_view data, std::string_view signature) const override {
    unsigned char out[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    HMAC(DigestOf(algorithm, JwsFamily::kHmac), bytes_.data(), static_cast<int>(bytes_.size()), ossl::Bytes(data),
         data.size(), out, &size);
    return size == signature.size() && CRYPTO_memcmp(out, signature.data(), size) == 0;
  }

 private:
  std::string bytes_;
};

}  // namespace

std::string Base64Url(std::string_view bytes) {
  std::string out;
  absl::WebSafeBase64Escape(absl::string_view(bytes.data(), bytes.size()), &out);
  return out;
}

std::optional<JwsAlgorithm> ParseJwsAlgorithm(std::string_view name) {
  for (const auto& [known, algorithm] : kJwsAlgorithms) {
    if (known == name) return algorithm;
  }
  return std::nullopt;
}

std::shared_ptr<const JwsKey> JwsKey::Rsa(std::string_view modulus, std::string_view exponent) {
  // BoringSSL: crypto/fipsmodule/rsa, the bounds of a public key that RSA_check_key looks at.
  constexpr int kMinBits = 512, kMaxBits = 16384;
  const ossl::BigNum n = ReadNumber(modulus), e = ReadNumber(exponent);
  if (BN_is_word(e.get(), 3) == 0 && BN_is_word(e.get(), 65537) == 0) return nullptr;
  const int bits = BN_num_bits(n.get());
  if (bits < kMinBits || bits > kMaxBits || BN_is_odd(n.get()) == 0) return nullptr;
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get());
  ossl::PKey key = MakePublicKey("RSA", builder.get());
  if (key == nullptr) return nullptr;
  return std::make_shared<AsymmetricJwsKey>(std::move(key), /*rsa=*/true);
}

std::shared_ptr<const JwsKey> JwsKey::Ec(Curve curve, std::string_view x, std::string_view y) {
  struct Parameters {
    const char* group;
    size_t bytes;
  };
  static constexpr Parameters kCurves[] = {{"P-256", 32}, {"P-384", 48}, {"P-521", 66}};
  const Parameters& parameters = kCurves[static_cast<size_t>(curve)];
  std::string point = "\x04";
  for (std::string_view coordinate : {x, y}) {
    const ossl::BigNum number = ReadNumber(coordinate);
    std::string padded(parameters.bytes, '\0');
    if (BN_bn2binpad(number.get(), ossl::Bytes(padded), static_cast<int>(padded.size())) < 0) return nullptr;
    point += padded;
  }
  const ParamBuilder builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, parameters.group, 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size());
  ossl::PKey key = MakePublicKey("EC", builder.get());
  if (key == nullptr) return nullptr;
  return std::make_shared<AsymmetricJwsKey>(std::move(key), /*rsa=*/false);
}

std::shared_ptr<const JwsKey> JwsKey::Ed25519(std::string_view point) {
  if (point.size() != 32) return nullptr;
  ossl::PKey key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, ossl::Bytes(point), point.size()));
  if (key == nullptr) return nullptr;
  return std::make_shared<Ed25519JwsKey>(std::move(key));
}

std::shared_ptr<const JwsKey> JwsKey::Secret(std::string_view bytes) { return std::make_shared<SecretJwsKey>(bytes); }

std::string SignEs256(const KeyPair& key, std::string_view data) {
  const std::string der = key.Sign(data);
  const unsigned char* from = ossl::Bytes(der);
  const EcdsaSignature signature(d2i_ECDSA_SIG(nullptr, &from, static_cast<long>(der.size())));
  std::string out(64, '\0');
  BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), ossl::Bytes(out), 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), ossl::Bytes(out) + 32, 32);
  return out;
}

std::string PublicJwk(const KeyPair& key, std::string_view key_id) {
  // A P-256 SubjectPublicKeyInfo ends with the point: 04, x, y.
  const std::string_view point = std::string_view(key.public_key()).substr(key.public_key().size() - 64);
  return fmt::format(R"({{"kty":"EC","crv":"P-256","alg":"ES256","kid":"{}","x":"{}","y":"{}"}})", key_id,
                     Base64Url(point.substr(0, 32)), Base64Url(point.substr(32)));
}

}  // namespace wavetank::x509
