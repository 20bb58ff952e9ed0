// security.istio.io AuthorizationPolicy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/kinds/policy_target.h"
#include "core/config/kinds/typed_config.h"

namespace wavetank::config {

struct AuthorizationPolicy {
  // The API's values.
  enum class Action : uint8_t { kAllow, kDeny, kAudit, kCustom };

  // A property of a request: one of `values`, and none of `not_values`. Neither: not asked for.
  struct Values {
    std::vector<std::string> values, not_values;
    bool empty() const { return values.empty() && not_values.empty(); }
    friend bool operator==(const Values&, const Values&) = default;
  };
  struct Source {
    Values principals, request_principals, namespaces, ip_blocks, remote_ip_blocks, service_accounts, trust_domains;
    friend bool operator==(const Source&, const Source&) = default;
  };
  struct Operation {
    Values hosts, ports, methods, paths;
    friend bool operator==(const Operation&, const Operation&) = default;
  };
  struct Condition {
    std::string key;
    Values values;
    friend bool operator==(const Condition&, const Condition&) = default;
  };
  // Any source, any operation, all conditions.
  struct Rule {
    std::vector<Source> from;
    std::vector<Operation> to;
    std::vector<Condition> when;
    friend bool operator==(const Rule&, const Rule&) = default;
  };

  std::optional<Labels> selector;     // matchLabels
  std::vector<PolicyTarget> targets;  // targetRefs, or targetRef
  std::vector<Rule> rules;            // none: nothing matches
  Action action = Action::kAllow;
  std::string provider;  // of CUSTOM: an extension provider of the mesh config
  friend bool operator==(const AuthorizationPolicy&, const AuthorizationPolicy&) = default;
};
using AuthorizationPolicyRef = TypedConfigRef<AuthorizationPolicy>;

}  // namespace wavetank::config
