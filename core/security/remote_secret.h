// What `istioctl create-remote-secret` prints: the Secret by which one istiod learns of another cluster.
#pragma once

#include <string>
#include <string_view>

#include "core/kube/object.h"

namespace wavetank::security {

inline constexpr std::string_view kMultiClusterLabel = "istio/multiCluster";
inline constexpr std::string_view kClusterAnnotation = "networking.istio.io/cluster";
// The ServiceAccount of its token (istioctl: DefaultServiceAccountName).
inline constexpr std::string_view kReaderServiceAccount = "istio-reader-service-account";

struct RemoteSecretFields {
  std::string cluster;  // the cluster's name in the mesh: annotation and key of the data
  std::string server;   // URL of its API server, as reachable from the istiod that reads this
  std::string ca_pem;   // that API server's CA
  std::string token;    // of its reader service account
  std::string system_namespace = "istio-system";
  std::string name;  // empty: istio-remote-secret-<cluster>
};

kube::ObjectRef MakeRemoteSecret(const RemoteSecretFields& fields);

}  // namespace wavetank::security
