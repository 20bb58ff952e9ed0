// One rule of an AuthorizationPolicy as a policy of Envoy's RBAC filter: what it says of the destination and the
// request line become permissions, what it says of the caller principals (istiod: pilot/pkg/security/authz/model).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/config/kinds/authorization_policy.h"
#include "core/profile/profile.h"

namespace wavetank::pilot::authz {

class TrustDomains;

// What a release reads of policies beyond those of 1.18.
struct ReadFields {
  bool service_accounts = false, trust_domains = false;  // of sources and of conditions
  bool path_templates = false;                           // paths with {*} and {**}
  bool namespaces_as_text = false;                       // they are no regexes
  bool filter_values_at_once = false;                    // one matcher for all values of a filter's metadata
  static ReadFields Of(const Profile& profile);
};

struct RuleOptions {
  bool tcp = false;
  // Of an ALLOW policy: a rule with a value that does not apply (HTTP on a TCP port, no address) would allow too much
  // without it and is void. Everywhere else the value is left out, so that the rule takes more.
  bool allow = false;
  // Identities are the certificate's as Envoy reads it, else what the istio_authn filter found.
  bool authenticated = false;
  bool string_headers = false;  // headers are matched by StringMatchers
  bool jwt_payload = false;     // what tokens say stands where Envoy's own filter leaves it, not istio_authn
  ReadFields reads;
  std::string_view policy_namespace;            // of service accounts without one
  const TrustDomains* trust_domains = nullptr;  // null: principals stay as they are
};

// All its conditions are on attributes that exist; a rule with others is none.
bool IsKnownRule(const config::AuthorizationPolicy::Rule& rule, const RuleOptions& options);

// An encoded envoy.config.rbac.v3.Policy; nullopt if the rule is void. For a known rule.
std::optional<std::string> EncodeRule(const config::AuthorizationPolicy::Rule& rule, const RuleOptions& options);

// One that matches nothing, and one that matches everything.
const std::string& MatchNever();
const std::string& MatchAll();

}  // namespace wavetank::pilot::authz
