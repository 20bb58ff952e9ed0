#include "sim/apps/token_issuers.h"

#include <fmt/format.h>

#include "core/base/json_text.h"
#include "core/x509/calendar.h"
#include "core/x509/jws.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

constexpr char kKeyId[] = "wavetank";

x509::KeyPairRef KeyOf(uint64_t seed, const std::string& issuer) {
  return x509::KeyPair::Derive(seed, "token issuer " + issuer);
}

}  // namespace

std::string TokenIssuers::KeySet(const std::string& name) const {
  return fmt::format(R"({{"keys":[{}]}})", x509::PublicJwk(*KeyOf(seed_, name), kKeyId));
}

absl::StatusOr<std::string> TokenIssuers::Mint(const TokenToMint& spec, Time now) const {
  const std::string& signer = spec.signed_by.empty() ? spec.issuer : spec.signed_by;
  if (!names_.contains(signer)) {
    return absl::InvalidArgumentError(fmt::format("no issuer of tokens in this world is named '{}'", signer));
  }
  const int64_t seconds = x509::UnixSeconds(now);
  json claims = spec.claims.is_object() ? spec.claims : json::object();
  claims["iss"] = spec.issuer;
  claims["iat"] = seconds;
  claims["exp"] = seconds + spec.lifetime / std::chrono::seconds(1);
  if (spec.not_before) claims["nbf"] = seconds + *spec.not_before / std::chrono::seconds(1);
  if (!spec.subject.empty()) claims["sub"] = spec.subject;
  if (!spec.audiences.empty()) claims["aud"] = spec.audiences;
  const std::string data = x509::Base64Url(JsonText(json{{"alg", "ES256"}, {"kid", kKeyId}, {"typ", "JWT"}})) + "." +
                           x509::Base64Url(JsonText(claims));
  return data + "." + x509::Base64Url(x509::SignEs256(*KeyOf(seed_, signer), data));
}

}  // namespace wavetank::sim
