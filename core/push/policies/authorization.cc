#include "core/push/policies/authorization.h"

#include "core/push/policies/policy_attachment.h"

namespace wavetank::pilot {

AuthorizationPolicies::AuthorizationPolicies(const std::vector<config::AuthorizationPolicyRef>& sorted,
                                             std::string root_namespace, bool by_target)
    : root_namespace_(std::move(root_namespace)), by_target_(by_target) {
  for (const config::AuthorizationPolicyRef& policy : sorted) by_namespace_[policy->meta.ns].push_back(policy);
}

WorkloadAuthorization AuthorizationPolicies::ForWorkload(std::string_view ns, const config::Labels& labels) const {
  using Action = config::AuthorizationPolicy::Action;
  WorkloadAuthorization out;
  const auto look = [&](std::string_view in) {
    const auto it = by_namespace_.find(in);
    if (it == by_namespace_.end()) return;
    for (const config::AuthorizationPolicyRef& policy : it->second) {
      if (!Attaches(policy->spec, in, ns, labels, by_target_)) continue;
      switch (policy->spec.action) {
        case Action::kAllow:
          out.allow.push_back(policy.get());
          break;
        case Action::kDeny:
          out.deny.push_back(policy.get());
          break;
        case Action::kAudit:
          out.audit.push_back(policy.get());
          break;
        case Action::kCustom:
          out.custom.push_back(policy.get());
          break;
      }
    }
  };
  if (!root_namespace_.empty()) look(root_namespace_);
  if (ns != root_namespace_) look(ns);
  return out;
}

}  // namespace wavetank::pilot
