#include "sim/inputs/kinds/install.h"

#include "core/kube/secret.h"
#include "core/security/istiod_ca.h"
#include "core/x509/x509.h"
#include "fmt/format.h"
#include "sim/inputs/fields.h"
#include "sim/mending/installation.h"
#include "sim/upgrade/control_plane.h"
#include "sim/upgrade/proxies.h"
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
  what.mesh_config = target.options.mesh_config;
  fakekube::ApiServer& api = (*site)->cluster().api();
  what.mending = target.options.mending;
  what.mended = [&](Mend deed) { target.world.Mended(deed, cluster); };
  const bool sketch = IsSketch(api);
  if (config.primary()) return InstallPrimary(api, what);
  if (absl::Status status = InstallRemote(api, what); !status.ok()) return status;
  if (!what.mending.Does(Mend::kAddress, sketch)) return absl::OkStatus();
  target.world.Mended(Mend::kAddress, cluster);
  // The operator points the remote cluster at the primary's east-west gateway once that has an address.
  absl::StatusOr<World::Site*> primary = target.FindSite(config.control_plane);
  if (primary.ok()) target.subscriptions.Add(ConnectRemoteWhenExposed((*primary)->cluster().api(), api));
  return absl::OkStatus();
}

void Upgrade::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("profile", Need::kRequired, profile);
  visitor.Visit("revision", Need::kSparse, revision);
  visitor.Visit("part", Need::kRequired, part);
}

absl::Status Upgrade::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  const absl::StatusOr<pilot::Profile> to = pilot::ParseProfile(profile);
  if (!to.ok()) return to.status();
  const WorldCluster& config = (*site)->config();
  const bool gateways = part == "gateways", proxies = gateways || part == "workloads";
  const bool injector = part == "injector", remove = part == "oldIstiod";
  if (!proxies && !injector && !remove && part != "istiod") {
    return absl::InvalidArgumentError(
        fmt::format("an upgrade has no part '{}': istiod, injector, gateways, workloads or oldIstiod", part));
  }
  if (remove && revision.empty()) {
    return absl::InvalidArgumentError("oldIstiod needs the revision that stays: in place, nothing old is left");
  }
  fakekube::ApiServer& api = (*site)->cluster().api();
  if (config.observed) {
    if (!revision.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("cluster '{}' is a record, which makes no new pods: it is upgraded in place", cluster));
    }
    if (injector) return absl::OkStatus();  // who would ask it
    if (part == "istiod" && !config.primary()) return absl::OkStatus();
    return ExchangePods(api, gateways ? PodsOf::kGateways : proxies ? PodsOf::kSidecars : PodsOf::kIstiod, *to);
  }
  if (proxies) return MoveProxies(api, gateways, revision);
  if (!config.primary()) return absl::OkStatus();
  if (injector) return SetInjectedRelease(api, to->istio);
  if (revision.empty()) return UpgradeInPlace(api, *to);
  for (const auto& other : target.sites) {
    const WorldCluster& served = other->config();
    if (served.primary() || served.control_plane != cluster) continue;
    return absl::InvalidArgumentError(fmt::format(
        "cluster '{}' serves remote cluster '{}' through its gateway, which leads to one istiod: a revision beside it "
        "would not be reached from there; upgrade it in place (without revision)",
        cluster, served.name));
  }
  return remove ? RemoveOtherRevisions(api, revision) : InstallRevision(api, *to, revision, target.options.mesh_config);
}

void PlugInCa::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("root", Need::kLenient, root);
  visitor.Visit("trusts", Need::kSparse, trusts);
  visitor.Visit("rootsAlone", Need::kSparse, roots_alone);
}

namespace {

// The root of that name; InvalidArgument: an istiod that has signed none is asked for its own.
absl::StatusOr<std::string> RootNamed(InputTarget& target, const std::string& cluster, const std::string& name) {
  constexpr std::string_view kOwn = security::kSelfSignedCaSecret;
  if (!name.starts_with(kOwn)) {
    return x509::MakeRootCa(target.options.seed, "root/" + name, Time{}, kCaLifetime).root->ToPem();
  }
  const std::string where = name == kOwn ? cluster : name.substr(kOwn.size() + 1);
  absl::StatusOr<World::Site*> site = target.FindSite(where);
  if (!site.ok()) return site.status();
  const fakekube::ApiServer& api = (*site)->cluster().api();
  const std::string ns = SystemNamespaceOf(api);
  const kube::ObjectRef secret = api.Get("Secret", {ns, std::string(security::kSelfSignedCaSecret)});
  if (secret == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("trusts: {} has no Secret {}/{}; its istiod has signed no root itself", where, ns, kOwn));
  }
  const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(*secret);
  if (!data.ok()) return data.status();
  return kube::SecretEntry(*data, "ca-cert.pem");
}

}  // namespace

absl::Status PlugInCa::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  const uint64_t seed = target.options.seed;
  const x509::CertificateAuthority above = x509::MakeRootCa(seed, "root/" + root, Time{}, kCaLifetime);
  const x509::CertificateAuthority ca =
      x509::MakeIntermediateCa(seed, fmt::format("intermediate/{}/{}", root, cluster), above, Time{}, kCaLifetime);
  kube::SecretData data;
  for (auto& [key, value] : x509::CaCertsSecretData(ca)) {
    if (!roots_alone || key == "root-cert.pem") data[key] = value;
  }
  for (const std::string& other : trusts) {
    absl::StatusOr<std::string> pem = RootNamed(target, cluster, other);
    if (!pem.ok()) return pem.status();
    data["root-cert.pem"] += *pem;
  }
  fakekube::ApiServer& api = (*site)->cluster().api();
  return api.Apply(kube::MakeSecret(SystemNamespaceOf(api), security::kPluggedCaSecret, data)->body).status();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterInstall(InputTable& table) {
  table.Add<inputs::Install>();
  table.Add<inputs::PlugInCa>();
  table.Add<inputs::Upgrade>();
}
}  // namespace wavetank::sim
