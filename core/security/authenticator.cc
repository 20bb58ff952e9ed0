#include "core/security/authenticator.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "core/base/containers/memo.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::security {
namespace {
absl::Status Refused(std::string text) { return absl::UnauthenticatedError(text); }

using Audiences = std::optional<std::vector<std::string>>;

Audiences ReadAudiences(std::string_view token) {
  const size_t first = token.find('.'), second = first == token.npos ? first : token.find('.', first + 1);
  std::string payload;
  if (second == token.npos) return std::nullopt;
  const std::string_view part = token.substr(first + 1, second - first - 1);
  if (!absl::WebSafeBase64Unescape({part.data(), part.size()}, &payload)) return std::nullopt;
  const nlohmann::json claims = ParseJson(payload);
  if (!claims.is_object()) return std::nullopt;
  std::vector<std::string> out;
  if (const nlohmann::json& aud = At(claims, "aud"); aud.is_string()) out.push_back(aud.get<std::string>());
  for (const nlohmann::json& audience : Items(At(claims, "aud"))) out.push_back(TextOf(audience));
  return out;
}

// The claim `aud` of a JSON Web Token; nothing if the token is none. A proxy shows one token for an hour.
Audiences AudiencesOf(std::string_view token) {
  thread_local Memo<Audiences> read(4096);
  if (const Audiences* known = read.Find(token)) return *known;
  Audiences out = ReadAudiences(token);
  read.Keep(std::string(token), out);
  return out;
}

bool NamesApiServer(std::string_view audience) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (audience.starts_with(scheme)) audience.remove_prefix(scheme.size());
  }
  return audience.starts_with("kubernetes.default.svc");
}

// For which audiences a token is reviewed; none: for the API server's own.
std::vector<std::string> ReviewedFor(std::string_view token, const TokenPolicy& policy) {
  const Audiences said = AudiencesOf(token);
  if (policy.require_third_party || !said) return policy.audiences;
  if (said->empty()) return {};
  const bool for_api_server = said->size() == 1 && NamesApiServer(said->front());
  return for_api_server && policy.first_party ? std::vector<std::string>() : policy.audiences;
}
}  // namespace

void ClientCertAuthenticator::Authenticate(const PeerCredentials& peer, AuthenticateCallback done) {
  if (peer.verified_chain.empty()) return done(Refused("no client certificate is presented"));
  const x509::SubjectAltNames& sans = peer.verified_chain.front()->sans();
  Caller caller;
  caller.source = AuthSource::kClientCertificate;
  caller.identities = sans.uris;
  caller.identities.insert(caller.identities.end(), sans.dns_names.begin(), sans.dns_names.end());
  if (caller.identities.empty()) return done(Refused("the SAN extension does not exist"));
  done(std::move(caller));
}

void KubeJwtAuthenticator::Authenticate(const PeerCredentials& peer, AuthenticateCallback done) {
  if (peer.bearer_token.empty()) {
    return done(Refused("target JWT extraction error: no bearer token exists in HTTP authorization header"));
  }
  const std::string cluster = peer.cluster_id.empty() ? own_cluster_ : peer.cluster_id;
  kube::TokenReviewer* reviewer = reviewer_of_(cluster);
  if (reviewer == nullptr) {
    return done(Refused(fmt::format("could not get cluster {}'s kube client", peer.cluster_id)));
  }
  reviewer->Review(peer.bearer_token, ReviewedFor(peer.bearer_token, policy_),
                   [cluster, trust_domain = trust_domain_,
                    done = std::move(done)](absl::StatusOr<kube::TokenClaims> claims) mutable {
                     if (!claims.ok()) {
                       return done(Refused(fmt::format("failed to validate the JWT from cluster \"{}\": {}", cluster,
                                                       Message(claims.status()))));
                     }
                     if (claims->service_account.empty() || claims->ns.empty()) {
                       return done(Refused("failed to parse the JWT; service account and namespace required"));
                     }
                     Caller caller;
                     caller.source = AuthSource::kIdToken;
                     caller.identities = {SpiffeIdentity{trust_domain, claims->ns, claims->service_account}.ToString()};
                     caller.ns = std::move(claims->ns);
                     caller.service_account = std::move(claims->service_account);
                     caller.pod_name = std::move(claims->pod_name);
                     caller.pod_uid = std::move(claims->pod_uid);
                     done(std::move(caller));
                   });
}

struct AuthenticationManager::Attempt {
  const AuthenticationManager* manager;
  PeerCredentials peer;
  AuthenticateCallback done;
  size_t next = 0;
  std::string failures;
};

void AuthenticationManager::Authenticate(PeerCredentials peer, AuthenticateCallback done) const {
  Next(std::make_shared<Attempt>(Attempt{this, std::move(peer), std::move(done), 0, ""}));
}

void AuthenticationManager::Next(std::shared_ptr<Attempt> attempt) {
  if (attempt->next >= attempt->manager->authenticators_.size()) return attempt->done(Refused(attempt->failures));
  Authenticator& authenticator = *attempt->manager->authenticators_[attempt->next++];
  const PeerCredentials& peer = attempt->peer;
  authenticator.Authenticate(peer, [attempt, &authenticator](absl::StatusOr<Caller> caller) {
    if (caller.ok() && !caller->identities.empty()) return attempt->done(std::move(caller));
    if (!attempt->failures.empty()) attempt->failures += "; ";
    // An authenticator that had nothing to say of the caller is told as Go tells it.
    attempt->failures += fmt::format("Authenticator {}: {}", authenticator.type(),
                                     caller.ok() ? std::string_view("<nil>") : Message(caller.status()));
    Next(attempt);
  });
}

absl::StatusOr<SpiffeIdentity> CheckConnectionIdentity(const std::vector<std::string>& identities,
                                                       std::string_view proxy_namespace,
                                                       std::string_view proxy_service_account) {
  for (const std::string& identity : identities) {
    absl::StatusOr<SpiffeIdentity> parsed = ParseSpiffeIdentity(identity);
    if (!parsed.ok()) continue;
    if (!proxy_namespace.empty() && parsed->ns != proxy_namespace) continue;
    if (!proxy_service_account.empty() && parsed->service_account != proxy_service_account) continue;
    return parsed;
  }
  return absl::PermissionDeniedError(fmt::format("authorization failed: no identities ([{}]) matched {}/{}",
                                                 fmt::join(identities, " "), proxy_namespace, proxy_service_account));
}

}  // namespace wavetank::security
