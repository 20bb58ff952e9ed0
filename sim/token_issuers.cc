#include "sim/token_issuers.h"

#include <fmt/format.h>

#include "core/base/json_access.h"
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

absl::StatusOr<std::string> TokenIssuers::Mint(const json& spec, Time now) const {
  const std::string issuer = Text(spec, "issuer"), signer = Text(spec, "signedBy", issuer);
  if (!names_.contains(signer)) {
    return absl::InvalidArgumentError(fmt::format("nobody named '{}' issues tokens in this world", signer));
  }
  const int64_t seconds = x509::UnixSeconds(now);
  const auto in = [&](const char* key) { return seconds + Number(spec, key) / 1'000'000'000; };
  json claims = At(spec, "claims").is_object() ? At(spec, "claims") : json::object();
  claims["iss"] = issuer;
  claims["iat"] = seconds;
  claims["exp"] = in("lifetimeNs");
  if (spec.contains("notBeforeNs")) claims["nbf"] = in("notBeforeNs");
  if (spec.contains("subject")) claims["sub"] = Text(spec, "subject");
  if (!Items(At(spec, "audiences")).empty()) claims["aud"] = At(spec, "audiences");
  const std::string data = x509::Base64Url(JsonText(json{{"alg", "ES256"}, {"kid", kKeyId}, {"typ", "JWT"}})) + "." +
                           x509::Base64Url(JsonText(claims));
  return data + "." + x509::Base64Url(x509::SignEs256(*KeyOf(seed_, signer), data));
}

}  // namespace wavetank::sim
