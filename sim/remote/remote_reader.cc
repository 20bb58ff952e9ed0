#include "sim/remote/remote_reader.h"

#include <algorithm>
#include <utility>

#include "core/base/json_access.h"
#include "core/kube/credentials/access_review.h"
#include "fmt/format.h"
#include "sim/remote/own_account.h"

namespace wavetank::sim {

RemoteReader::RemoteReader(Server server, kube::KubeConfig config, RoleIsGiven role_is_given)
    : server_(std::move(server)),
      config_(std::move(config)),
      role_is_given_(std::move(role_is_given)),
      tls_(Trusts()) {}

// The server's certificate is its CA's: a client that trusts that one trusts the server, under each of its names.
absl::Status RemoteReader::Trusts() const {
  if (config_.insecure_skip_tls_verify) return absl::OkStatus();
  // Go 1.20: crypto/tls, CertificateVerificationError.
  const auto failed = [&] {
    return absl::UnavailableError(
        fmt::format("Get \"{}/api\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
                    server_.url));
  };
  if (config_.ca_pem.empty()) return failed();  // the system's roots
  const auto trusted = x509::ParseCertificates(config_.ca_pem, "certificate-authority-data");
  if (!trusted.ok()) return failed();
  const bool knows = std::any_of(trusted->begin(), trusted->end(),
                                 [&](const x509::CertificateRef& root) { return root->der() == server_.ca->der(); });
  return knows ? absl::OkStatus() : failed();
}

absl::Status RemoteReader::Permit(Time now, kube::AccessRequest request) const {
  if (!tls_.ok()) return tls_;
  request.user = "system:anonymous";
  // kube-apiserver: a bearer that proves nothing is refused, one that shows nothing is anonymous.
  if (!config_.token.empty() || !config_.username.empty() || !config_.client_certificate_pem.empty()) {
    const absl::StatusOr<kube::TokenClaims> claims = server_.tokens->Verify(config_.token, {}, now);
    if (!claims.ok() || server_.api->Get("ServiceAccount", {claims->ns, claims->service_account}) == nullptr)
      return absl::UnauthenticatedError("Unauthorized");
    request.user = kube::ServiceAccountUser(claims->ns, claims->service_account);
    const bool bound = HasRole(*server_.api, claims->ns, claims->service_account);
    if (role_is_given_(bound, bound || SpeaksOfReaders(*server_.api))) return absl::OkStatus();
  }
  return AskRbac(*server_.api, std::move(request));
}

// Istio 1.18.2: manifests/charts/base/templates, clusterrole.yaml, and istio-control/istio-discovery/templates,
// reader-clusterrole.yaml, and their bindings.
bool SpeaksOfReaders(const fakekube::ApiServer& api) {
  for (const char* kind : {"ClusterRole", "ClusterRoleBinding"}) {
    for (const kube::ObjectRef& object : api.List(kind)) {
      if (object->meta.name.starts_with("istio-reader")) return true;
    }
  }
  return false;
}

bool HasRole(const fakekube::ApiServer& api, std::string_view ns, std::string_view account) {
  for (const char* kind : {"ClusterRoleBinding", "RoleBinding"}) {
    for (const kube::ObjectRef& binding : api.List(kind)) {
      for (const nlohmann::json& subject : Items(At(binding->body, "subjects"))) {
        if (Text(subject, "kind") == "ServiceAccount" && Text(subject, "name") == account &&
            Text(subject, "namespace", binding->meta.ns) == ns)
          return true;
      }
    }
  }
  return false;
}

}  // namespace wavetank::sim
