// The secrets of one workload, as pilot-agent's SDS server gives them to the local Envoy (istiod:
// security/pkg/nodeagent/cache/secretcache.go, sds/sdsservice.go, caclient/providers/citadel/client.go).
//
// Where they come from, by name:
//   default, ROOTCA     files at the well-known paths, if they are there; else one CSR serves both, and is cached
//   file-cert:CERT~KEY  these files; file-root:CA likewise; file-root:system the operating system's roots
//   any other name      as `default`
// A certificate is forgotten when the grace ratio of its life is left, and made anew, with a new key, if a stream still
// wants it: 1.18.2 without jitter (later versions have some: `rotation_jitter_ppm`). Only one CSR is ever under way. A
// certificate under a new root has ROOTCA pushed. What is served under the first two names is written to OUTPUT_CERTS,
// where that is set; if the disk is full, that is logged and the Envoy is served all the same.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/agent/files.h"
#include "core/agent/log.h"
#include "core/base/host.h"
#include "core/base/random.h"
#include "core/security/ca_client.h"
#include "core/security/spiffe.h"
#include "core/x509/x509.h"

namespace wavetank::agent {

inline constexpr std::string_view kWorkloadSecretName = "default";
inline constexpr std::string_view kRootSecretName = "ROOTCA";
inline constexpr std::string_view kSystemRootsName = "file-root:system";

// One version of a secret. Exactly one of `chain` (with `key`) and `roots` is set. Immutable objects, shared.
struct SecretItem {
  std::string name;
  x509::KeyPairRef key;
  std::vector<x509::CertificateRef> chain;  // leaf first, then all that istiod sent, roots included
  x509::TrustBundleRef roots;
  x509::KeyForm key_form = x509::KeyForm::kPkcs8;  // in which `key` is given to others
};

struct SecretOptions {
  uint64_t seed = 0;
  std::string name;  // of the proxy, unique in the world: its keys and draws follow from it
  security::SpiffeIdentity identity;
  Duration secret_ttl = 24h;             // SECRET_TTL
  int64_t rotation_grace_ppm = 500'000;  // SECRET_GRACE_PERIOD_RATIO
  int64_t rotation_jitter_ppm = 0;
  bool pkcs8_keys = true;          // PKCS8_KEY; keys of files are always in that form
  Duration file_debounce = 100ms;  // FILE_DEBOUNCE_DURATION
  // Of a workload whose certificates others mount (FILE_MOUNTED_CERTS): no CSR is ever sent.
  bool file_mounted_certs = false;
  std::string cert_chain_path = "./etc/certs/cert-chain.pem";
  std::string key_path = "./etc/certs/key.pem";
  std::string root_path = "./etc/certs/root-cert.pem";
  std::string system_roots_path;  // of file-root:system; empty: there are none
  std::string output_dir;         // OUTPUT_CERTS; empty: nothing is written
  std::shared_ptr<Files> files;   // null: there are none
  // The key of the n-th CSR; empty: derived from seed and name.
  std::function<absl::StatusOr<x509::KeyPairRef>(int64_t n)> make_key;
  std::shared_ptr<security::CertificateParser> parser;  // null: one of its own
  Log log;
};

class SecretManager {
 public:
  // `host` and `client` outlive it.
  SecretManager(Host& host, security::CaClient& client, SecretOptions options);
  ~SecretManager();
  SecretManager(const SecretManager&) = delete;
  SecretManager& operator=(const SecretManager&) = delete;

  // Asks for the first certificate without waiting for the Envoy, and goes on asking until it is there.
  void Start();
  // No callback runs afterwards.
  void Stop();

  // One SDS stream: calls back with the secret when it is there and again whenever it changed; with an error when it
  // could not be made, after which the stream is tried again as Envoy reconnects (0.5 s to 30 s, full jitter).
  using OnSecret = absl::AnyInvocable<void(absl::StatusOr<SecretItem>)>;
  void Subscribe(std::string_view name, OnSecret on_secret);

  // The same for a client that comes again by itself: an error ends the stream. The handle ends it too.
  using Stream = std::shared_ptr<void>;
  Stream Watch(std::string_view name, OnSecret on_secret);

  // Reads the files behind the subscription again, as its file watcher would.
  void OnFileChanged(std::string_view path);
  // Every file that is behind a subscription, for the driver, which watches them.
  std::vector<std::string> WatchedFiles() const;
  // Roots that istiod or the operator adds (ISTIO_MULTIROOT_MESH).
  void UpdateConfigTrustBundle(std::string pem);

  // Null before the first certificate.
  const x509::CertificateRef& certificate() const { return leaf_; }
  // What it serves now: the chain, leaf first, and the roots; empty while there is none.
  const std::vector<x509::CertificateRef>& chain() const { return chain_; }
  std::string roots_pem() const;
  int64_t csr_count() const { return csr_count_; }

 private:
  struct Listener {
    std::string name;
    OnSecret on_secret;
    bool again = false;  // tries again itself
    Duration backoff;
    bool waiting = false;  // for the certificate that is being made
    bool reading = false;  // its files, which are not right yet
    bool over = false;
  };
  using ListenerRef = std::shared_ptr<Listener>;

  ListenerRef Add(std::string_view name, OnSecret on_secret, bool again);
  void WarmUp();
  void Serve(const ListenerRef& listener);
  void ServeIf(const std::function<bool(const Listener&)>& wanted);
  void Give(const ListenerRef& listener, SecretItem item);
  void Fail(const ListenerRef& listener, absl::Status why);
  void Generate();
  void SendCsr(x509::KeyPairRef key, std::string csr, int attempt);
  void OnSigned(x509::KeyPairRef key, absl::StatusOr<std::vector<std::string>> answer);
  absl::Status Accept(x509::KeyPairRef key, const std::vector<std::string>& cert_chain);
  void ScheduleRotation();
  absl::StatusOr<SecretItem> Cached(const std::string& name) const;
  std::string WithConfigured(const std::string& pem) const;
  absl::StatusOr<SecretItem> Roots(const std::string& pem) const;
  // Whether files are this secret's source, now.
  bool FromFiles(const std::string& name) const;
  absl::StatusOr<SecretItem> ReadFiles(const std::string& name) const;
  // `waited` already since the first try; the next try comes after `wait`.
  void ServeFiles(const ListenerRef& listener, Duration waited, Duration wait);
  void Output(const SecretItem& item);
  absl::StatusOr<std::string> Read(std::string_view path) const;
  bool There(std::string_view path) const;
  void After(Duration delay, Callback fn);

  Host& host_;
  security::CaClient& client_;
  const SecretOptions options_;
  std::shared_ptr<security::CertificateParser> parser_;
  RandomStream random_;

  // What is in the cache; empty between the time of rotation and the next answer.
  x509::KeyPairRef key_;
  std::vector<x509::CertificateRef> chain_;
  x509::CertificateRef leaf_;
  std::string roots_pem_, served_roots_pem_, config_roots_pem_;
  bool cached_ = false;
  bool generating_ = false;
  bool warm_ = false;        // there was a certificate once
  bool warming_up_ = false;  // WarmUp() will come again by itself
  int64_t csr_count_ = 0;
  Duration warm_backoff_;
  std::vector<ListenerRef> listeners_;
  TimerId rotation_ = kNoTimer;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::agent
