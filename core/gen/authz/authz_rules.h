// One rule of an AuthorizationPolicy as a policy of Envoy's RBAC filter: what it says of the destination and the
// request line become permissions, what it says of the caller principals (istiod: pilot/pkg/security/authz/model).
#pragma once

#include <optional>
#include <string>

#include "core/config/kinds/authorization_policy.h"

namespace wavetank::pilot::authz {

class TrustDomains;

struct RuleOptions {
  bool tcp = false;
  // Of an ALLOW policy: a rule with a value that does not apply (HTTP on a TCP port, no address) would allow too much
  // without it and is void. Everywhere else the value is left out, so that the rule takes more.
  bool allow = false;
  // Identities are the certificate's as Envoy reads it, else what the istio_authn filter found.
  bool authenticated = false;
  bool string_headers = false;  // headers are matched by StringMatchers
  bool jwt_payload = false;     // what tokens say stands where Envoy's own filter leaves it, not istio_authn
  const TrustDomains* trust_domains = nullptr;  // null: principals stay as they are
};

// All its conditions are on attributes that exist; a rule with others is none.
bool IsKnownRule(const config::AuthorizationPolicy::Rule& rule);

// An encoded envoy.config.rbac.v3.Policy; nullopt if the rule is void. For a known rule.
std::optional<std::string> EncodeRule(const config::AuthorizationPolicy::Rule& rule, const RuleOptions& options);

// One that matches nothing, and one that matches everything.
const std::string& MatchNever();
const std::string& MatchAll();

}  // namespace wavetank::pilot::authz
