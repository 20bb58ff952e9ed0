// External authorizers of CUSTOM AuthorizationPolicies: extension providers of the mesh config as Envoy's ext_authz
// filters (istiod: pilot/pkg/security/authz/builder/extauthz.go).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/push/policies/authorization.h"

namespace wavetank::pilot {
class PushContext;
}

namespace wavetank::pilot::authz {

// Before the names of policies, so that the authorizer's filter knows a match of its own.
inline constexpr std::string_view kExtAuthzPrefix = "istio-ext-authz";
inline constexpr std::string_view kExtAuthzShadowPrefix = "istio_ext_authz_";

struct ExtAuthz {
  std::string http, tcp;  // encoded ExtAuthz messages of either filter; `tcp` empty: the provider speaks HTTP only
};

// The one provider that all the policies name; nullopt if they name several, or one that is missing, ambiguous or
// wrong.
std::optional<ExtAuthz> ResolveExtAuthz(const WorkloadAuthorization::Policies& policies, const PushContext& push);

}  // namespace wavetank::pilot::authz
