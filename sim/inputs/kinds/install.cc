#include "sim/inputs/kinds/install.h"

#include "core/kube/secret.h"
#include "core/security/istiod_ca.h"
#include "core/x509/x509.h"
#include "fmt/format.h"
#include "sim/inputs/fields.h"
#include "sim/installation.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {

void Install::Fields(FieldVisitor& visitor) { visitor.Visit("cluster", Need::kRequired, cluster); }

absl::Status Install::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  const WorldCluster& config = (*site)->config();
  Installation what;
  what.cluster = config.cluster_id();
  // Most installations of one network name none.
  what.network = config.mesh_network() == "none" ? "" : config.mesh_network();
  what.control_plane = config.control_plane;
  what.profile = target.profile;
  fakekube::ApiServer& api = (*site)->cluster().api();
  if (config.primary()) return InstallPrimary(api, what);
  if (absl::Status status = InstallRemote(api, what); !status.ok()) return status;
  // The operator points the remote cluster at the primary's east-west gateway once that has an address.
  absl::StatusOr<World::Site*> primary = target.FindSite(config.control_plane);
  if (primary.ok()) target.subscriptions.Add(ConnectRemoteWhenExposed((*primary)->cluster().api(), api));
  return absl::OkStatus();
}

void PlugInCa::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("root", Need::kLenient, root);
}

absl::Status PlugInCa::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  const uint64_t seed = target.options.seed;
  const x509::CertificateAuthority above = x509::MakeRootCa(seed, "root/" + root, Time{}, kCaLifetime);
  const x509::CertificateAuthority ca =
      x509::MakeIntermediateCa(seed, fmt::format("intermediate/{}/{}", root, cluster), above, Time{}, kCaLifetime);
  kube::SecretData data;
  for (auto& [key, value] : x509::CaCertsSecretData(ca)) data[key] = value;
  return (*site)
      ->cluster()
      .api()
      .Apply(kube::MakeSecret(kSystemNamespace, security::kPluggedCaSecret, data)->body)
      .status();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterInstall(InputTable& table) {
  table.Add<inputs::Install>();
  table.Add<inputs::PlugInCa>();
}
}  // namespace wavetank::sim
