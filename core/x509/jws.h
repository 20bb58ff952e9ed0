// Signatures of JSON Web Tokens (RFC 7515, 7518, 8037): public keys as a JWK says them, verification by OpenSSL, and
// signatures by the keys that derive from a seed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/x509/x509.h"

namespace wavetank::x509 {

enum class JwsAlgorithm : uint8_t {
  kRs256,
  kRs384,
  kRs512,
  kPs256,
  kPs384,
  kPs512,
  kEs256,
  kEs384,
  kEs512,
  kHs256,
  kHs384,
  kHs512,
  kEdDsa,
};
std::optional<JwsAlgorithm> ParseJwsAlgorithm(std::string_view name);  // "RS256"; nullopt: unknown

// A key that verifies. Immutable.
class JwsKey {
 public:
  enum class Curve : uint8_t { kP256, kP384, kP521 };

  // Null if the numbers (big-endian) are no key: an exponent that is neither 3 nor 65537, an even or a tiny modulus.
  static std::shared_ptr<const JwsKey> Rsa(std::string_view modulus, std::string_view exponent);
  // Null if the point is not on the curve.
  static std::shared_ptr<const JwsKey> Ec(Curve curve, std::string_view x, std::string_view y);
  // Null unless 32 bytes.
  static std::shared_ptr<const JwsKey> Ed25519(std::string_view point);
  static std::shared_ptr<const JwsKey> Secret(std::string_view bytes);

  virtual ~JwsKey() = default;
  // Whether `signature` (as in a token, decoded) is one over `data`. An RSA key verifies RS and PS; the others do not
  // look at the algorithm but for its hash, SHA-256 where it is another's. Envoy: source/common/jwt/verify.cc
  virtual bool Verifies(JwsAlgorithm algorithm, std::string_view data, std::string_view signature) const = 0;

  static constexpr size_t kEd25519Signature = 64;
};

// As a token's parts are written: URL-safe, without padding (RFC 7515).
std::string Base64Url(std::string_view bytes);

// ES256 over `data` by a derived key (P-256): r and s, 32 bytes each. Deterministic.
std::string SignEs256(const KeyPair& key, std::string_view data);
// The public half of such a key: {"kty":"EC","crv":"P-256","alg":"ES256","kid":...,"x":...,"y":...}.
std::string PublicJwk(const KeyPair& key, std::string_view key_id);

}  // namespace wavetank::x509
