// The gRPC servers of one primary cluster: plaintext (istiod's 15010), TLS with the simulated CA's certificate (15012)
// and a Unix socket, all with ADS, SDS, certificates and health. They listen from their construction on.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "serve/grpc/frontend.h"

namespace wavetank::serve {

class WorkloadSecrets;

struct GrpcListeners {
  std::string cluster;  // whose istiod answers
  // "host:port", port 0 for any; empty: none.
  std::string plaintext, secure;
  std::string unix_socket;    // path; plaintext
  bool secure_waits = false;  // `secure` listens once the cluster's istiod has a certificate
};

class GrpcServer {
 public:
  // The loop must be running. Unavailable names the address that cannot be listened on, or says that no
  // port can be chosen for TLS, since the cluster has no istiod with a certificate yet.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Listen(Frontend& frontend, WorkloadSecrets& secrets,
                                                            const GrpcListeners& where);
  // Frontend::ShutDown must have been called: then no call is left that could not end.
  virtual ~GrpcServer() = default;

  // Where it listens, with the ports that were given; empty where it does not.
  virtual const GrpcListeners& where() const = 0;
};

}  // namespace wavetank::serve
