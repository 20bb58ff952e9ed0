// JSON Web Tokens and the key sets that verify them, and what Envoy says of those that are not good.
// Envoy: source/common/jwt (once google/jwt_verify_lib)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/x509/jws.h"
#include "nlohmann/json.hpp"

namespace wavetank::envoysim {

enum class JwtStatus : uint8_t {
  kOk,
  kMissing,
  kNotYetValid,
  kExpired,
  kBadFormat,
  kHeaderBadBase64,
  kHeaderBadJson,
  kHeaderBadAlgorithm,
  kHeaderUnknownAlgorithm,
  kHeaderBadKeyId,
  kPayloadBadBase64,
  kPayloadBadJson,
  kIssuerNoString,
  kSubjectNoString,
  kIssuedAtNoNumber,
  kIssuedAtOutOfRange,
  kNotBeforeNoNumber,
  kNotBeforeOutOfRange,
  kExpiryNoNumber,
  kExpiryOutOfRange,
  kIdNoString,
  kAudienceNoString,
  kSignatureBadBase64,
  kEd25519SignatureLength,
  kUnknownIssuer,
  kAudienceNotAllowed,
  kVerificationFails,
  kNoValidKeys,
  kNoKeyForIdOrAlgorithm,
  kFetchFailed,
};
std::string_view JwtStatusText(JwtStatus status);  // "Jwt is missing"

// A token, taken apart. Nothing of it is printed anywhere.
struct JwtToken {
  JwtStatus status = JwtStatus::kOk;  // of its form; what follows is there if that is good
  std::string signed_part;            // header.payload as sent
  std::string payload_text;           // base64url
  std::string signature;              // decoded
  x509::JwsAlgorithm algorithm{};
  std::string algorithm_name, key_id;
  std::string issuer, subject;
  std::vector<std::string> audiences;
  uint64_t not_before = 0, expires = 0;  // seconds since 1970; 0: not said
  nlohmann::json header, payload;

  static JwtToken Parse(std::string_view text);
  // Envoy: source/common/jwt/jwt.cc, verifyTimeConstraint
  JwtStatus CheckTime(uint64_t now, uint64_t skew) const;
};

// A JSON Web Key Set. Keys of unknown kinds and broken ones are left out, unless there are no others.
class JwtKeySet {
 public:
  // `keeps_broken`: an RSA key whose numbers are no key stands for one that verifies nothing, as in Envoys before they
  // looked; istiod writes such a one where it finds no keys.
  static JwtKeySet Parse(std::string_view json, bool keeps_broken);
  bool empty() const { return keys_.empty(); }
  // Why there is no key: of the first that is broken.
  std::string_view why_empty() const { return why_empty_; }
  // Keys of the token's id and algorithm are tried in order; a key that says neither is tried, too.
  JwtStatus Verify(const JwtToken& token) const;

 private:
  struct Key {
    std::string id, algorithm;
    bool ed25519 = false;
    std::shared_ptr<const x509::JwsKey> key;
  };
  // Empty: the key is good.
  static std::string_view ParseKey(const nlohmann::json& jwk, bool keeps_broken, Key* out);
  std::vector<Key> keys_;
  std::string_view why_empty_;
};

}  // namespace wavetank::envoysim
