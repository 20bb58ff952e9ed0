// AuthorizationPolicies by namespace, and those of a workload (istiod: pilot/pkg/model/authorization.go).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/kinds/authorization_policy.h"

namespace wavetank::pilot {

// Of one workload, by action; each list the root namespace's policies first, then by creation time. They live as long
// as the index that they come from.
struct WorkloadAuthorization {
  using Policies = std::vector<const config::TypedConfig<config::AuthorizationPolicy>*>;
  Policies custom, deny, allow, audit;
};

class AuthorizationPolicies {
 public:
  AuthorizationPolicies() = default;
  // `sorted`: by creation time. `by_target`: as of Attaches().
  AuthorizationPolicies(const std::vector<config::AuthorizationPolicyRef>& sorted, std::string root_namespace,
                        bool by_target);

  // Those of the root namespace and of its own that are for the workload.
  WorkloadAuthorization ForWorkload(std::string_view ns, const config::Labels& labels) const;
  bool empty() const { return by_namespace_.empty(); }

 private:
  std::string root_namespace_;
  bool by_target_ = false;
  std::map<std::string, std::vector<config::AuthorizationPolicyRef>, std::less<>> by_namespace_;
};

}  // namespace wavetank::pilot
