// Key pairs: derivation from a seed, reading from PEM, deterministic signatures.
#include <openssl/core_names.h>

#include "core/x509/der.h"
#include "core/x509/hash.h"
#include "core/x509/openssl.h"
#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::x509 {
namespace {

struct Curve {
  const EC_GROUP* group;
  const BIGNUM* order;
  size_t bytes;  // of a scalar and of a coordinate
  HashKind hash;
  std::string_view oid;
  std::string algorithm;  // AlgorithmIdentifier of its signatures
};

// Immutable tables of OpenSSL, made once: setting up a group costs more than a signature.
const Curve& P256() {
  static const Curve curve = [] {
    const EC_GROUP* group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    return Curve{group,
                 EC_GROUP_get0_order(group),
                 32,
                 HashKind::kSha256,
                 der::oid::kPrime256v1,
                 der::Sequence({der::oid::kEcdsaWithSha256})};
  }();
  return curve;
}

const Curve& P384() {
  static const Curve curve = [] {
    const EC_GROUP* group = EC_GROUP_new_by_curve_name(NID_secp384r1);
    return Curve{group,
                 EC_GROUP_get0_order(group),
                 48,
                 HashKind::kSha384,
                 der::oid::kSecp384r1,
                 der::Sequence({der::oid::kEcdsaWithSha384})};
  }();
  return curve;
}

std::string FixedBytes(const BIGNUM* n, size_t size) {
  std::string out(size, '\0');
  BN_bn2binpad(n, ossl::Bytes(out), static_cast<int>(size));
  return out;
}

ossl::BigNum FromBytes(std::string_view bytes) {
  return ossl::BigNum(BN_bin2bn(ossl::Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

std::string PublicPoint(const Curve& curve, const BIGNUM* scalar, BN_CTX* ctx) {
  ossl::Point point(EC_POINT_new(curve.group));
  EC_POINT_mul(curve.group, point.get(), scalar, nullptr, nullptr, ctx);
  std::string out(1 + 2 * curve.bytes, '\0');
  EC_POINT_point2oct(curve.group, point.get(), POINT_CONVERSION_UNCOMPRESSED, ossl::Bytes(out), out.size(), ctx);
  return out;
}

std::string EcPublicKeyInfo(const Curve& curve, std::string_view point) {
  return der::Sequence({der::Sequence({der::oid::kEcPublicKey, curve.oid}), der::BitString(point)});
}

class EcKeyPair final : public KeyPair {
 public:
  EcKeyPair(const Curve& curve, ossl::BigNum scalar, std::string point)
      : KeyPair(EcPublicKeyInfo(curve, point)), curve_(curve), scalar_(std::move(scalar)), point_(std::move(point)) {
    BN_set_flags(scalar_.get(), BN_FLG_CONSTTIME);
  }

  std::string_view signature_algorithm() const override { return curve_.algorithm; }

  // RFC 6979, section 3.2. Both curves' hashes are as long as their order, so bits2int is a plain conversion.
  std::string Sign(std::string_view message) const override {
    ossl::BigNumContext ctx(BN_CTX_new());
    const std::string digest = Hash(curve_.hash, {message});
    ossl::BigNum z = FromBytes(digest);
    ossl::BigNum reduced(BN_dup(z.get()));
    if (BN_cmp(reduced.get(), curve_.order) >= 0) BN_sub(reduced.get(), reduced.get(), curve_.order);
    const std::string secret = FixedBytes(scalar_.get(), curve_.bytes);
    const std::string hashed = FixedBytes(reduced.get(), curve_.bytes);
    using namespace std::string_view_literals;
    std::string v(curve_.bytes, '\x01'), k(curve_.bytes, '\0');
    k = Hmac(curve_.hash, k, {v, "\x00"sv, secret, hashed});
    v = Hmac(curve_.hash, k, {v});
    k = Hmac(curve_.hash, k, {v, "\x01"sv, secret, hashed});
    v = Hmac(curve_.hash, k, {v});
    for (;;) {
      v = Hmac(curve_.hash, k, {v});
      ossl::BigNum nonce = FromBytes(v);
      if (!BN_is_zero(nonce.get()) && BN_cmp(nonce.get(), curve_.order) < 0) {
        ossl::BigNum blind = FromBytes(Hmac(curve_.hash, k, {v, "\x02"sv}));
        BN_set_bit(blind.get(), 0);  // not zero
        std::string signature = SignWith(reduced.get(), nonce.get(), blind.get(), ctx.get());
        if (!signature.empty()) return signature;
      }
      k = Hmac(curve_.hash, k, {v, "\x00"sv});
      v = Hmac(curve_.hash, k, {v});
    }
  }

  std::string ExportPrivateKeyPem(KeyForm form) const override {
    const std::string secret = FixedBytes(scalar_.get(), curve_.bytes);
    if (form == KeyForm::kOfAlgorithm) {
      return ossl::EncodePem("EC PRIVATE KEY",
                             der::Sequence({der::SmallInteger(1), der::OctetString(secret),
                                            der::Tlv(der::ContextConstructed(0), curve_.oid),
                                            der::Tlv(der::ContextConstructed(1), der::BitString(point_))}));
    }
    const std::string key = der::Sequence(
        {der::SmallInteger(1), der::OctetString(secret), der::Tlv(der::ContextConstructed(1), der::BitString(point_))});
    return ossl::EncodePem("PRIVATE KEY",
                           der::Sequence({der::SmallInteger(0), der::Sequence({der::oid::kEcPublicKey, curve_.oid}),
                                          der::OctetString(key)}));
  }

 private:
  // Empty in the (2^-256) case that the nonce does not serve. What time the inversion takes tells of the nonce times
  // `blind` alone, which nobody knows either; OpenSSL's inversion in constant time takes half of a signature's time.
  std::string SignWith(const BIGNUM* z, BIGNUM* nonce, const BIGNUM* blind, BN_CTX* ctx) const {
    BN_set_flags(nonce, BN_FLG_CONSTTIME);
    ossl::Point point(EC_POINT_new(curve_.group));
    ossl::BigNum r(BN_new()), s(BN_new());
    EC_POINT_mul(curve_.group, point.get(), nonce, nullptr, nullptr, ctx);
    EC_POINT_get_affine_coordinates(curve_.group, point.get(), r.get(), nullptr, ctx);
    BN_nnmod(r.get(), r.get(), curve_.order, ctx);
    if (BN_is_zero(r.get())) return {};
    ossl::BigNum blinded(BN_new());
    BN_mod_mul(blinded.get(), nonce, blind, curve_.order, ctx);
    ossl::BigNum inverse(BN_mod_inverse(nullptr, blinded.get(), curve_.order, ctx));
    if (inverse == nullptr) return {};  // the blind is a multiple of the order
    BN_mod_mul(inverse.get(), inverse.get(), blind, curve_.order, ctx);
    BN_mod_mul(s.get(), r.get(), scalar_.get(), curve_.order, ctx);
    BN_mod_add(s.get(), s.get(), z, curve_.order, ctx);
    BN_mod_mul(s.get(), s.get(), inverse.get(), curve_.order, ctx);
    if (BN_is_zero(s.get())) return {};
    return der::Sequence(
        {der::Integer(FixedBytes(r.get(), curve_.bytes)), der::Integer(FixedBytes(s.get(), curve_.bytes))});
  }

  const Curve& curve_;
  ossl::BigNum scalar_;
  std::string point_;
};

// Only ever read from PEM: OpenSSL 3.0 cannot generate RSA keys from a seed. PKCS#1 v1.5 signatures are deterministic.
class RsaKeyPair final : public KeyPair {
 public:
  RsaKeyPair(ossl::PKey key, std::string public_key) : KeyPair(std::move(public_key)), key_(std::move(key)) {}

  std::string_view signature_algorithm() const override {
    static const std::string algorithm = der::Sequence({der::oid::kSha256WithRsa, std::string_view("\x05\x00", 2)});
    return algorithm;
  }

  std::string Sign(std::string_view message) const override {
    ossl::DigestContext ctx(EVP_MD_CTX_new());
    size_t size = 0;
    EVP_DigestSignInit(ctx.get(), nullptr, EVP_sha256(), nullptr, key_.get());
    EVP_DigestSign(ctx.get(), nullptr, &size, ossl::Bytes(message), message.size());
    std::string out(size, '\0');
    EVP_DigestSign(ctx.get(), ossl::Bytes(out), &size, ossl::Bytes(message), message.size());
    out.resize(size);
    return out;
  }

  std::string ExportPrivateKeyPem(KeyForm form) const override {
    ossl::Bio bio(BIO_new(BIO_s_mem()));
    if (form == KeyForm::kOfAlgorithm) {
      PEM_write_bio_PrivateKey_traditional(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    } else {
      PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    }
    char* data = nullptr;
    const long n = BIO_get_mem_data(bio.get(), &data);
    return std::string(data, static_cast<size_t>(n));
  }

 private:
  ossl::PKey key_;
};

}  // namespace

KeyPair::KeyPair(std::string public_key) : public_key_(std::move(public_key)) {}

KeyPairRef KeyPair::Derive(uint64_t seed, std::string_view name) {
  const Curve& curve = P256();
  std::string seed_bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) seed_bytes[i] = static_cast<char>(seed >> (56 - 8 * i));
  // 512 bits reduced to 256: the bias is below 2^-256.
  const std::string wide = Hmac(HashKind::kSha256, "wavetank key 1", {seed_bytes, name}) +
                           Hmac(HashKind::kSha256, "wavetank key 2", {seed_bytes, name});
  ossl::BigNumContext ctx(BN_CTX_new());
  ossl::BigNum scalar = FromBytes(wide), bound(BN_dup(curve.order));
  BN_sub_word(bound.get(), 1);
  BN_mod(scalar.get(), scalar.get(), bound.get(), ctx.get());
  BN_add_word(scalar.get(), 1);
  std::string point = PublicPoint(curve, scalar.get(), ctx.get());
  return std::make_shared<EcKeyPair>(curve, std::move(scalar), std::move(point));
}

absl::StatusOr<KeyPairRef> KeyPair::FromPem(std::string_view pem, std::string_view what) {
  bool malformed = false;
  std::optional<ossl::PemBlock> block;
  // "openssl ecparam -genkey" writes the curve's parameters in front of the key.
  do block = ossl::NextPemBlock(pem, malformed);
  while (block && block->label == "EC PARAMETERS");
  if (malformed) return absl::InvalidArgumentError(fmt::format("{} is no private key: its PEM block is damaged", what));
  if (!block)
    return absl::InvalidArgumentError(fmt::format("{} is no private key: it holds no PEM block \"PRIVATE KEY\"", what));
  if (block->label == "ENCRYPTED PRIVATE KEY" || block->header.find("ENCRYPTED") != std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("{} is an encrypted private key; store it without a passphrase", what));
  }
  const bool known =
      block->label == "PRIVATE KEY" || block->label == "EC PRIVATE KEY" || block->label == "RSA PRIVATE KEY";
  if (!known) {
    return absl::InvalidArgumentError(
        fmt::format("{} is no private key: it is a PEM block \"{}\" instead of \"PRIVATE KEY\"", what, block->label));
  }
  const unsigned char* p = ossl::Bytes(block->bytes);
  ossl::PKey key(d2i_AutoPrivateKey(nullptr, &p, static_cast<long>(block->bytes.size())));
  OPENSSL_cleanse(block->bytes.data(), block->bytes.size());
  if (key == nullptr) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        fmt::format("{} is no private key: the content of its PEM block cannot be read", what));
  }
  if (EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_RSA) {
    std::string public_key = ossl::Der<const EVP_PKEY>(i2d_PUBKEY, key.get());
    return std::make_shared<RsaKeyPair>(std::move(key), std::move(public_key));
  }
  if (EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_EC) {
    char group[64] = {};
    BIGNUM* scalar = nullptr;
    EVP_PKEY_get_utf8_string_param(key.get(), OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof group, nullptr);
    EVP_PKEY_get_bn_param(key.get(), OSSL_PKEY_PARAM_PRIV_KEY, &scalar);
    ossl::BigNum owned(scalar);
    const std::string_view name = group;
    const Curve* curve = name == "prime256v1" ? &P256() : name == "secp384r1" ? &P384() : nullptr;
    if (curve != nullptr && owned != nullptr && !BN_is_zero(owned.get()) && BN_cmp(owned.get(), curve->order) < 0) {
      ossl::BigNumContext ctx(BN_CTX_new());
      std::string point = PublicPoint(*curve, owned.get(), ctx.get());
      return std::make_shared<EcKeyPair>(*curve, std::move(owned), std::move(point));
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("{} is a private key of a kind that is not supported; use RSA, ECDSA P-256 or P-384", what));
}

}  // namespace wavetank::x509
