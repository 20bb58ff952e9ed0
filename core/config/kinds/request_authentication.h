// security.istio.io RequestAuthentication.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/kinds/policy_target.h"
#include "core/config/kinds/typed_config.h"

namespace wavetank::config {

struct RequestAuthentication {
  struct FromHeader {
    std::string name, prefix;
    friend bool operator==(const FromHeader&, const FromHeader&) = default;
  };
  struct ClaimToHeader {
    std::string header, claim;
    friend bool operator==(const ClaimToHeader&, const ClaimToHeader&) = default;
  };
  // The issuer of accepted tokens. Neither `jwks` nor `jwks_uri`: the issuer is asked where its keys are.
  struct JwtRule {
    std::string issuer;
    std::vector<std::string> audiences;
    std::string jwks_uri, jwks;
    std::vector<FromHeader> from_headers;
    std::vector<std::string> from_params, from_cookies, space_delimited_claims;
    std::string output_payload_to_header;
    bool forward_original_token = false;
    std::vector<ClaimToHeader> output_claim_to_headers;
    friend bool operator==(const JwtRule&, const JwtRule&) = default;
  };

  std::optional<Labels> selector;     // matchLabels
  std::vector<PolicyTarget> targets;  // targetRefs, or targetRef
  std::vector<JwtRule> jwt_rules;
  friend bool operator==(const RequestAuthentication&, const RequestAuthentication&) = default;
};
using RequestAuthenticationRef = TypedConfigRef<RequestAuthentication>;

}  // namespace wavetank::config
