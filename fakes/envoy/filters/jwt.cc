#include "fakes/envoy/filters/jwt.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"

namespace wavetank::envoysim {
namespace {

using nlohmann::json;

std::optional<std::string> FromBase64Url(std::string_view text) {
  std::string out;
  if (!absl::WebSafeBase64Unescape(absl::string_view(text.data(), text.size()), &out)) return std::nullopt;
  return out;
}

// A member that has to be a string where it is there.
bool ReadClaim(const json& object, const char* name, std::string* out) {
  const auto it = object.find(name);
  if (it == object.end()) return true;
  if (!it->is_string()) return false;
  *out = it->get_ref<const std::string&>();
  return true;
}

// Seconds; fractions are cut off.
JwtStatus ReadSeconds(const json& object, const char* name, JwtStatus no_number, JwtStatus out_of_range,
                      uint64_t* out) {
  const auto it = object.find(name);
  if (it == object.end()) return JwtStatus::kOk;
  if (!it->is_number()) return no_number;
  const double value = it->get<double>();
  if (value < 0 || value >= static_cast<double>(std::numeric_limits<uint64_t>::max())) return out_of_range;
  *out = static_cast<uint64_t>(value);
  return JwtStatus::kOk;
}

bool ReadAudiences(const json& object, std::vector<std::string>* out) {
  const auto it = object.find("aud");
  if (it == object.end()) return true;
  if (it->is_string()) {
    out->push_back(it->get<std::string>());
    return true;
  }
  if (!it->is_array()) return false;
  for (const json& one : *it) {
    if (!one.is_string()) return false;
    out->push_back(one.get<std::string>());
  }
  return true;
}

JwtStatus ReadHeader(JwtToken& token, std::string_view text) {
  const std::optional<std::string> decoded = FromBase64Url(text);
  if (!decoded) return JwtStatus::kHeaderBadBase64;
  token.header = ParseJson(*decoded);
  if (!token.header.is_object()) return JwtStatus::kHeaderBadJson;
  if (!token.header.contains("alg") || !ReadClaim(token.header, "alg", &token.algorithm_name)) {
    return JwtStatus::kHeaderBadAlgorithm;
  }
  const std::optional<x509::JwsAlgorithm> algorithm = x509::ParseJwsAlgorithm(token.algorithm_name);
  if (!algorithm) return JwtStatus::kHeaderUnknownAlgorithm;
  token.algorithm = *algorithm;
  return ReadClaim(token.header, "kid", &token.key_id) ? JwtStatus::kOk : JwtStatus::kHeaderBadKeyId;
}

JwtStatus ReadPayload(JwtToken& token, std::string_view text) {
  token.payload_text = std::string(text);
  const std::optional<std::string> decoded = FromBase64Url(text);
  if (!decoded) return JwtStatus::kPayloadBadBase64;
  token.payload = ParseJson(*decoded);
  if (!token.payload.is_object()) return JwtStatus::kPayloadBadJson;
  if (!ReadClaim(token.payload, "iss", &token.issuer)) return JwtStatus::kIssuerNoString;
  if (!ReadClaim(token.payload, "sub", &token.subject)) return JwtStatus::kSubjectNoString;
  struct Instant {
    const char* name;
    JwtStatus no_number, out_of_range;
    uint64_t* to;
  };
  uint64_t issued_at = 0;
  for (const Instant& i :
       {Instant{"iat", JwtStatus::kIssuedAtNoNumber, JwtStatus::kIssuedAtOutOfRange, &issued_at},
        Instant{"nbf", JwtStatus::kNotBeforeNoNumber, JwtStatus::kNotBeforeOutOfRange, &token.not_before},
        Instant{"exp", JwtStatus::kExpiryNoNumber, JwtStatus::kExpiryOutOfRange, &token.expires}}) {
    const JwtStatus status = ReadSeconds(token.payload, i.name, i.no_number, i.out_of_range, i.to);
    if (status != JwtStatus::kOk) return status;
  }
  std::string id;
  if (!ReadClaim(token.payload, "jti", &id)) return JwtStatus::kIdNoString;
  return ReadAudiences(token.payload, &token.audiences) ? JwtStatus::kOk : JwtStatus::kAudienceNoString;
}

JwtStatus ReadToken(JwtToken& token, std::string_view text) {
  const std::vector<absl::string_view> split =
      absl::StrSplit(absl::string_view(text.data(), text.size()), '.', absl::SkipEmpty());
  if (split.size() != 3) return JwtStatus::kBadFormat;
  std::array<std::string_view, 3> parts;
  for (size_t i = 0; i < 3; ++i) parts[i] = {split[i].data(), split[i].size()};
  if (const JwtStatus status = ReadHeader(token, parts[0]); status != JwtStatus::kOk) return status;
  if (const JwtStatus status = ReadPayload(token, parts[1]); status != JwtStatus::kOk) return status;
  std::optional<std::string> signature = FromBase64Url(parts[2]);
  if (!signature) return JwtStatus::kSignatureBadBase64;
  token.signature = *std::move(signature);
  token.signed_part.assign(parts[0]).append(".").append(parts[1]);
  return JwtStatus::kOk;
}

}  // namespace

std::string_view JwtStatusText(JwtStatus status) {
  switch (status) {
    case JwtStatus::kOk:
      return "OK";
    case JwtStatus::kMissing:
      return "Jwt is missing";
    case JwtStatus::kNotYetValid:
      return "Jwt not yet valid";
    case JwtStatus::kExpired:
      return "Jwt is expired";
    case JwtStatus::kBadFormat:
      return "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections";
    case JwtStatus::kHeaderBadBase64:
      return "Jwt header is an invalid Base64url encoded";
    case JwtStatus::kHeaderBadJson:
      return "Jwt header is an invalid JSON";
    case JwtStatus::kHeaderBadAlgorithm:
      return "Jwt header [alg] field is required and must be a string";
    case JwtStatus::kHeaderUnknownAlgorithm:
      return "Jwt header [alg] is not supported";
    case JwtStatus::kHeaderBadKeyId:
      return "Jwt header [kid] field is not a string";
    case JwtStatus::kPayloadBadBase64:
      return "Jwt payload is an invalid Base64url encoded";
    case JwtStatus::kPayloadBadJson:
      return "Jwt payload is an invalid JSON";
    case JwtStatus::kIssuerNoString:
      return "Jwt payload [iss] field is not a string";
    case JwtStatus::kSubjectNoString:
      return "Jwt payload [sub] field is not a string";
    case JwtStatus::kIssuedAtNoNumber:
      return "Jwt payload [iat] field is not an integer";
    case JwtStatus::kIssuedAtOutOfRange:
      return "Jwt payload [iat] field is not a positive 64 bit integer";
    case JwtStatus::kNotBeforeNoNumber:
      return "Jwt payload [nbf] field is not an integer";
    case JwtStatus::kNotBeforeOutOfRange:
      return "Jwt payload [nbf] field is not a positive 64 bit integer";
    case JwtStatus::kExpiryNoNumber:
      return "Jwt payload [exp] field is not an integer";
    case JwtStatus::kExpiryOutOfRange:
      return "Jwt payload [exp] field is not a positive 64 bit integer";
    case JwtStatus::kIdNoString:
      return "Jwt payload [jti] field is not a string";
    case JwtStatus::kAudienceNoString:
      return "Jwt payload [aud] field is not a string or string list";
    case JwtStatus::kSignatureBadBase64:
      return "Jwt signature is an invalid Base64url encoded";
    case JwtStatus::kEd25519SignatureLength:
      return "Jwt ED25519 signature is wrong length";
    case JwtStatus::kUnknownIssuer:
      return "Jwt issuer is not configured";
    case JwtStatus::kAudienceNotAllowed:
      return "Audiences in Jwt are not allowed";
    case JwtStatus::kVerificationFails:
      return "Jwt verification fails";
    case JwtStatus::kNoValidKeys:
      return "Jwks doesn't have any valid public key";
    case JwtStatus::kNoKeyForIdOrAlgorithm:
      return "Jwks doesn't have key to match kid or alg from Jwt";
    case JwtStatus::kFetchFailed:
      return "Jwks remote fetch is failed";
  }
  return {};
}

JwtToken JwtToken::Parse(std::string_view text) {
  JwtToken out;
  out.status = ReadToken(out, text);
  return out;
}

JwtStatus JwtToken::CheckTime(uint64_t now, uint64_t skew) const {
  if (now + skew < not_before) return JwtStatus::kNotYetValid;
  return expires != 0 && now > expires + skew ? JwtStatus::kExpired : JwtStatus::kOk;
}

// Envoy: source/common/jwt/jwks.cc, extractJwk
std::string_view JwtKeySet::ParseKey(const json& jwk, bool keeps_broken, Key* out) {
  const auto text = [&](const char* name) {
    std::string value;
    ReadClaim(jwk, name, &value);
    return value;
  };
  const auto bytes = [&](const char* name) -> std::optional<std::string> {
    const auto it = jwk.find(name);
    return it == jwk.end() || !it->is_string() ? std::nullopt : FromBase64Url(it->get_ref<const std::string&>());
  };
  const auto what = [&](const char* name, std::string_view missing, std::string_view no_text) {
    return !jwk.contains(name) ? missing : jwk[name].is_string() ? std::string_view() : no_text;
  };
  if (const auto why = what("kty", "[kty] is missing in [keys]", "[kty] is bad in [keys]"); !why.empty()) return why;
  out->id = text("kid");
  out->algorithm = text("alg");
  const std::string type = text("kty"), &algorithm = out->algorithm;
  if (type == "RSA") {
    if (!algorithm.empty() && !algorithm.starts_with("RS") && !algorithm.starts_with("PS")) {
      return "[alg] is not started with [RS] or [PS] for an RSA key";
    }
    for (const auto why : {what("n", "[n] field is missing for a RSA key", "[n] field is not string for a RSA key"),
                           what("e", "[e] field is missing for a RSA key", "[e] field is not string for a RSA key")}) {
      if (!why.empty()) return why;
    }
    const auto n = bytes("n"), e = bytes("e");
    if (n && e) out->key = x509::JwsKey::Rsa(*n, *e);
    if (out->key != nullptr || (keeps_broken && n && e)) return {};
    return "Jwks RSA [n] or [e] field is missing or has a parse error";
  }
  if (type == "EC") {
    // What is said of the curve and of the algorithm has to agree; P-256 if neither is said.
    struct Pair {
      std::string_view algorithm, curve;
      x509::JwsKey::Curve value;
    };
    static constexpr std::array<Pair, 3> kPairs = {{{"ES256", "P-256", x509::JwsKey::Curve::kP256},
                                                    {"ES384", "P-384", x509::JwsKey::Curve::kP384},
                                                    {"ES512", "P-521", x509::JwsKey::Curve::kP521}}};
    if (!algorithm.empty() && !algorithm.starts_with("ES")) return "[alg] is not started with [ES] for an EC key";
    if (jwk.contains("crv") && !jwk["crv"].is_string()) return "[crv] field is not string for an EC key";
    const std::string curve = text("crv");
    const auto pair = std::find_if(kPairs.begin(), kPairs.end(), [&](const Pair& p) {
      return (algorithm.empty() || algorithm == p.algorithm) && (curve.empty() || curve == p.curve);
    });
    if (pair == kPairs.end()) {
      return !algorithm.empty() && !curve.empty() ? "[crv] field specified is not compatible with [alg] for an EC key"
                                                  : "[crv] or [alg] field is not supported for an EC key";
    }
    for (const auto why : {what("x", "[x] field is missing for an EC key", "[x] field is not string for an EC key"),
                           what("y", "[y] field is missing for an EC key", "[y] field is not string for an EC key")}) {
      if (!why.empty()) return why;
    }
    const auto x = bytes("x"), y = bytes("y");
    if (!x || !y) return "Jwks EC [x] or [y] field is an invalid Base64.";
    out->key = x509::JwsKey::Ec(pair->value, *x, *y);
    return out->key != nullptr ? std::string_view() : "Jwks EC [x] and [y] fields have a parse error.";
  }
  if (type == "oct") {
    if (!algorithm.empty() && algorithm != "HS256" && algorithm != "HS384" && algorithm != "HS512") {
      return "[alg] does not start with [HS] for an HMAC key";
    }
    if (const auto why = what("k", "[k] field is missing for an HMAC key", "[k] field is not string for an HMAC key");
        !why.empty()) {
      return why;
    }
    const auto secret = bytes("k");
    if (!secret || secret->empty()) return "Jwks Oct key is an invalid Base64";
    out->key = x509::JwsKey::Secret(*secret);
    return {};
  }
  if (type != "OKP") return "[kty] is not supported in [keys]";
  out->ed25519 = true;
  if (!algorithm.empty() && algorithm != "EdDSA") return "[alg] is not [EdDSA] for an OKP key";
  if (const auto why = what("crv", "[crv] field is missing for an OKP key", "[crv] field is not string for an OKP key");
      !why.empty()) {
    return why;
  }
  if (text("crv") != "Ed25519") return "[crv] field is not supported for an OKP key";
  if (const auto why = what("x", "[x] field is missing for an OKP key", "[x] field is not string for an OKP key");
      !why.empty()) {
    return why;
  }
  const auto point = bytes("x");
  if (!point) return "Jwks OKP [x] field is an invalid Base64.";
  out->key = x509::JwsKey::Ed25519(*point);
  return out->key != nullptr ? std::string_view() : "Jwks OKP [x] field is wrong length.";
}

JwtKeySet JwtKeySet::Parse(std::string_view text, bool keeps_broken) {
  JwtKeySet out;
  const json set = ParseJson(text);
  if (!set.is_object()) {
    out.why_empty_ = "Jwks is an invalid JSON";
  } else if (!set.contains("keys")) {
    out.why_empty_ = "Jwks does not have [keys] field";
  } else if (!set["keys"].is_array()) {
    out.why_empty_ = "[keys] in Jwks is not an array";
  } else {
    for (const json& jwk : set["keys"]) {
      if (!jwk.is_object()) continue;
      Key key;
      const std::string_view why = ParseKey(jwk, keeps_broken, &key);
      if (why.empty()) out.keys_.push_back(std::move(key));
      if (out.why_empty_.empty()) out.why_empty_ = why;
    }
    if (out.why_empty_.empty()) out.why_empty_ = "Jwks doesn't have any valid public key";
  }
  return out;
}

// Envoy: source/common/jwt/verify.cc, verifyJwtWithoutTimeChecking
JwtStatus JwtKeySet::Verify(const JwtToken& token) const {
  bool fits = false;
  for (const Key& key : keys_) {
    if (!token.key_id.empty() && !key.id.empty() && key.id != token.key_id) continue;
    if (!key.algorithm.empty() && key.algorithm != token.algorithm_name) continue;
    fits = true;
    if (key.ed25519 && token.signature.size() != x509::JwsKey::kEd25519Signature) {
      return JwtStatus::kEd25519SignatureLength;
    }
    if (key.key != nullptr && key.key->Verifies(token.algorithm, token.signed_part, token.signature))
      return JwtStatus::kOk;
  }
  return fits ? JwtStatus::kVerificationFails : JwtStatus::kNoKeyForIdOrAlgorithm;
}

}  // namespace wavetank::envoysim
