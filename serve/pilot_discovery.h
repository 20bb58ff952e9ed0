// One real istiod (pilot-discovery 1.18) as a child, on loopback: ADS in plaintext and nothing else that matters here.
//
// Certificates and injection are not its business: no CA (ENABLE_CA_SERVER), no authentication (XDS_AUTH), no
// webhook is served or patched.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "serve/agent/child_process.h"

namespace wavetank::serve {

struct PilotDiscoveryOptions {
  std::string program;
  std::string cluster;      // CLUSTER_ID
  std::string pod;          // whose it is, by the name of its istiod in traces ("POD.CLUSTER")
  std::string kube_server;  // "http://127.0.0.1:8901": its config cluster
  std::string listen = "127.0.0.1:0";
  std::string folder;                                    // its own: kubeconfig, mesh configuration, working folder
  std::string log;                                       // what it prints
  std::string name_server;                               // address of the one server that it asks; empty: the machine's
  bool external = false;                                 // EXTERNAL_ISTIOD
  std::string mesh_config;                               // YAML; empty: what the ConfigMap `istio` says
  std::map<std::string, std::string, std::less<>> said;  // variables of its pod; what is given to it anyway wins
  std::map<std::string, std::string> environment;        // on top of both
};

class PilotDiscovery {
 public:
  // Starts it; it is not ready yet. InvalidArgument: the program is none.
  static absl::StatusOr<std::unique_ptr<PilotDiscovery>> Start(PilotDiscoveryOptions options);
  ~PilotDiscovery() { Stop(); }

  // Whether it serves by now; from then on address() holds. Unavailable: it has ended, with the last it said.
  absl::StatusOr<bool> Ready();
  // Unavailable if it has ended meanwhile.
  absl::Status Check();
  // Where its ADS is: "127.0.0.1:40123".
  const std::string& address() const { return address_; }
  const PilotDiscoveryOptions& options() const { return options_; }
  pid_t pid() const { return child_.pid(); }
  // The last lines of its log, for messages.
  std::string LastWords() const;
  // It may take `patience` to end in order.
  void Stop(Duration patience = 3s);

 private:
  explicit PilotDiscovery(PilotDiscoveryOptions options) : options_(std::move(options)) {}

  const PilotDiscoveryOptions options_;
  ChildProcess child_;
  std::string address_;
};

}  // namespace wavetank::serve
