#include "fakes/envoy/tls/findings.h"

#include <algorithm>
#include <string_view>

#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

constexpr size_t kMostNamed = 3;

std::string NameOrSerial(const x509::Certificate& certificate) {
  return certificate.subject().empty() ? "serial " + certificate.serial() : certificate.subject();
}

// Whose certificate a leaf is.
std::string OwnerOf(const x509::Certificate& leaf) {
  if (!leaf.sans().uris.empty()) return leaf.sans().uris.front();
  if (!leaf.sans().dns_names.empty()) return leaf.sans().dns_names.front();
  return NameOrSerial(leaf);
}

std::string Listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) out += (i == 0 ? "" : "; ") + names[i];
  if (names.size() > kMostNamed) out += fmt::format(" and {} more", names.size() - kMostNamed);
  return out;
}

// The leaf, who signed it, who signed that, ... as far as `chain` and `trusted` have them, by names.
std::vector<x509::CertificateRef> Ordered(const std::vector<x509::CertificateRef>& chain,
                                          const x509::TrustBundle& trusted) {
  std::vector<x509::CertificateRef> out = {chain.front()};
  while (!out.back()->self_signed() && out.size() <= chain.size()) {
    const auto signed_it = [&](const x509::CertificateRef& c) { return c->subject() == out.back()->issuer(); };
    auto at = std::find_if(chain.begin() + 1, chain.end(), signed_it);
    if (at != chain.end()) {
      out.push_back(*at);
      continue;
    }
    const auto root = std::find_if(trusted.roots().begin(), trusted.roots().end(), signed_it);
    if (root == trusted.roots().end()) break;
    out.push_back(*root);
  }
  return out;
}

// "the certificate of spiffe://a", "O=Istio, CN=CA, which signs for spiffe://a,"
std::string AtFault(const std::vector<x509::CertificateRef>& ordered, size_t depth) {
  const std::string owner = OwnerOf(*ordered.front());
  if (depth == 0 || depth >= ordered.size()) return "the certificate of " + owner;
  return fmt::format("the certificate of {}, which signs for {},", NameOrSerial(*ordered[depth]), owner);
}

std::string UnknownRoot(const std::vector<x509::CertificateRef>& chain, const x509::TrustBundle& trusted) {
  const std::string owner = OwnerOf(*chain.front());
  if (trusted.roots().empty()) return fmt::format("no root is trusted that could vouch for {}", owner);
  // What was presented, and nothing of one's own: the top of it is what is not known.
  static const x509::TrustBundleRef kNone = x509::TrustBundle::Of({});
  const x509::CertificateRef top = Ordered(chain, *kNone).back();
  const std::string name =
      top->self_signed() ? NameOrSerial(*top) : (top->issuer().empty() ? "its signer" : top->issuer());
  std::vector<std::string> roots;
  bool namesake = false;
  for (const x509::CertificateRef& root : trusted.roots()) {
    namesake |= root->subject() == name;
    roots.push_back(NameOrSerial(*root));
  }
  if (chain.front() == top && top->self_signed()) {
    return fmt::format("the certificate of {} is signed by itself, and not among the trusted ones ({})", owner,
                       Listed(roots));
  }
  if (namesake) {
    return fmt::format("the root of the certificate of {} is another than the trusted one of the same name, {}", owner,
                       name);
  }
  return fmt::format("the root of the certificate of {}, {}, is not among the trusted ones ({})", owner, name,
                     Listed(roots));
}

std::string Expected(const SanMatch& san) {
  switch (san.match.kind()) {
    case StringMatch::Kind::kPrefix:
      return san.match.text() + "*";
    case StringMatch::Kind::kSuffix:
      return "*" + san.match.text();
    case StringMatch::Kind::kContains:
      return "*" + san.match.text() + "*";
    case StringMatch::Kind::kRegex:
      return "what matches " + san.match.text();
    case StringMatch::Kind::kAny:
    case StringMatch::Kind::kExact:
      break;
  }
  return san.match.text();
}

// "td" of "spiffe://td/ns/a/sa/b"; empty of other names, and where the rest of a pattern may change it.
std::string_view TrustDomainOf(std::string_view name) {
  constexpr std::string_view kScheme = "spiffe://";
  if (!name.starts_with(kScheme)) return {};
  name.remove_prefix(kScheme.size());
  const size_t slash = name.find('/');
  return slash == name.npos ? std::string_view() : name.substr(0, slash);
}

}  // namespace

std::string ChainFinding(const std::vector<x509::CertificateRef>& chain, const x509::TrustBundle& trusted,
                         const x509::VerifyResult& result, Time now) {
  const std::vector<x509::CertificateRef> ordered = Ordered(chain, trusted);
  const auto at = static_cast<size_t>(std::max(result.depth, 0));
  // Of a chain that was built over others of the same names it is the one whose dates say so.
  const auto whose = [&](auto&& is_wrong) {
    if (at < ordered.size() && is_wrong(*ordered[at])) return at;
    const auto found = std::find_if(ordered.begin(), ordered.end(), [&](const auto& c) { return is_wrong(*c); });
    return static_cast<size_t>(found - ordered.begin());
  };
  switch (result.error) {
    case x509::VerifyError::kExpired: {
      const size_t depth = whose([&](const x509::Certificate& c) { return c.not_after() <= now; });
      if (depth >= ordered.size()) break;
      return fmt::format("{} expired at {}", AtFault(ordered, depth), x509::Rfc3339(ordered[depth]->not_after()));
    }
    case x509::VerifyError::kNotYetValid: {
      const size_t depth = whose([&](const x509::Certificate& c) { return now < c.not_before(); });
      if (depth >= ordered.size()) break;
      return fmt::format("{} is not valid before {}", AtFault(ordered, depth),
                         x509::Rfc3339(ordered[depth]->not_before()));
    }
    case x509::VerifyError::kUnknownCa:
      return UnknownRoot(chain, trusted);
    case x509::VerifyError::kBadSignature:
      return AtFault(ordered, at) + " has a signature that is not its signer's";
    case x509::VerifyError::kNotACa:
      return fmt::format("{} may not sign others ({})", AtFault(ordered, at), result.reason);
    case x509::VerifyError::kWrongPurpose:
      return AtFault(ordered, at) + " is not for this side of a connection (extended key usage)";
    case x509::VerifyError::kNone:
    case x509::VerifyError::kEmpty:
    case x509::VerifyError::kOther:
      break;
  }
  return fmt::format("{}: {}", AtFault(ordered, at), result.reason);
}

std::string NamesFinding(const x509::SubjectAltNames& names, const std::vector<SanMatch>& expected) {
  std::vector<std::string> has = names.uris, wanted;
  has.insert(has.end(), names.dns_names.begin(), names.dns_names.end());
  has.insert(has.end(), names.ip_addresses.begin(), names.ip_addresses.end());
  for (const SanMatch& each : expected) wanted.push_back(Expected(each));
  // The domain alone tells them apart where all names of both sides are of one.
  std::string_view own, other;
  bool by_domain = !has.empty() && !wanted.empty();
  for (const std::string& name : has) {
    by_domain &= !TrustDomainOf(name).empty() && (own.empty() || own == TrustDomainOf(name));
    own = TrustDomainOf(name);
  }
  std::vector<std::string> domains;
  for (const std::string& name : wanted) {
    other = TrustDomainOf(name);
    by_domain &= !other.empty() && other != own;
    if (std::find(domains.begin(), domains.end(), other) == domains.end()) domains.emplace_back(other);
  }
  if (by_domain) {
    return fmt::format("it is of {}, whose trust domain {} is not the expected {}", Listed(has), own, Listed(domains));
  }
  if (has.empty()) return fmt::format("it has no name, and {} is expected", Listed(wanted));
  return fmt::format("it is of {}, and {} is expected", Listed(has), Listed(wanted));
}

}  // namespace wavetank::envoysim
