// A kubeconfig as istiod takes it out of a remote Secret: loaded, validated and sanitised by the rules of client-go and
// istiod 1.18.2. Its text is hostile until it has passed here.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wavetank::kube {

// The cluster and user of the current context. Holds credentials: never for logs, traces or messages.
struct KubeConfig {
  std::string context, cluster, user, ns;
  std::string server;  // "https://10.0.0.1:6443"
  std::string ca_pem;  // empty: the system's roots
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name;
  std::string token;
  std::string username, password;
  std::string client_certificate_pem, client_key_pem;
};

// Insecure fields that an operator allowed (PILOT_INSECURE_MULTICLUSTER_KUBECONFIG_OPTIONS): "exec", "clientKey",
// "clientCertificate", "tokenFile", or the name of an auth provider.
using InsecureOptions = std::set<std::string, std::less<>>;

// Reads YAML or JSON. Unknown fields are ignored, as client-go does. `what` names the text in messages, which go on
// with the line and the path within it, what is wrong and a remedy.
// Errors: InvalidArgument "kubeconfig is empty | cannot be loaded | is not valid", PermissionDenied "kubeconfig is not
// allowed" (istiod: pkg/kube/multicluster/secretcontroller.go, BuildClientsFromConfig and sanitizeKubeConfig).
absl::StatusOr<KubeConfig> ParseKubeConfig(std::string_view text, std::string_view what,
                                           const InsecureOptions& allowed = {});

// A kubeconfig with one cluster, context and user, all named `name`, as `istioctl create-remote-secret` writes it.
struct KubeConfigFields {
  std::string name;
  std::string server;
  std::string ca_pem;
  std::string token;
};
std::string RenderKubeConfig(const KubeConfigFields& fields);

}  // namespace wavetank::kube
