// The identities of istiod's clients: the authenticators of its CA and of its ADS server (istiod:
// security/pkg/server/ca/authenticate, pilot/pkg/xds/auth.go).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/kube/credentials/service_account_token.h"
#include "core/security/spiffe.h"
#include "core/x509/x509.h"

namespace wavetank::security {

// The audience of the tokens that proxies show (TOKEN_AUDIENCES).
inline constexpr std::string_view kIstioCaAudience = "istio-ca";

// What a connection shows of itself. Never logged: it holds the bearer token.
struct PeerCredentials {
  bool tls = true;                                   // false on 15010, where nothing is checked
  std::vector<x509::CertificateRef> verified_chain;  // of the client certificate, leaf first; verified by the server
  std::string bearer_token;                          // of the "authorization" header, without "Bearer "
  std::string cluster_id;                            // the "ClusterID" header
  std::string address;                               // "10.1.2.3:41234", of whoever opened the connection
  std::string forwarded_client_cert;                 // the "x-forwarded-client-cert" header
};

enum class AuthSource : uint8_t { kClientCertificate, kIdToken };

struct Caller {
  AuthSource source = AuthSource::kIdToken;
  std::vector<std::string> identities;
  std::string ns, service_account, pod_name, pod_uid;  // kIdToken only
};

using AuthenticateCallback = absl::AnyInvocable<void(absl::StatusOr<Caller>)>;

class Authenticator {
 public:
  virtual ~Authenticator() = default;
  virtual std::string_view type() const = 0;
  // May call back at once. The error's text says why, without any secret.
  virtual void Authenticate(const PeerCredentials& peer, AuthenticateCallback done) = 0;
};

// The identities are the names in the leaf; the chain was verified where TLS ended.
class ClientCertAuthenticator final : public Authenticator {
 public:
  std::string_view type() const override { return "ClientCertAuthenticator"; }
  void Authenticate(const PeerCredentials& peer, AuthenticateCallback done) override;
};

// Which tokens of ServiceAccounts istiod takes.
struct TokenPolicy {
  std::vector<std::string> audiences = {std::string(kIstioCaAudience)};  // TOKEN_AUDIENCES
  bool first_party = false;                                              // JWT_POLICY is first-party-jwt
  bool require_third_party = false;                                      // REQUIRE_3P_TOKEN
};

// Has the token reviewed by the API server of the cluster that the caller names: istiod's own when it names none, a
// remote one only as long as istiod has its remote Secret. A token for no audience is reviewed without one, and under
// first-party-jwt one for the API server too, unless REQUIRE_3P_TOKEN is set (istiod:
// security/pkg/server/ca/authenticate/kubeauth/kube_jwt.go).
class KubeJwtAuthenticator final : public Authenticator {
 public:
  // Null for a cluster that istiod does not know.
  using ReviewerOf = std::function<kube::TokenReviewer*(std::string_view cluster)>;
  KubeJwtAuthenticator(std::string own_cluster, std::string trust_domain, ReviewerOf reviewer_of,
                       TokenPolicy policy = {})
      : own_cluster_(std::move(own_cluster)),
        trust_domain_(std::move(trust_domain)),
        reviewer_of_(std::move(reviewer_of)),
        policy_(std::move(policy)) {}

  std::string_view type() const override { return "KubeJWTAuthenticator"; }
  void Authenticate(const PeerCredentials& peer, AuthenticateCallback done) override;

 private:
  std::string own_cluster_, trust_domain_;
  ReviewerOf reviewer_of_;
  const TokenPolicy policy_;
};

// Tries one after the other; the first that names an identity wins. The authenticators must outlive every attempt.
class AuthenticationManager {
 public:
  void Add(std::unique_ptr<Authenticator> authenticator) { authenticators_.push_back(std::move(authenticator)); }
  // Unauthenticated joins what each of them said: for logs, not for the caller.
  void Authenticate(PeerCredentials peer, AuthenticateCallback done) const;

 private:
  struct Attempt;
  static void Next(std::shared_ptr<Attempt> attempt);
  std::vector<std::unique_ptr<Authenticator>> authenticators_;
};

// Whether one of the caller's identities is that of the proxy's namespace and service account, each taken as given when
// the proxy leaves it empty. PermissionDenied otherwise (istiod: checkConnectionIdentity).
absl::StatusOr<SpiffeIdentity> CheckConnectionIdentity(const std::vector<std::string>& identities,
                                                       std::string_view proxy_namespace,
                                                       std::string_view proxy_service_account);

}  // namespace wavetank::security
