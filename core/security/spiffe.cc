#include "core/security/spiffe.h"

#include "fmt/format.h"

namespace wavetank::security {

std::string SpiffeIdentity::ToString() const {
  return fmt::format("{}{}/ns/{}/sa/{}", kSpiffePrefix, trust_domain, ns, service_account);
}

absl::StatusOr<SpiffeIdentity> ParseSpiffeIdentity(std::string_view uri) {
  std::vector<std::string_view> parts;
  if (uri.starts_with(kSpiffePrefix)) {
    std::string_view rest = uri.substr(kSpiffePrefix.size());
    for (size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
      parts.push_back(rest.substr(0, slash));
      rest.remove_prefix(slash + 1);
    }
    parts.push_back(rest);
  }
  if (parts.size() != 5 || parts[1] != "ns" || parts[3] != "sa") {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is no SPIFFE identity; expected spiffe://<trust domain>/ns/<namespace>/sa/<service account>",
        uri.substr(0, 256)));
  }
  return SpiffeIdentity{std::string(parts[0]), std::string(parts[2]), std::string(parts[4])};
}

std::string SanitizeTrustDomain(std::string_view trust_domain) {
  std::string out(trust_domain);
  for (char& c : out) {
    if (c == '@') c = '.';
  }
  return out;
}

std::set<std::string> ExpandWithTrustDomains(const std::set<std::string>& identities,
                                             const std::vector<std::string>& trust_domain_aliases) {
  std::set<std::string> out = identities;
  for (const std::string& identity : identities) {
    absl::StatusOr<SpiffeIdentity> parsed = ParseSpiffeIdentity(identity);
    if (!parsed.ok()) continue;
    for (const std::string& alias : trust_domain_aliases) {
      parsed->trust_domain = alias;
      out.insert(parsed->ToString());
    }
  }
  return out;
}

}  // namespace wavetank::security
