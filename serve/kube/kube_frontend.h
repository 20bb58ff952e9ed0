// The Kubernetes APIs of a live world's clusters, for kubectl and other real clients: one port per cluster.
//
// Reads look at the world as it is; what may change it is an input (World::KubeRequest). Errors, limits and what is
// served: docs/kube-api.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/kube/http/transport/server.h"
#include "serve/loop/loop.h"

namespace wavetank::serve {

struct KubeOptions {
  std::string listen;  // "127.0.0.1:8901": of the first cluster, each further one a port above. Empty: none
  // A client that presents it may do everything, others need a ServiceAccount's token. Empty: all may do all.
  std::string token;
  bool tls = false;  // with a CA of its own, which only its kubeconfig knows
  // With TLS: no client comes in without a certificate or a token, and the kubeconfig has a certificate of an
  // administrator.
  bool client_certificates = false;
  std::string client_ca_pem;  // whose client certificates count besides those of that CA
  fakekube::http::ServerOptions limits;
  // Asked first, on the loop's thread: what it answers the API does not see. Null: nothing is.
  std::function<std::optional<fakekube::http::Response>(sim::World& world, const std::string& cluster,
                                                        const fakekube::http::Request& request)>
      before;
};

struct KubeListener {
  std::string cluster, server;  // "http://127.0.0.1:8901", "https://..." with TLS
};

// How a Kubernetes API's server reaches a world: each connection's requests in turn with those of all others.
fakekube::http::Server::Executor RunOn(Loop& loop);

class KubeFrontend {
 public:
  // `loop` must outlive it. InvalidArgument or Unavailable names the address.
  static absl::StatusOr<std::unique_ptr<KubeFrontend>> Start(Loop& loop, const std::vector<std::string>& clusters,
                                                             const KubeOptions& options);
  ~KubeFrontend();  // Stop()
  // Hangs up on all clients. While the loop runs, or after its end.
  void Stop();

  const std::vector<KubeListener>& where() const { return where_; }
  // Of the CA that clients of TLS must hold the server to. Empty: no TLS.
  const std::string& ca_pem() const { return ca_pem_; }
  // The administrator's certificate and key, for kubeconfigs; null without TLS, or where a token alone is asked for.
  const fakekube::http::TlsIdentity* admin() const { return admin_.key_pem.empty() ? nullptr : &admin_; }

 private:
  KubeFrontend() = default;

  std::vector<KubeListener> where_;
  std::string ca_pem_;
  fakekube::http::TlsIdentity admin_;
  std::unique_ptr<fakekube::http::Server> server_;
};

// Where a running server says which clusters it serves: a list of {cluster, server}.
inline constexpr std::string_view kClustersPath = "/wavetank/clusters";

// One context per cluster, the first of them current. `token` and `ca_pem` may be empty, `user` null. Holds a
// credential if `token` or `user` is there.
std::string RenderKubeconfig(const std::vector<KubeListener>& clusters, const std::string& token,
                             const std::string& ca_pem = {}, const fakekube::http::TlsIdentity* user = nullptr);

}  // namespace wavetank::serve
