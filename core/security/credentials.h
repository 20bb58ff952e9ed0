// The Secrets that gateways name by credentialName and WasmPlugins by imagePullSecret, of every cluster, and who may
// have them (istiod: pilot/pkg/credentials/kube/{secrets,multicluster}.go).
//
// A router's secrets come from its own cluster first, then from the config cluster. It gets one if its identity may
// list Secrets in its namespace, which its own cluster's API server is asked (SubjectAccessReview); the answer is
// believed for five minutes if it was yes, else for one. What is here never enters a log or a message.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/base/time.h"
#include "core/kube/credentials/access_review.h"
#include "core/kube/informer.h"
#include "core/security/pull_secrets.h"

namespace wavetank::security {

// A Secret with this after its name holds the authorities for the one without.
inline constexpr std::string_view kCaSuffix = "-cacert";

// PEM texts of one Secret; empty: not there.
struct CertInfo {
  std::string cert, key, staple, crl;
  // Of the first certificate of `cert`: why it cannot be read, else when it is valid.
  absl::Status unreadable;
  Time not_before{}, not_after{};
};
using CertInfoRef = std::shared_ptr<const CertInfo>;

// A server's certificate with its key: keys `cert` and `key`, or `tls.crt` and `tls.key`. NotFound names what keys
// there are, never what they hold.
absl::StatusOr<CertInfo> ExtractCertInfo(const kube::Object& secret);
// Roots for client certificates (in `cert`): key `cacert`, or `ca.crt`. NotFound names what keys there are.
absl::StatusOr<CertInfo> ExtractRoot(const kube::Object& secret);

class CredentialsController {
 public:
  // All outlive it; without a reviewer no client is authorized. `cluster` and `seed` key retries' jitter.
  CredentialsController(Host& host, kube::Client& client, const kube::AccessReviewer* reviewer,
                        std::string_view cluster, uint64_t seed);

  void Start() { secrets_.Start(); }
  bool synced() const { return secrets_.synced(); }
  // A Secret came, changed or went; also for each that is there at the start. Helm's and tokens' do not count.
  void OnSecret(std::function<void(const kube::NamespacedName&)> handler) { on_secret_ = std::move(handler); }

  // NotFound: there is no such Secret, or it holds no certificate and key. The same for the two below.
  absl::StatusOr<CertInfoRef> GetCertInfo(std::string_view ns, std::string_view name) const;
  // Of "NAME-cacert", or of "NAME" if there is no such Secret.
  absl::StatusOr<CertInfoRef> GetCaCert(std::string_view ns, std::string_view name) const;
  // What a Secret of type kubernetes.io/dockerconfigjson holds.
  absl::StatusOr<std::string> GetDockerCredential(std::string_view ns, std::string_view name) const;
  // PermissionDenied.
  absl::Status Authorize(std::string_view service_account, std::string_view ns);

 private:
  // What a Secret holds, else why it cannot be used. Not a StatusOr: GCC 12 at -O3 warns of those in a flat_hash_map.
  struct Reading {
    CertInfoRef info;
    absl::Status error;
  };
  // Of Secrets, read once: every push asks for every router's.
  using Read = absl::flat_hash_map<kube::ObjectRef, Reading>;

  kube::ObjectRef Find(std::string_view ns, std::string_view name) const;

  struct Verdict {
    Time expires{};
    bool allowed = false;
  };
  Host& host_;
  const kube::AccessReviewer* const reviewer_;
  kube::Informer secrets_;
  std::function<void(const kube::NamespacedName&)> on_secret_;
  mutable Read servers_, roots_;
  std::map<std::string, Verdict> verdicts_;  // by user
};

// The controllers of all clusters that one istiod reads.
class Credentials : public pilot::PullSecrets {
 public:
  explicit Credentials(std::string config_cluster) : config_cluster_(std::move(config_cluster)) {}

  // As CredentialsController::OnSecret, of any cluster; to be set before clusters are added.
  void OnSecret(std::function<void(const kube::NamespacedName&)> handler) { on_secret_ = std::move(handler); }

  // Replaces one of that name. Not started.
  CredentialsController& AddCluster(const std::string& cluster, std::unique_ptr<CredentialsController> controller);
  void RemoveCluster(const std::string& cluster) { controllers_.erase(cluster); }
  // False also for unknown clusters.
  bool Synced(const std::string& cluster) const;

  const std::string& config_cluster() const { return config_cluster_; }
  bool Knows(const std::string& cluster) const override { return controllers_.contains(cluster); }

  // Looked up in `cluster`, then in the config cluster; the first error is told. NotFound also for unknown clusters.
  absl::StatusOr<CertInfoRef> GetCertInfo(const std::string& cluster, std::string_view ns, std::string_view name) const;
  absl::StatusOr<CertInfoRef> GetCaCert(const std::string& cluster, std::string_view ns, std::string_view name) const;
  std::optional<std::string> DockerCredential(const std::string& cluster, std::string_view ns,
                                              std::string_view name) const override;
  absl::Status Authorize(const std::string& cluster, std::string_view service_account, std::string_view ns);

 private:
  std::vector<const CredentialsController*> LookupOrder(const std::string& cluster) const;

  const std::string config_cluster_;
  std::map<std::string, std::unique_ptr<CredentialsController>> controllers_;
  std::function<void(const kube::NamespacedName&)> on_secret_;
};

}  // namespace wavetank::security
