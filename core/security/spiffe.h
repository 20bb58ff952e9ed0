// SPIFFE identities of workloads: spiffe://<trust domain>/ns/<namespace>/sa/<service account>
// (istiod: pkg/spiffe/spiffe.go).
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::security {

inline constexpr std::string_view kSpiffePrefix = "spiffe://";
inline constexpr std::string_view kDefaultTrustDomain = "cluster.local";

struct SpiffeIdentity {
  std::string trust_domain, ns, service_account;

  std::string ToString() const;
  friend auto operator<=>(const SpiffeIdentity&, const SpiffeIdentity&) = default;
};

// InvalidArgument unless `uri` has exactly the form above. The parts themselves may be empty, as in istiod.
absl::StatusOr<SpiffeIdentity> ParseSpiffeIdentity(std::string_view uri);

// '@' is no character of a URI's host; istiod writes '.' instead (SetTrustDomain).
std::string SanitizeTrustDomain(std::string_view trust_domain);

// The identities and, for each that is a SPIFFE one, its twins in the other trust domains; sorted, unique. What is no
// SPIFFE identity (a DNS name) stays as it is.
std::set<std::string> ExpandWithTrustDomains(const std::set<std::string>& identities,
                                             const std::vector<std::string>& trust_domain_aliases);

}  // namespace wavetank::security
