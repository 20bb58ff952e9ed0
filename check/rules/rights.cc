// What istiods may do by their ServiceAccounts, at home and in the clusters of their remote Secrets (istiod:
// manifests/charts/istio-control/istio-discovery/templates, clusterrole.yaml, role.yaml and reader-clusterrole.yaml).
#include <map>
#include <vector>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/kube/credentials/kubeconfig.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "sim/remote/own_account.h"
#include "sim/remote/remote_reader.h"
#include "sim/world_site.h"

namespace wavetank::check {
namespace {

struct Right {
  std::vector<const char*> verbs;
  const char* group;
  const char* resource;
  bool at_home;         // in the namespace of the control plane alone
  const char* without;  // what becomes of the mesh
};

constexpr char kNeverReady[] = "istiod waits for its list for ever, and never gets ready";
constexpr char kNoSync[] = "istiod gives that cluster up after 30 s, and knows no endpoint there";

// What a registry of a cluster lists, its own istiod's or another's.
void AddRegistry(const char* without, std::vector<Right>* out) {
  for (const char* resource : {"namespaces", "nodes", "pods", "services", "secrets"})
    out->push_back({{"list", "watch"}, "", resource, false, without});
  out->push_back({{"list", "watch"}, "discovery.k8s.io", "endpointslices", false, without});
}

// Of an istiod's own account, as 1.18.2 asks at its start.
const std::vector<Right>& RightsAtHome() {
  static const auto* const rights = [] {
    auto* const out = new std::vector<Right>;
    AddRegistry(kNeverReady, out);
    const std::vector<Right> more = {
        {{"list", "watch"}, "", "configmaps", true, kNeverReady},
        {{"list", "watch"}, "admissionregistration.k8s.io", "mutatingwebhookconfigurations", false, kNeverReady},
        {{"list", "watch"}, "apiextensions.k8s.io", "customresourcedefinitions", false, "istiod does not start"},
        {{"create"},
         "authentication.k8s.io",
         "tokenreviews",
         false,
         "no proxy is believed: none gets a certificate or a configuration"},
        {{"create", "update"},
         "",
         "configmaps",
         false,
         "namespaces get no istio-ca-root-cert, without which pods with a sidecar do not start, and no lock is taken"},
        {{"update"},
         "admissionregistration.k8s.io",
         "mutatingwebhookconfigurations",
         false,
         "the webhook gets no caBundle: API servers do not believe istiod, and no pod is injected"},
        {{"create"},
         "authorization.k8s.io",
         "subjectaccessreviews",
         false,
         "gateways get no certificate that a credentialName names"},
        {{"get", "create", "update"},
         "coordination.k8s.io",
         "leases",
         true,
         "nobody deploys what Gateways of the Gateway API ask for"},
    };
    out->insert(out->end(), more.begin(), more.end());
    return out;
  }();
  return *rights;
}

// Of what a remote Secret's account may do in its cluster.
const std::vector<Right>& RightsOfReaders() {
  static const auto* const rights = [] {
    auto* const out = new std::vector<Right>;
    AddRegistry(kNoSync, out);
    out->push_back({{"create"},
                    "authentication.k8s.io",
                    "tokenreviews",
                    false,
                    "proxies of that cluster that come to this istiod are refused"});
    return out;
  }();
  return *rights;
}

using Lacking = std::map<std::string_view, std::vector<std::string>>;  // by what becomes of it

template <class Permit>
Lacking Missing(const std::vector<Right>& rights, const std::string& system_namespace, const Permit& permit) {
  Lacking out;
  for (const Right& right : rights) {
    std::vector<std::string> verbs;
    for (const char* verb : right.verbs) {
      if (!permit({"", verb, right.group, right.resource, right.at_home ? system_namespace : "", ""}).ok())
        verbs.emplace_back(verb);
    }
    if (verbs.empty()) continue;
    out[right.without].push_back(fmt::format("{} {}{}{}", fmt::join(verbs, " and "), right.resource,
                                             *right.group == '\0' ? "" : ".", right.group));
  }
  return out;
}

bool IsFor(const kube::Object& binding, const std::string& ns, const std::string& account) {
  for (const nlohmann::json& subject : Items(At(binding.body, "subjects"))) {
    if (Text(subject, "kind") == "ServiceAccount" && Text(subject, "name") == account &&
        Text(subject, "namespace", binding.meta.ns) == ns)
      return true;
  }
  return false;
}

struct Blamed {
  kube::ObjectRef object;  // null: nothing that is there
  std::string says;        // what is wrong with it; empty: it only lacks rules
};

// The role that should have the rule: one that is bound to the account, a binding without its role, or one of the
// installation's that is bound to somebody else.
Blamed ToBlame(const Mesh& mesh, const MeshCluster& cluster, const std::string& ns, const std::string& account,
               std::string_view prefix) {
  Blamed stranger;
  for (const char* kind : {"ClusterRoleBinding", "RoleBinding"}) {
    for (const kube::ObjectRef& binding : mesh.List(cluster, kind)) {
      const nlohmann::json& ref = At(binding->body, "roleRef");
      const bool everywhere = Text(ref, "kind") == "ClusterRole";
      const kube::ObjectRef role =
          mesh.Get(cluster, everywhere ? "ClusterRole" : "Role", everywhere ? "" : binding->meta.ns, Text(ref, "name"));
      if (!IsFor(*binding, ns, account)) {
        if (stranger.object == nullptr && binding->meta.name.starts_with(prefix))
          stranger = {binding, "is not for that account"};
      } else if (role == nullptr) {
        return {binding, fmt::format("names {} {}, which is not there", Text(ref, "kind"), Text(ref, "name"))};
      } else if (*kind == 'C') {
        return {role, ""};
      } else if (stranger.object == nullptr) {
        stranger = {role, ""};
      }
    }
  }
  if (stranger.object != nullptr) return stranger;
  for (const kube::ObjectRef& role : mesh.List(cluster, "ClusterRole")) {
    if (role->meta.name.starts_with(prefix)) return {role, "is bound to nobody"};
  }
  return {};
}

void AddMissing(const MeshCluster& cluster, const Blamed& blamed, const kube::ObjectRef& otherwise,
                const std::string& who, const Lacking& lacking, Findings& findings) {
  for (const auto& [without, what] : lacking) {
    const std::string says = blamed.says.empty() ? "" : fmt::format("{}; ", blamed.says);
    findings.Add(cluster, blamed.object == nullptr ? *otherwise : *blamed.object,
                 fmt::format("{}{} may not {}", says, who, fmt::join(what, ", ")));
    findings.Explain(std::string(without), {});
  }
}

void IstiodForbidden(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->recorded) continue;
    const kube::ObjectRef deployment = WorkloadFor(mesh, *cluster, cluster->system_namespace, {{"app", "istiod"}});
    if (deployment == nullptr) continue;
    const std::string account = Text(At(deployment->body, {"spec", "template", "spec"}), "serviceAccountName");
    const sim::OwnAccount own(mesh.world().cluster(cluster->name).api(), deployment->meta.ns, account,
                              [] { return false; });
    Lacking lacking = Missing(RightsAtHome(), deployment->meta.ns,
                              [&](const kube::AccessRequest& request) { return own.Permit(request); });
    for (int kind = 0; kind < config::kKinds; ++kind) {
      const kube::ResourceKind& resource = config::ResourceKindOf(static_cast<config::Kind>(kind));
      const std::string group(resource.group), plural(resource.resource);
      if (!group.ends_with(".istio.io")) continue;
      if (!own.Permit({"", "list", group, plural, "", ""}).ok() ||
          !own.Permit({"", "watch", group, plural, "", ""}).ok())
        lacking[kNeverReady].push_back(fmt::format("list and watch {}.{}", plural, group));
    }
    AddMissing(*cluster, ToBlame(mesh, *cluster, own.ns(), own.account(), "istiod-clusterrole"), deployment,
               fmt::format("istiod, as ServiceAccount {}/{},", own.ns(), own.account()), lacking, findings);
  }
}

// The account by which the istiod of `cluster` reads `far`, if a role there is bound to it. Who is nobody there is told
// of as such; where no role at all is of a reader, they may be left out of the manifests.
void JudgeReader(const Mesh& mesh, const MeshCluster& cluster, const MeshCluster& far, const std::string& token,
                 Findings& findings) {
  const auto claims = mesh.world().FindSite(far.name)->tokens().Read(token);
  const fakekube::ApiServer& api = mesh.world().cluster(far.name).api();
  if (!claims.ok()) return;
  if (!sim::HasRole(api, claims->ns, claims->service_account) && !sim::SpeaksOfReaders(api)) return;
  const std::string &ns = claims->ns, &name = claims->service_account;
  const kube::ObjectRef account = mesh.Get(far, "ServiceAccount", ns, name);
  if (account == nullptr) return;
  const Lacking lacking = Missing(RightsOfReaders(), far.system_namespace, [&](kube::AccessRequest request) {
    request.user = kube::ServiceAccountUser(ns, name);
    return sim::AskRbac(api, std::move(request));
  });
  AddMissing(far, ToBlame(mesh, far, ns, name, "istio-reader-clusterrole"), account,
             fmt::format("the istiod of {}, as ServiceAccount {}/{},", cluster.name, ns, name), lacking, findings);
}

void ReaderForbidden(const Mesh& mesh, Findings& findings) {
  EachRemoteServer(
      mesh, [&](const MeshCluster& cluster, const kube::Object&, const std::string&, const kube::KubeConfig& config) {
        const MeshCluster* const far = LeadsTo(mesh, config);
        if (far != nullptr && far != &cluster && !far->recorded)
          JudgeReader(mesh, cluster, *far, config.token, findings);
      });
}

}  // namespace

const std::vector<Rule>& RightsRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT207", "RemoteReaderForbidden", Level::kError, "an API server refuses what no role of the account allows",
       "give the account the rules of istio-reader-clusterrole of Istio's chart", "istio/istio#59845, #28052",
       ReaderForbidden},
      {"WT208", "IstiodForbidden", Level::kError, "an API server refuses what no role of the account allows",
       "give the account the rules of istiod-clusterrole and Role istiod of Istio's chart", "istio/istio#25235, #36886",
       IstiodForbidden},
  };
  return *rules;
}

}  // namespace wavetank::check
