#include "core/gen/authz/authz_trust_domains.h"

#include <algorithm>

namespace wavetank::pilot::authz {
namespace {

// "x*" takes what begins with x.
bool TakesPrefix(std::string_view pattern, std::string_view text) {
  return pattern.ends_with('*') && text.starts_with(pattern.substr(0, pattern.size() - 1));
}
// "*x" takes what ends with x.
bool TakesSuffix(std::string_view pattern, std::string_view text) {
  return pattern.starts_with('*') && text.ends_with(pattern.substr(1));
}

}  // namespace

TrustDomains::TrustDomains(const config::MeshConfig& mesh) {
  domains_.reserve(1 + mesh.trust_domain_aliases.size());
  domains_.push_back(mesh.trust_domain);
  domains_.insert(domains_.end(), mesh.trust_domain_aliases.begin(), mesh.trust_domain_aliases.end());
}

bool TrustDomains::Knows(std::string_view domain) const {
  if (domain == "cluster.local") return true;  // stands for the mesh's own domain, whatever that is
  return std::any_of(domains_.begin(), domains_.end(), [&](std::string_view own) {
    return own == domain || TakesPrefix(own, domain) || TakesPrefix(domain, own) || TakesSuffix(own, domain) ||
           TakesSuffix(domain, own);
  });
}

std::vector<std::string> TrustDomains::Expand(const std::vector<std::string>& principals) const {
  std::vector<std::string> out;
  out.reserve(principals.size() * domains_.size());
  for (const std::string& principal : principals) {
    // "domain/ns/NAMESPACE/sa/ACCOUNT"; anything else names no domain, nor does "*".
    const size_t slash = principal.find('/');
    const std::string_view domain = std::string_view(principal).substr(0, slash);
    if (std::count(principal.begin(), principal.end(), '/') != 4 || domain == "*" || !Knows(domain)) {
      out.push_back(principal);
      continue;
    }
    const std::string_view rest = std::string_view(principal).substr(slash);
    const size_t first = out.size();
    for (const std::string& own : domains_) {
      // "*-td" is left alone where it takes the domain.
      std::string moved = TakesSuffix(domain, own) ? principal : std::string(own).append(rest);
      if (std::find(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), moved) == out.end()) {
        out.push_back(std::move(moved));
      }
    }
  }
  return out;
}

// istiod: pilot/pkg/security/trustdomain/bundle.go, ExpandTrustDomainAliases.
std::vector<std::string> TrustDomains::ExpandDomains(const std::vector<std::string>& domains) const {
  std::vector<std::string> out;
  const auto add = [&](const std::string& domain) {
    if (std::find(out.begin(), out.end(), domain) == out.end()) out.push_back(domain);
  };
  for (const std::string& domain : domains) {
    if (std::find(domains_.begin(), domains_.end(), domain) == domains_.end()) {
      add(domain);
    } else {
      for (const std::string& own : domains_) add(own);
    }
  }
  return out;
}

}  // namespace wavetank::pilot::authz
