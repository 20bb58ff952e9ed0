// Who trusts whom: roots, trust domains, dates of certificates.
#include <algorithm>

#include "absl/time/time.h"
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/base/time.h"
#include "core/kube/secret.h"
#include "core/x509/x509.h"
#include "fakes/kube/objects/dumped.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

constexpr int64_t kDay = 86400, kSoonDays = 30;

// What its CA signs is believed by those who trust the roots of `other`. Its own certificate is one of these, unless
// somebody else made that one.
bool Trusts(const MeshCluster& other, const MeshCluster& signer, Time now) {
  const security::ServingCertificate* shown = signer.istiod->serving_certificate();
  const auto roots = x509::TrustBundle::FromPem(other.istiod->ca_bundle_pem(), "istiod's roots");
  if (shown == nullptr || shown->chain.empty() || !roots.ok()) return true;  // another finding
  const x509::VerifyResult verified = x509::Verify(shown->chain, **roots, now);
  return verified.ok() || verified.tls_alert != "unknown_ca";
}

// Secrets of that name that no istiod reads, as they stand elsewhere.
kube::ObjectRef StrayCacerts(const Mesh& mesh, const MeshCluster& cluster) {
  for (const kube::ObjectRef& secret : mesh.List(cluster, "Secret")) {
    if (secret->meta.name == "cacerts" && secret->meta.ns != cluster.system_namespace) return secret;
  }
  return nullptr;
}

// Why an istiod has a root of its own, where its cluster's objects tell.
void ExplainRoots(const Mesh& mesh, const MeshCluster& cluster, Findings& findings) {
  const kube::ObjectRef own = mesh.Get(cluster, "Secret", cluster.system_namespace, "cacerts");
  if (own == nullptr) {
    const kube::ObjectRef stray = StrayCacerts(mesh, cluster);
    findings.Explain(fmt::format("the istiod of {} found no Secret cacerts in {}, and signs with a root of its own{}",
                                 cluster.name, cluster.system_namespace,
                                 stray == nullptr ? "" : fmt::format(": cacerts stands in {}", stray->meta.ns)),
                     stray == nullptr
                         ? fmt::format("make cacerts in {} of {} from an intermediate CA under the common root, and "
                                       "restart istiod",
                                       cluster.system_namespace, cluster.name)
                         : fmt::format("create it in {}, and restart istiod", cluster.system_namespace));
    return;
  }
  const auto data = kube::ReadSecretData(*own);
  if (!data.ok() || !kube::SecretEntry(*data, "ca-key.pem").empty()) return;
  // istiod: pilot/pkg/bootstrap/istio_ca.go, createIstioCA.
  findings.Explain(fmt::format("cacerts of {} has no ca-key.pem: its istiod takes that for no plugged-in CA, and signs "
                               "with a root of its own",
                               cluster.name),
                   "create cacerts with all four files, and restart istiod");
}

// Lines of logs tell no root: the istiod of a mesh that `import` made of them alone signs with one of its own.
bool HasMadeUpRoot(const Mesh& mesh, const MeshCluster& cluster) {
  const kube::ObjectRef ns = SystemNamespace(mesh, cluster);
  return ns != nullptr && ns->meta.annotations.contains(fakekube::kMadeUp) &&
         mesh.Get(cluster, "Secret", cluster.system_namespace, "cacerts") == nullptr;
}

// Each primary's signer is to be trusted by the proxies of each other one.
void RootsDiffer(const Mesh& mesh, Findings& findings) {
  const Time now = mesh.world().Now();
  std::vector<const MeshCluster*> primaries;
  for (const auto& cluster : mesh.clusters()) {
    if (cluster->primary && cluster->istiod != nullptr && !cluster->istiod->ca_bundle_pem().empty())
      primaries.push_back(cluster.get());
  }
  for (size_t i = 0; i < primaries.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const MeshCluster &a = *primaries[j], &b = *primaries[i];
      const bool a_trusts = Trusts(a, b, now), b_trusts = Trusts(b, a, now);
      if (a_trusts && b_trusts) continue;
      if (a_trusts || b_trusts) {
        const MeshCluster &doubts = a_trusts ? b : a, &signer = a_trusts ? a : b;
        findings.Add(b.name, "", {},
                     fmt::format("proxies of {} trust no root of what the istiod of {} signs: every TLS handshake "
                                 "between them ends with unknown_ca",
                                 doubts.name, signer.name));
      } else {
        findings.Add(
            b.name, "", {},
            fmt::format("{} and {} have no root certificate in common: every TLS handshake between them ends with "
                        "unknown_ca",
                        a.name, b.name));
      }
      for (const MeshCluster* each : {&a, &b}) {
        const kube::ObjectRef own = mesh.Get(*each, "Secret", each->system_namespace, "cacerts");
        const MeshCluster& other = each == &a ? b : a;
        const bool other_has = mesh.Get(other, "Secret", other.system_namespace, "cacerts") != nullptr;
        if (own == nullptr ? other_has || StrayCacerts(mesh, *each) != nullptr : !(each == &a ? b_trusts : a_trusts))
          ExplainRoots(mesh, *each, findings);
      }
      if (HasMadeUpRoot(mesh, a) || HasMadeUpRoot(mesh, b)) findings.FollowsFromMadeUp();
    }
  }
}

void TrustDomainsDiffer(const Mesh& mesh, Findings& findings) {
  const auto knows = [](const config::MeshConfig& mesh_config, const std::string& domain) {
    const auto& aliases = mesh_config.trust_domain_aliases;
    return mesh_config.trust_domain == domain || std::find(aliases.begin(), aliases.end(), domain) != aliases.end();
  };
  for (const auto& a : mesh.clusters()) {
    for (const auto& b : mesh.clusters()) {
      if (!a->primary || !b->primary || a == b || a->istiod == nullptr || b->istiod == nullptr) continue;
      const config::MeshConfig &at_a = a->istiod->mesh_config(), &at_b = b->istiod->mesh_config();
      if (knows(at_a, at_b.trust_domain)) continue;
      const std::string message =
          fmt::format("clients in {} accept servers of trust domain {} only, and {}'s are of {}", a->name,
                      at_a.trust_domain, b->name, at_b.trust_domain);
      // Where somebody wrote it, of either.
      const MeshCluster* where = a.get();
      kube::ObjectRef written;
      for (const MeshCluster* one : {a.get(), b.get()}) {
        const kube::ObjectRef map = MeshConfigMap(mesh, *one);
        if (written != nullptr || map == nullptr || mesh.Where(one->name, *map).file.empty()) continue;
        where = one;
        written = map;
      }
      findings.Add(*where, written, message);
    }
  }
}

std::string Day(int64_t unix_seconds) {
  return absl::FormatTime("%Y-%m-%d", absl::FromUnixSeconds(unix_seconds), absl::UTCTimeZone());
}

// Certificates that the simulation made live in its own time; those that a file brought, in the calendar's.
void CertificateExpires(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& secret : mesh.List(*cluster, "Secret")) {
      if (mesh.Where(cluster->name, *secret).file.empty()) continue;
      const auto data = kube::ReadSecretData(*secret);
      if (!data.ok()) continue;
      for (const auto& [key, text] : *data) {
        if (text.find("BEGIN CERTIFICATE") == std::string::npos) continue;
        const auto certificates = x509::ParseCertificates(text, key);
        if (!certificates.ok()) continue;
        for (const x509::CertificateRef& c : *certificates) {
          const int64_t end = kWorldEpochUnixSeconds +
                              std::chrono::floor<std::chrono::seconds>(c->not_after().time_since_epoch()).count();
          const int64_t days = (end - findings.unix_now()) / kDay;
          if (end - findings.unix_now() > kSoonDays * kDay) continue;
          findings.Add(*cluster, *secret,
                       end <= findings.unix_now()
                           ? fmt::format("{}: {} has expired on {}", key, c->subject(), Day(end))
                           : fmt::format("{}: {} expires on {}, in {} days", key, c->subject(), Day(end), days));
        }
      }
    }
  }
}

// What a person can mend: the injector's values, or the mesh config; null: no file brought either.
kube::ObjectRef WhereMeshIdIsSaid(const Mesh& mesh, const MeshCluster& cluster) {
  for (const kube::ObjectRef& map : {mesh.Get(cluster, "ConfigMap", cluster.system_namespace, "istio-sidecar-injector"),
                                     MeshConfigMap(mesh, cluster)}) {
    if (map != nullptr && !mesh.Where(cluster.name, *map).file.empty()) return map;
  }
  return nullptr;
}

// It names the mesh in telemetry; no request depends on it.
void MeshIdsDiffer(const Mesh& mesh, Findings& findings) {
  std::vector<std::pair<std::string, const MeshCluster*>> ids;  // the first cluster of each
  for (const auto& cluster : mesh.clusters()) {
    for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
      const std::string id = pod->bootstrap() ? Text(pod->node().metadata, "MESH_ID") : "";
      const bool known = std::any_of(ids.begin(), ids.end(), [&](const auto& each) { return each.first == id; });
      if (!id.empty() && !known) ids.emplace_back(id, cluster.get());
    }
  }
  for (size_t i = 1; i < ids.size(); ++i) {
    const auto& [id, cluster] = ids[i];
    findings.Add(*cluster, WhereMeshIdIsSaid(mesh, *cluster),
                 fmt::format("proxies of {} are of mesh {}, and those of {} of mesh {}", cluster->name, id,
                             ids.front().second->name, ids.front().first));
  }
}

}  // namespace

const std::vector<Rule>& IdentityRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT301", "RootsDiffer", Level::kError, "proxies accept only certificates that end in a root of their own",
       "plug in CAs under one root (Secret cacerts), or put both roots into every bundle", "istio/istio#32501, #52356",
       RootsDiffer},
      {"WT302", "TrustDomainsDiffer", Level::kError,
       "a client names the identities that it accepts by its own trust domain and its aliases",
       "set one trustDomain in all meshes, or name the others in trustDomainAliases", "istio/istio#39204, #37096",
       TrustDomainsDiffer},
      {"WT303", "CertificateExpires", Level::kWarning, "nothing renews a certificate that was plugged in",
       "put a new one into the Secret in time, first of all the root's", "istio/istio#50420", CertificateExpires},
      {"WT304", "MeshIdsDiffer", Level::kWarning,
       "requests do not depend on it, but metrics and traces of one mesh look like those of two",
       "install every cluster with one global.meshID", "", MeshIdsDiffer, false},
  };
  return *rules;
}

}  // namespace wavetank::check
