#include "core/security/callers/jwt_authenticator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/x509/jws.h"
#include "core/x509/x509.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::security {
namespace {

using nlohmann::json;

constexpr std::string_view kSubjectPrefix = "system:serviceaccount";
constexpr Duration kNotBeforeLeeway = 5min;

absl::Status BadToken(std::string text) { return absl::UnauthenticatedError(text); }

std::optional<std::string> Base64UrlDecoded(std::string_view part) {
  std::string out;
  if (!absl::WebSafeBase64Unescape({part.data(), part.size()}, &out)) return std::nullopt;
  return out;
}

std::vector<std::string> TextsOf(const json& value) {
  std::vector<std::string> out;
  if (value.is_string()) out.push_back(value.get<std::string>());
  for (const json& item : Items(value)) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

// As Go prints a list of strings with %q: ["RS256" "ES256"].
std::string Quoted(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += fmt::format("{}\"{}\"", out.size() > 1 ? " " : "", text);
  return out + "]";
}

// Seconds since the epoch of a numeric date; nothing without one.
std::optional<Time> DateOf(const json& value) {
  if (!value.is_number()) return std::nullopt;
  const double seconds = value.get<double>() - static_cast<double>(kWorldEpochUnixSeconds);
  constexpr double kFar = 4e9;  // beyond what a Time holds
  return Time{} + std::chrono::seconds(static_cast<int64_t>(std::clamp(seconds, -kFar, kFar)));
}

// "2023-09-01 12:00:00 +0000 UTC"
std::string GoTime(Time time) {
  std::string text = x509::Rfc3339(time);
  if (const size_t t = text.find('T'); t != std::string::npos) text[t] = ' ';
  if (text.ends_with('Z')) text.pop_back();
  return text + " +0000 UTC";
}

std::shared_ptr<const x509::JwsKey> KeyOf(const json& jwk) {
  const auto part = [&](const char* name) { return Base64UrlDecoded(Text(jwk, name)).value_or(""); };
  const std::string kind = Text(jwk, "kty"), curve = Text(jwk, "crv");
  if (kind == "RSA") return x509::JwsKey::Rsa(part("n"), part("e"));
  if (kind != "EC") return nullptr;
  using Curve = x509::JwsKey::Curve;
  for (const auto& [name, which] :
       {std::pair("P-256", Curve::kP256), std::pair("P-384", Curve::kP384), std::pair("P-521", Curve::kP521)}) {
    if (curve == name) return x509::JwsKey::Ec(which, part("x"), part("y"));
  }
  return nullptr;
}

bool KnowsKey(const json& keys, const std::string& kid) {
  return std::any_of(Items(At(keys, "keys")).begin(), Items(At(keys, "keys")).end(),
                     [&](const json& key) { return kid.empty() || Text(key, "kid") == kid; });
}

}  // namespace

absl::StatusOr<JwtRule> ParseJwtRule(std::string_view text) {
  const json said = ParseJson(text);
  if (!said.is_object()) return absl::InvalidArgumentError("failed to unmarshal JWT rule: it is no JSON object");
  JwtRule out;
  out.issuer = Text(said, "issuer");
  out.jwks_uri = Text(said, "jwksUri", Text(said, "jwks_uri"));
  out.audiences = TextsOf(At(said, "audiences"));
  return out;
}

absl::StatusOr<std::unique_ptr<JwtAuthenticator>> JwtAuthenticator::Create(JwtRule rule, std::string trust_domain,
                                                                           WebFetch fetch, Clock now) {
  std::unique_ptr<JwtAuthenticator> out(
      new JwtAuthenticator(std::move(rule), std::move(trust_domain), std::move(fetch), std::move(now)));
  if (out->rule_.jwks_uri.empty()) {
    if (absl::Status status = out->Discover(); !status.ok()) return status;
  }
  return out;
}

absl::Status JwtAuthenticator::Discover() {
  const auto failed = [&](std::string why) {
    return absl::FailedPreconditionError(fmt::format(
        "failed to create the JWT authenticator: failed at creating an OIDC provider for {}: {}", rule_.issuer, why));
  };
  std::string base = rule_.issuer;
  if (base.ends_with('/')) base.pop_back();
  const std::string url = base + "/.well-known/openid-configuration";
  const std::optional<std::string> body = fetch_(url);
  if (!body) return failed(fmt::format("Get \"{}\": no such host", url));
  const json document = ParseJson(*body);
  if (!document.is_object()) return failed("oidc: failed to decode provider discovery object");
  if (Text(document, "issuer") != rule_.issuer) {
    return failed(fmt::format("oidc: issuer did not match the issuer returned by provider, expected \"{}\" got \"{}\"",
                              rule_.issuer, Text(document, "issuer")));
  }
  rule_.jwks_uri = Text(document, "jwks_uri");
  std::vector<std::string> algorithms;
  for (std::string& name : TextsOf(At(document, "id_token_signing_alg_values_supported"))) {
    const auto known = x509::ParseJwsAlgorithm(name);
    if (known && !name.starts_with("HS")) algorithms.push_back(std::move(name));
  }
  if (!algorithms.empty()) algorithms_ = std::move(algorithms);
  return absl::OkStatus();
}

absl::Status JwtAuthenticator::VerifySignature(std::string_view header, std::string_view signed_part,
                                               std::string_view signature) {
  const json said = ParseJson(header);
  if (!said.is_object()) return BadToken("oidc: malformed jwt: its header is no JSON object");
  const std::string name = Text(said, "alg"), kid = Text(said, "kid");
  if (std::find(algorithms_.begin(), algorithms_.end(), name) == algorithms_.end()) {
    return BadToken(fmt::format("oidc: id token signed with unsupported algorithm, expected {} got \"{}\"",
                                Quoted(algorithms_), name));
  }
  const auto algorithm = x509::ParseJwsAlgorithm(name);
  // Keys that are known already first; others are fetched if none of those is the token's.
  for (const bool fetched : {false, true}) {
    if (fetched) {
      std::optional<std::string> fresh = fetch_(rule_.jwks_uri);
      if (!fresh) {
        return BadToken(
            fmt::format("failed to verify signature: fetching keys oidc: get keys failed Get \"{}\": no such host",
                        rule_.jwks_uri));
      }
      keys_ = *std::move(fresh);
    }
    const json keys = ParseJson(keys_);
    if (!keys.is_object() || !KnowsKey(keys, kid)) continue;
    for (const json& jwk : Items(At(keys, "keys"))) {
      if (!kid.empty() && Text(jwk, "kid") != kid) continue;
      const auto key = KeyOf(jwk);
      if (key != nullptr && algorithm && key->Verifies(*algorithm, signed_part, signature)) return absl::OkStatus();
    }
  }
  return BadToken("failed to verify signature: failed to verify id token signature");
}

absl::StatusOr<Caller> JwtAuthenticator::Verify(std::string_view token) {
  const auto unverified = [](std::string_view why) {
    return BadToken(fmt::format("failed to verify the JWT token (error {})", why));
  };
  const auto parts = std::count(token.begin(), token.end(), '.') + 1;
  if (parts != 3)
    return unverified(fmt::format("oidc: malformed jwt: oidc: malformed jwt, expected 3 parts got {}", parts));
  const size_t first = token.find('.'), second = token.find('.', first + 1);
  const auto header = Base64UrlDecoded(token.substr(0, first)),
             payload = Base64UrlDecoded(token.substr(first + 1, second - first - 1)),
             signature = Base64UrlDecoded(token.substr(second + 1));
  if (!header || !payload || !signature) return unverified("oidc: malformed jwt: illegal base64 data");
  const json claims = ParseJson(*payload);
  if (!claims.is_object()) return unverified("oidc: failed to unmarshal claims: the payload is no JSON object");
  const std::string issuer = Text(claims, "iss");
  if (issuer != rule_.issuer) {
    return unverified(
        fmt::format("oidc: id token issued by a different provider, expected \"{}\" got \"{}\"", rule_.issuer, issuer));
  }
  const Time now = now_();
  const Time expires = DateOf(At(claims, "exp")).value_or(Time{} - std::chrono::seconds(kWorldEpochUnixSeconds));
  if (expires < now) return unverified(fmt::format("oidc: token is expired (Token Expiry: {})", GoTime(expires)));
  if (const std::optional<Time> from = DateOf(At(claims, "nbf")); from && now + kNotBeforeLeeway < *from) {
    return unverified(
        fmt::format("oidc: current time {} before the nbf (not before) time: {}", GoTime(now), GoTime(*from)));
  }
  if (absl::Status status = VerifySignature(*header, token.substr(0, second), *signature); !status.ok()) {
    return unverified(Message(status));
  }
  // istiod reads its claims into a list of texts (security/pkg/server/ca/authenticate/oidc.go, JwtPayload).
  if (At(claims, "aud").is_string()) {
    return BadToken(
        "failed to extract claims from ID token: json: cannot unmarshal string into Go struct field JwtPayload.aud of "
        "type []string");
  }

  const std::string subject = Text(claims, "sub");
  const size_t ns = subject.find(':', kSubjectPrefix.size());
  const size_t account = ns == std::string::npos ? ns : subject.find(':', ns + 1);
  if (!subject.starts_with(kSubjectPrefix) || account == std::string::npos) {
    return BadToken(fmt::format("invalid sub {}", subject));
  }
  const std::vector<std::string> audiences = TextsOf(At(claims, "aud"));
  const bool meant = std::any_of(audiences.begin(), audiences.end(), [&](const std::string& audience) {
    return std::find(rule_.audiences.begin(), rule_.audiences.end(), audience) != rule_.audiences.end();
  });
  if (!meant) return BadToken(fmt::format("invalid audiences [{}]", fmt::join(audiences, " ")));
  Caller caller;
  caller.source = AuthSource::kIdToken;
  std::string name = subject.substr(account + 1);
  name = name.substr(0, name.find(':'));
  caller.identities = {SpiffeIdentity{trust_domain_, subject.substr(ns + 1, account - ns - 1), name}.ToString()};
  return caller;
}

void JwtAuthenticator::Authenticate(const PeerCredentials& peer, AuthenticateCallback done) {
  if (peer.bearer_token.empty()) {
    return done(BadToken("ID token extraction error: no bearer token exists in HTTP authorization header"));
  }
  done(Verify(peer.bearer_token));
}

}  // namespace wavetank::security
