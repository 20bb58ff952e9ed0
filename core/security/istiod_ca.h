// The life of istiod's certificate authority: where its key comes from at the start, how it is renewed, and what else
// in istiod follows from it (istiod: pilot/pkg/bootstrap/istio_ca.go and certcontroller.go,
// security/pkg/pki/ca/selfsignedcarootcertrotator.go).
//
// At the start, once:
//   1. Secret `cacerts` in the system namespace with a signing key: plugged in, as istio's names or as a
//      kubernetes.io/tls Secret. Anything wrong with it stops istiod.
//   2. Secret `istio-ca-secret`: self-signed by an earlier life.
//   3. Neither: a self-signed root, written to `istio-ca-secret`.
// A root-cert.pem alone in `cacerts` adds roots to a self-signed one.
// Afterwards a changed `cacerts` is taken over if its roots are the same ("Plug-in new Root-CA not supported"); one
// that only appears now is ignored until istiod starts again; the self-signed root is checked every hour and renewed,
// with the same key, when a fifth of its life is left.
//
// In a cluster `cacerts` reaches istiod as a mounted volume, late; that is `mount_delay`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/base/random.h"
#include "core/kube/informer.h"
#include "core/kube/secret.h"
#include "core/security/istio_ca.h"
#include "core/security/spiffe.h"

namespace wavetank::security {

inline constexpr std::string_view kPluggedCaSecret = "cacerts";
inline constexpr std::string_view kSelfSignedCaSecret = "istio-ca-secret";

struct IstiodCaOptions {
  uint64_t seed = 0;
  std::string cluster;  // of istiod; keys derive from it
  std::string system_namespace = "istio-system";
  std::string trust_domain = std::string(kDefaultTrustDomain);
  std::vector<std::string> dns_names = {"istiod.istio-system.svc"};
  IstioCaOptions ca;
  bool auto_reload = true;            // AUTO_RELOAD_PLUGIN_CERTS
  Duration mount_delay = 30s;         // the kubelet refreshes mounted Secrets about once a minute
  bool root_check_jitter = true;      // CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR
  Duration root_check_interval = 1h;  // CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL
  int root_grace_percent = 20;        // CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE
  Duration root_poll_interval = 60s;  // rootCertPollingInterval
  Duration start_timeout = 20min;     // of waiting for the API server
};

// Names in istiod's serving certificate; `host` is that of the mesh's discoveryAddress (istiod: getDNSNames).
std::vector<std::string> IstiodDnsNames(const std::string& host, std::string_view system_namespace,
                                        std::string_view revision, const std::vector<std::string>& custom_hosts);

// istiod's own certificate, for 15012 and the webhooks.
struct ServingCertificate {
  x509::KeyPairRef key;
  std::vector<x509::CertificateRef> chain;  // leaf first
};

class IstiodCa {
 public:
  // `client` is the config cluster's. Both outlive it.
  IstiodCa(Host& host, kube::Client& client, IstiodCaOptions options);
  ~IstiodCa();

  // Calls back once, later: OK when ca() may be used, or why istiod cannot start.
  void Start(absl::AnyInvocable<void(absl::Status)> done);
  void Stop();

  // Null until started.
  IstioCa* ca() { return ca_.get(); }
  bool plugged_in() const { return plugged_in_; }
  // What goes into ConfigMaps and webhooks. Follows the CA's roots, for a self-signed CA only when istiod's poll
  // notices.
  const std::string& ca_bundle_pem() const { return ca_bundle_pem_; }
  const ServingCertificate& serving_certificate() const { return serving_; }
  // Whenever bundle or serving certificate changed.
  void AddBundleHandler(Callback handler) { handlers_.push_back(std::move(handler)); }
  // What was wrong with the last `cacerts` that was not taken over; OK if there was none.
  const absl::Status& last_reload() const { return last_reload_; }

 private:
  // Data of one Secret of the system namespace; NotFound, or what the API server said.
  void Fetch(std::string_view name, absl::AnyInvocable<void(absl::StatusOr<kube::SecretData>)> done);
  void LoadPlugged();
  void LoadSelfSigned(std::string extra_roots);
  void WriteSelfSigned(KeyCertPem pem, absl::AnyInvocable<void(absl::Status)> done);
  void RetryStart(absl::Status why);
  void Use(KeyCertPem pem, std::string_view what, bool plugged);
  absl::Status Renew();
  void WatchPlugged();
  void ReloadPlugged(const kube::Object& secret);
  void ScheduleRootCheck(Duration delay);
  void CheckRoot();
  void PollRoot();
  void Finish(absl::Status status);
  void After(Duration delay, Callback fn);

  Host& host_;
  kube::Client& client_;
  const IstiodCaOptions options_;
  RandomStream random_;

  absl::AnyInvocable<void(absl::Status)> on_started_;
  Time start_{};
  Duration backoff_ = 500ms;
  std::unique_ptr<IstioCa> ca_;
  bool plugged_in_ = false;
  std::string extra_roots_;
  std::string ca_bundle_pem_;
  ServingCertificate serving_;
  uint64_t serving_generation_ = 0;
  std::vector<Callback> handlers_;
  std::unique_ptr<kube::Informer> informer_;
  absl::Status last_reload_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::security
