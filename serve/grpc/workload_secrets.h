// Certificates for real Envoys that have no agent beside them: what Istio's agent does in a pod is done here for every
// pod of the world that asks. A key is made (from the operating system's randomness; it is in no log), its CSR goes to
// the pod's istiod as an input, with a token of the pod's ServiceAccount, and half-way through the certificate's life
// it is done again.
//
// Everything on the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "core/x509/x509.h"
#include "serve/grpc/frontend.h"

namespace wavetank::serve {

// One generation; immutable.
struct WorkloadSecret {
  std::string version;   // changes with every generation
  std::string identity;  // SPIFFE
  x509::KeyPairRef key;
  std::string chain_pem;  // leaf first, then all that istiod sent, roots included
  std::string roots_pem;
};
using WorkloadSecretRef = std::shared_ptr<const WorkloadSecret>;

class WorkloadSecrets {
 public:
  struct Options {
    Duration ttl{};       // asked for; zero: what the pod's proxy configuration says, 24 h by default
    Duration retry = 1s;  // after a refusal
  };
  WorkloadSecrets(Frontend& frontend, Options options) : frontend_(frontend), options_(options) {}

  // The name under which a proxy's pod is known, from what its node says ("sidecar~10.1.0.4~sleep-1.sample~..." and
  // metadata CLUSTER_ID): "sleep-1.sample@cluster1". NotFound: no such pod runs.
  static absl::StatusOr<std::string> PodOf(const sim::World& world, const pilot::Node& node);
  // spiffe://cluster.local/ns/sample/sa/sleep; NotFound.
  static absl::StatusOr<std::string> IdentityOf(const sim::World& world, const std::string& pod);

  // `on_secret` with the secret as soon as it is there, and with each that follows it. The handle ends the
  // subscription.
  using OnSecret = std::function<void(const WorkloadSecretRef&)>;
  using Subscription = std::shared_ptr<void>;
  Subscription Subscribe(sim::World& world, const std::string& pod, OnSecret on_secret);
  // Makes a new key now for a pod that has one already. NotFound.
  absl::Status Rotate(sim::World& world, const std::string& pod);

 private:
  struct Entry {
    WorkloadSecretRef secret;
    bool asking = false;
    uint64_t generation = 0;
    std::map<uint64_t, OnSecret> listeners;
  };

  void Ask(sim::World& world, const std::string& pod);
  void OnSigned(const std::string& pod, const std::string& identity, const x509::KeyPairRef& key,
                absl::StatusOr<std::vector<std::string>> chain);
  void AskLater(const std::string& pod, Duration delay);

  Frontend& frontend_;
  const Options options_;
  std::map<std::string, Entry> entries_;
  uint64_t next_ = 1;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace wavetank::serve
