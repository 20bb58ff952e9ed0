// Names of hosts as Istio's configuration may hold them (istiod: pkg/config/validation/validation.go and
// pkg/config/labels/instance.go).
#pragma once

#include <string_view>

namespace wavetank::config {

// Letters, digits and hyphens, at most 63, no hyphen at either end.
bool IsDnsLabel(std::string_view text);
// Labels, the last of them no number; a dot may stand at the end. istiod: ValidateFQDN.
bool IsDomainName(std::string_view text);
// The same, where the first label may be "*" or begin with "*" or "*-". istiod: ValidateWildcardDomain.
bool IsWildcardDomain(std::string_view text);
// As a name, but the last label may be a number. istiod: ValidateTrustDomain.
bool IsTrustDomain(std::string_view text);
// "name-or-address:port". istiod: ValidateProxyAddress.
bool IsHostAndPort(std::string_view text);

}  // namespace wavetank::config
