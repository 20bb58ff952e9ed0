// JSON Web Tokens of an OpenID Connect issuer as identities, by JWT_RULE (istiod:
// security/pkg/server/ca/authenticate/oidc.go, which verifies with coreos/go-oidc).
//
// The keys are fetched from the rule's jwksUri, or from where the issuer's discovery document says, asked once at the
// start; again whenever a token names a key that is not known. Without a discovery document RS256 alone is taken.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "core/security/authenticator.h"

namespace wavetank::security {

struct JwtRule {
  std::string issuer, jwks_uri;
  std::vector<std::string> audiences;
};
// JWT_RULE's JSON: {"issuer": ..., "jwksUri" or "jwks_uri": ..., "audiences": [...]}. InvalidArgument: it is no object.
absl::StatusOr<JwtRule> ParseJwtRule(std::string_view text);

class JwtAuthenticator final : public Authenticator {
 public:
  // What a URL answers; nothing: no server does.
  using WebFetch = std::function<std::optional<std::string>(const std::string& url)>;
  using Clock = std::function<Time()>;

  // FailedPrecondition, in istiod's words: the issuer could not be asked where its keys are.
  static absl::StatusOr<std::unique_ptr<JwtAuthenticator>> Create(JwtRule rule, std::string trust_domain,
                                                                  WebFetch fetch, Clock now);

  std::string_view type() const override { return "IDTokenAuthenticator"; }
  void Authenticate(const PeerCredentials& peer, AuthenticateCallback done) override;

 private:
  JwtAuthenticator(JwtRule rule, std::string trust_domain, WebFetch fetch, Clock now)
      : rule_(std::move(rule)),
        trust_domain_(std::move(trust_domain)),
        fetch_(std::move(fetch)),
        now_(std::move(now)) {}
  absl::Status Discover();
  absl::StatusOr<Caller> Verify(std::string_view token);
  absl::Status VerifySignature(std::string_view header, std::string_view signed_part, std::string_view signature);

  JwtRule rule_;
  const std::string trust_domain_;
  const WebFetch fetch_;
  const Clock now_;
  std::vector<std::string> algorithms_ = {"RS256"};
  std::string keys_;  // the JSON Web Key Set that was fetched last
};

}  // namespace wavetank::security
