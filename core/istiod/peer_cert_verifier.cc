#include "core/istiod/peer_cert_verifier.h"

#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "core/base/text/go_duration.h"
#include "core/istiod/start_lines.h"
#include "core/security/spiffe.h"
#include "core/security/spiffe_bundle.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

constexpr Duration kPatience = 10s;     // totalRetryTimeout
constexpr Duration kFirstPause = 50ms;  // firstRetryBackOffTime

}  // namespace

// istiod: RetrieveSpiffeBundleRootCertsFromStringInput.
void PeerCertVerifier::Fetch(const std::string& endpoints, absl::AnyInvocable<void(absl::Status)> done) {
  if (endpoints.empty()) return done(absl::OkStatus());
  std::vector<Endpoint> wanted;
  for (const std::string& tuple : std::vector<std::string>(absl::StrSplit(endpoints, "||"))) {
    const std::vector<std::string> items = absl::StrSplit(tuple, '|');
    if (items.size() != 2) {
      return done(absl::InvalidArgumentError(fmt::format(
          "failed to create discovery service: config is invalid: {}. Expected <trustdomain>|<url>", tuple)));
    }
    wanted.push_back({items[0], items[1].starts_with("https://") ? items[1] : "https://" + items[1]});
  }
  done_ = std::move(done);
  FetchLast(std::move(wanted), host_.Now(), kFirstPause);
}

void PeerCertVerifier::FetchLast(std::vector<Endpoint> wanted, Time since, Duration pause) {
  while (!wanted.empty()) {
    const auto& [domain, url] = wanted.back();
    const std::optional<std::string> body = fetch_ ? fetch_(url) : std::nullopt;
    if (!body && host_.Now() - since <= kPatience) {
      lines_.Warn(
          fmt::format("Calling {} failed with error: no such host, retry in {}", url, GoDurationText(pause.count())));
      host_.RunAfter(pause,
                     [this, wanted = std::move(wanted), since, pause, alive = std::weak_ptr<char>(alive_)]() mutable {
                       if (!alive.expired()) FetchLast(std::move(wanted), since, pause * 2);
                     });
      return;
    }
    const auto roots = body ? security::ParseSpiffeBundle(domain, url, *body)
                            : absl::UnavailableError(fmt::format(
                                  "exhausted retries to fetch the SPIFFE bundle {} from url {}. Latest error: Calling "
                                  "{} failed with error: no such host",
                                  domain, url, url));
    if (!roots.ok()) {
      return done_(absl::Status(roots.status().code(),
                                fmt::format("failed to create discovery service: {}", Message(roots.status()))));
    }
    lines_.Say(fmt::format("Loaded SPIFFE trust bundle for: {}, containing {} certs", domain, roots->size()), "spiffe");
    std::string& pem = roots_pem_[domain];
    for (const std::string& root : *roots) pem += root;
    wanted.pop_back();
    since = host_.Now();
    pause = kFirstPause;
  }
  done_(absl::OkStatus());
}

// istiod: VerifyPeerCert.
absl::Status PeerCertVerifier::Verify(const std::vector<x509::CertificateRef>& chain, std::string_view own_domain,
                                      const std::string& own_roots_pem) const {
  if (chain.empty()) return absl::OkStatus();
  const std::vector<std::string>& uris = chain.front()->sans().uris;
  if (uris.size() != 1) {
    return absl::UnauthenticatedError(
        fmt::format("peer certificate does not contain 1 URI type SAN, detected {}", uris.size()));
  }
  std::string domain = uris.front();
  if (domain.starts_with(security::kSpiffePrefix)) domain.erase(0, security::kSpiffePrefix.size());
  domain = domain.substr(0, domain.find('/'));
  std::string pem;
  if (domain == own_domain) pem = own_roots_pem;
  if (const auto more = roots_pem_.find(domain); more != roots_pem_.end()) pem += more->second;
  if (pem.empty()) return absl::UnauthenticatedError(fmt::format("no cert pool found for trust domain {}", domain));
  const absl::StatusOr<x509::TrustBundleRef> roots = x509::TrustBundle::FromPem(pem, "roots of clients");
  if (!roots.ok()) return roots.status();
  if (!x509::Verify(chain, **roots, host_.WallClock(), x509::Purpose::kClientAuth).ok()) {
    return absl::UnauthenticatedError("x509: certificate signed by unknown authority");
  }
  return absl::OkStatus();
}

}  // namespace wavetank::pilot
