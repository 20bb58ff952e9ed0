// `wavetank serve`, without its command line: a session with its real servers, one for each primary cluster.
//
// The first primary listens where it was told to; each further one 100 ports above the one before, and at a Unix
// socket with its name behind a dot.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "serve/control_planes.h"
#include "serve/debug/debug_ports.h"
#include "serve/grpc/bootstrap.h"
#include "serve/grpc/grpc_server.h"
#include "serve/grpc/session.h"
#include "serve/grpc/workload_secrets.h"
#include "serve/kube/kube_frontend.h"
#include "serve/pods/pod_access.h"

namespace wavetank::serve {

struct ServerOptions {
  std::string listen = "127.0.0.1:15010";         // plaintext; empty: none
  std::string secure_listen = "127.0.0.1:15012";  // empty: none
  std::string unix_socket;                        // empty: none
  std::string debug_listen;                       // istiod's monitoring port; empty: none
  MetricsPage metrics;                            // of that port, and in istiods' pods; empty: none
  KubeOptions kube;                               // no Kubernetes API unless it names an address
  Limits limits;
  WorkloadSecrets::Options secrets;
  // Real istiods take the place of the world's where Envoys connect: they listen at `listen`, no server at
  // secure_listen, and our own servers, which give secrets, at the Unix sockets and at any free port. None unless it
  // names a program.
  ControlPlaneOptions control_plane;
};

class Server {
 public:
  // Takes a session that has not gone live, and lets it. Errors name the address that cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Server>> Start(std::unique_ptr<Session> session, const ServerOptions& options);
  ~Server();  // Stop(), without telling of errors

  // Hangs up on all clients, stops real time and finishes the log. Idempotent. The log's first error, if there is one.
  absl::Status Stop();

  Session& session() { return *session_; }
  Loop& loop() { return session_->loop(); }
  Frontend& frontend() { return *frontend_; }
  WorkloadSecrets& secrets() { return *secrets_; }  // on the loop's thread only
  // By primary cluster, in the order of the scenario.
  const std::vector<std::unique_ptr<GrpcServer>>& grpc() const { return grpc_; }
  // Null: none.
  const DebugPorts* debug() const { return debug_.get(); }
  // Null: none.
  const KubeFrontend* kube() const { return kube_.get(); }
  const GrpcListeners* ListenersOf(std::string_view cluster);
  // Null: the world's own istiods serve.
  ControlPlanes* control_planes() { return control_planes_.get(); }

 private:
  Server() = default;

  std::unique_ptr<PodAccess> pods_;  // outlives the world, whose access logs it hears
  std::unique_ptr<Session> session_;
  std::unique_ptr<Frontend> frontend_;
  std::unique_ptr<WorkloadSecrets> secrets_;
  std::vector<std::unique_ptr<GrpcServer>> grpc_;
  std::unique_ptr<DebugPorts> debug_;
  std::unique_ptr<KubeFrontend> kube_;
  std::unique_ptr<ControlPlanes> control_planes_;
  bool stopped_ = false;
};

// Pods of a world with a proxy, by the name that --bootstrap takes: "sleep-6d4f.sample@cluster1".
std::vector<std::string> ProxiedPods(const sim::World& world);
// The bootstrap of such a pod's Envoy; `name` may be any beginning that only one pod's has. NotFound lists what there
// is.
absl::StatusOr<nlohmann::ordered_json> BootstrapOf(const sim::World& world, std::string_view name,
                                                   const BootstrapOptions& options);

// `base` with its port raised by 100 for each primary before this one; port 0 stays.
std::string ListenAddress(const std::string& base, size_t index);
// Whether an address is one of loopback: no other machine reaches it.
bool IsLoopback(const std::string& address);

}  // namespace wavetank::serve
