#include "core/security/remote_secret.h"

#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/secret.h"

namespace wavetank::security {

kube::ObjectRef MakeRemoteSecret(const RemoteSecretFields& fields) {
  const std::string kubeconfig = kube::RenderKubeConfig(
      {.name = fields.cluster, .server = fields.server, .ca_pem = fields.ca_pem, .token = fields.token});
  return kube::MakeSecret(fields.system_namespace,
                          fields.name.empty() ? "istio-remote-secret-" + fields.cluster : fields.name,
                          {{fields.cluster, kubeconfig}}, {{std::string(kMultiClusterLabel), "true"}},
                          {{std::string(kClusterAnnotation), fields.cluster}});
}

}  // namespace wavetank::security
