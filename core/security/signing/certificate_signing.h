// How istiod has somebody else sign: a CertificateSigningRequest of the cluster, which istiod itself approves, and
// whose signer fills it in (istiod: security/pkg/k8s/chiron/utils.go).
//
// Waited for is a minute, by a watch; then it is read ten more times. The request is deleted afterwards. What names the
// signer kubernetes.io/legacy-unknown is sent to the API certificates.k8s.io/v1beta1, which no API server has had since
// Kubernetes 1.22.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/base/random.h"
#include "core/kube/client.h"

namespace wavetank::security {

inline constexpr kube::ResourceKind kSigningRequestKind{"certificates.k8s.io", "v1", "CertificateSigningRequest",
                                                        "certificatesigningrequests"};
inline constexpr std::string_view kLegacySigner = "kubernetes.io/legacy-unknown";

class CertificateSigning {
 public:
  // `name` is istiod's, unique in the world: the names of its requests follow from it.
  CertificateSigning(Host& host, kube::Client& client, uint64_t seed, std::string_view name);
  CertificateSigning(const CertificateSigning&) = delete;
  CertificateSigning& operator=(const CertificateSigning&) = delete;
  ~CertificateSigning();

  struct Request {
    std::string csr_pem, signer;
    std::string dns_name;  // for the approval's words
    Duration lifetime{};   // zero: the signer decides
  };
  // The certificates that the signer gave, in PEM; or istiod's words for what went wrong.
  using Done = absl::AnyInvocable<void(absl::StatusOr<std::string>)>;
  void Sign(Request request, Done done);

 private:
  struct Attempt;
  using AttemptRef = std::shared_ptr<Attempt>;
  void Submit(const AttemptRef& attempt);
  void Approve(const AttemptRef& attempt, const kube::Object& stored);
  void Follow(const AttemptRef& attempt, int64_t resource_version);
  void ReadAgain(const AttemptRef& attempt);
  void Finish(const AttemptRef& attempt, absl::StatusOr<std::string> result);
  std::string NewName();
  void After(Duration delay, Callback fn);

  Host& host_;
  kube::Client& client_;
  RandomStream random_;
  std::vector<std::weak_ptr<Attempt>> followed_;  // those whose watch may stand; it must not outlive the client
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::security
