// Who trusts whom: roots, trust domains, dates of certificates.
#include <algorithm>
#include <map>
#include <set>

#include "absl/time/time.h"
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/base/time.h"
#include "core/kube/secret.h"
#include "core/x509/x509.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

constexpr int64_t kDay = 86400, kSoonDays = 30;

// By their keys: a root that was renewed is the same.
std::set<std::string> RootsOf(const MeshCluster& cluster) {
  std::set<std::string> out;
  if (cluster.istiod == nullptr) return out;
  const auto certificates = x509::ParseCertificates(cluster.istiod->ca_bundle_pem(), "istiod's roots");
  if (!certificates.ok()) return out;
  for (const x509::CertificateRef& c : *certificates) out.insert(c->public_key());
  return out;
}

// A primary's signer is trusted where one of its own roots is.
void RootsDiffer(const Mesh& mesh, Findings& findings) {
  std::vector<std::pair<const MeshCluster*, std::set<std::string>>> primaries;
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary) continue;
    std::set<std::string> roots = RootsOf(*cluster);
    if (!roots.empty()) primaries.emplace_back(cluster.get(), std::move(roots));
  }
  for (size_t i = 0; i < primaries.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto& [a, roots_a] = primaries[j];
      const auto& [b, roots_b] = primaries[i];
      const auto& others = roots_b;  // clang 14 lets no lambda have a structured binding
      const bool common =
          std::any_of(roots_a.begin(), roots_a.end(), [&](const auto& r) { return others.contains(r); });
      if (common) continue;
      findings.Add(
          b->name, "", {},
          fmt::format("{} and {} have no root certificate in common: every TLS handshake between them ends with "
                      "unknown_ca",
                      a->name, b->name));
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
