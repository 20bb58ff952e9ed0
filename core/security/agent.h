// The part of pilot-agent that gets a workload its certificate and serves it to the local Envoy by SDS
// (istiod: security/pkg/nodeagent/cache/secretcache.go, sds/sdsservice.go, caclient/providers/citadel/client.go).
//
// At the start it makes a key, sends a CSR and keeps the answer. When half of the certificate's life is over it forgets
// it and, if the Envoy still listens, makes a new key and asks again. The roots come with the certificate: the last
// entry of the answer. 1.18.2 rotates without jitter (later versions added some); `rotation_jitter_ppm` is there for
// them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/base/random.h"
#include "core/security/spiffe.h"
#include "core/x509/x509.h"

namespace wavetank::security {

inline constexpr std::string_view kWorkloadSecretName = "default";
inline constexpr std::string_view kRootSecretName = "ROOTCA";

// The way to istiod's CreateCertificate: connection, TLS, token and line are the implementor's.
class CaClient {
 public:
  virtual ~CaClient() = default;
  // Calls back later with IstioCertificateResponse.cert_chain. Unavailable: no server answers.
  virtual void CreateCertificate(std::string csr_pem, Duration ttl,
                                 absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> done) = 0;
};

// Remembers parsed certificates by their text, for many agents that get the same chain. Bounded.
class CertificateParser {
 public:
  // InvalidArgument as x509::ParseCertificates() and TrustBundle::FromPem(); `what` names the text.
  absl::StatusOr<std::vector<x509::CertificateRef>> Parse(const std::string& pem, std::string_view what);
  absl::StatusOr<x509::TrustBundleRef> ParseBundle(const std::string& pem, std::string_view what);

 private:
  std::map<std::string, std::vector<x509::CertificateRef>> chains_;
  std::map<std::string, x509::TrustBundleRef> bundles_;
};

// One version of a secret. Exactly one of `chain` (with `key`) and `roots` is set. Immutable objects, shared.
struct SecretItem {
  std::string name;
  x509::KeyPairRef key;
  std::vector<x509::CertificateRef> chain;  // leaf first, then all that istiod sent, roots included
  x509::TrustBundleRef roots;
};

struct AgentOptions {
  uint64_t seed = 0;
  std::string name;  // of the proxy, unique in the world: its keys and draws follow from it
  SpiffeIdentity identity;
  Duration secret_ttl = 24h;             // SECRET_TTL
  int64_t rotation_grace_ppm = 500'000;  // SECRET_GRACE_PERIOD_RATIO
  int64_t rotation_jitter_ppm = 0;
  Duration key_generation = Duration::zero();  // RSA 2048 keys take a real agent some 100 ms
  std::string extra_roots_pem;                 // ProxyConfig's caCertificatesPem
  // Files that secrets "file-cert:CERT~KEY" and "file-root:CA" name, e.g. mounted Secrets; null: there are none.
  std::function<absl::StatusOr<std::string>(std::string_view path)> read_file;
  std::shared_ptr<CertificateParser> parser;  // null: one of its own
};

class Agent {
 public:
  // `host` and `client` outlive it.
  Agent(Host& host, CaClient& client, AgentOptions options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Asks for the first certificate without waiting for the Envoy, and goes on asking until it is there.
  void Start();
  // No callback runs afterwards.
  void Stop();

  // One SDS stream: calls back with the secret when it is there and again whenever it changed; with an error when it
  // could not be made, after which the stream is tried again as Envoy reconnects (0.5 s to 30 s, full jitter).
  using OnSecret = absl::AnyInvocable<void(absl::StatusOr<SecretItem>)>;
  void Subscribe(std::string_view name, OnSecret on_secret);

  // Reads the files behind the subscription again, as its file watcher would.
  void OnFileChanged(std::string_view path);
  // Roots that istiod or the operator adds (ISTIO_MULTIROOT_MESH).
  void UpdateConfigTrustBundle(std::string pem);

  // Null before the first certificate.
  const x509::CertificateRef& certificate() const { return leaf_; }
  // What it serves now: the chain, leaf first, and the roots; empty while there is none.
  const std::vector<x509::CertificateRef>& chain() const { return chain_; }
  const std::string& roots_pem() const { return served_roots_pem_; }
  int64_t csr_count() const { return csr_count_; }

 private:
  struct Stream {
    std::string name;
    OnSecret on_secret;
    Duration backoff;
    bool waiting = false;  // for the certificate that is being made
  };

  void WarmUp();
  void Serve(const std::shared_ptr<Stream>& stream);
  void ServeIf(const std::function<bool(const Stream&)>& wanted);
  void Fail(const std::shared_ptr<Stream>& stream, absl::Status why);
  void Generate();
  void SendCsr(x509::KeyPairRef key, std::string csr, int attempt);
  void OnSigned(x509::KeyPairRef key, absl::StatusOr<std::vector<std::string>> answer);
  absl::Status Accept(x509::KeyPairRef key, const std::vector<std::string>& cert_chain);
  void ScheduleRotation();
  absl::StatusOr<SecretItem> Roots() const;
  absl::StatusOr<SecretItem> FromFile(const std::string& name) const;
  void After(Duration delay, Callback fn);

  Host& host_;
  CaClient& client_;
  const AgentOptions options_;
  std::shared_ptr<CertificateParser> parser_;
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
  std::vector<std::shared_ptr<Stream>> streams_;
  TimerId rotation_ = kNoTimer;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::security
