// The filters that enforce a workload's AuthorizationPolicies, in HTTP and in TCP chains alike: RBAC for ALLOW, DENY
// and AUDIT, an external authorizer behind an RBAC filter for CUSTOM (istiod: pilot/pkg/security/authz/builder,
// pilot/pkg/networking/plugin/authz).
#pragma once

#include <optional>
#include <string>

#include "core/gen/authz/authz_trust_domains.h"
#include "core/model/proxy.h"
#include "core/push/policies/authorization.h"

namespace wavetank::pilot {

class PushContext;

class AuthzFilters {
 public:
  // Both must outlive the object.
  AuthzFilters(const Proxy& proxy, const PushContext& push);

  // Encoded HttpConnectionManager.http_filters fields; of CUSTOM policies, and of the others, which come after those
  // that find out the client's identity. Made when first asked for.
  const std::string& CustomHttp();
  const std::string& Http();
  // Encoded FilterChain.filters fields, likewise.
  const std::string& CustomTcp();
  const std::string& Tcp();

 private:
  enum class Action : uint8_t { kAllow, kDeny, kLog };  // Envoy's
  using Policies = WorkloadAuthorization::Policies;
  struct Rules {
    std::optional<std::string> enforced, shadow;  // encoded RBAC messages; nullopt: no policy is to be
  };
  // `suffix`: of the rules' names.
  Rules Encode(const Policies& policies, Action action, bool custom, bool tcp, std::string_view suffix = {}) const;
  std::string RbacFilter(const Policies& policies, Action action, bool tcp) const;
  std::string CustomFilters(bool tcp) const;
  std::string FiltersOfProvider(const Policies& policies, size_t providers, bool tcp) const;

  const PushContext& push_;
  const WorkloadAuthorization policies_;
  const bool authenticated_, jwt_payload_;
  std::optional<authz::TrustDomains> trust_domains_;
  std::optional<std::string> custom_http_, http_, custom_tcp_, tcp_;
};

}  // namespace wavetank::pilot
