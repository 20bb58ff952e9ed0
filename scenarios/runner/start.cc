#include "scenarios/runner/start.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "core/kube/time_format.h"
#include "core/profile/profile.h"
#include "core/settings/istiod_settings.h"
#include "fakes/kube/objects/kinds.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/actions/action.h"
#include "scenarios/mesh/gaps.h"
#include "scenarios/mesh/installer_files.h"
#include "scenarios/mesh/known_resources.h"
#include "scenarios/mesh/manifests.h"
#include "scenarios/mesh/system_namespaces.h"
#include "sim/inputs/kinds/install.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/inputs/kinds/remote_secret.h"
#include "sim/inputs/kinds/web.h"
#include "sim/mending/installation.h"
#include "sim/signing/istio_csr_settings.h"

namespace wavetank::scenario {

// As `istioctl create-remote-secret` calls them.
constexpr std::string_view kRemoteSecretPrefix = "istio-remote-secret-";

using nlohmann::json;
using sim::inputs::AddIssuer;
using sim::inputs::ApplyObject;
using sim::inputs::Install;
using sim::inputs::PlugInCa;
using sim::inputs::ServeKeySet;
using sim::inputs::SetRemoteSecret;

namespace {

bool InSystemNamespace(const json& object, const SystemNamespaceSet& system) {
  return system.contains(TextOf(At(object, {"metadata", "namespace"})));
}

// Where cert-manager's istio-csr runs, from which istiods and proxies have their certificates.
std::set<std::string> NamespacesOfIstioCsr(const std::vector<json>& objects) {
  std::set<std::string> out;
  for (const json& object : objects) {
    if (sim::IstioCsrSettings::Of(At(object, {"spec", "template"})))
      out.insert(Text(At(object, "metadata"), "namespace"));
  }
  return out;
}

// Guides install istio-csr and its issuers before Istio.
bool BelongsToIstioCsr(const json& object, const std::set<std::string>& namespaces) {
  if (namespaces.empty()) return false;
  if (Text(object, "apiVersion").starts_with("cert-manager.io/")) return true;
  if (!namespaces.contains(Text(At(object, "metadata"), "namespace"))) return false;
  const std::string kind = Text(object, "kind");
  if (kind == "Deployment") return sim::IstioCsrSettings::Of(At(object, {"spec", "template"})).has_value();
  return kind == "Service" || kind == "ConfigMap" || kind == "Secret" || kind == "ServiceAccount";
}

// What must be there before pods are: the control plane and what it reads.
bool BelongsToControlPlane(const json& object, const SystemNamespaceSet& system) {
  const std::string kind = Text(object, "kind");
  if (fakekube::ClusterScoped(kind)) return true;
  if (!InSystemNamespace(object, system)) return false;
  if (kind == "Deployment") {
    return TextOf(At(object, {"spec", "template", "metadata", "labels", "app"})) == "istiod";
  }
  return kind == "ConfigMap" || kind == "Secret" || kind == "ServiceAccount" || kind == "Role" || kind == "RoleBinding";
}

// To each primary whose manifests bring none, one of each other cluster that the scenario does not give it.
std::vector<RemoteSecretSpec> MissingSecrets(const Scenario& scenario, const std::set<std::string>& with_secrets) {
  std::vector<RemoteSecretSpec> out;
  for (const ClusterSpec& in : scenario.clusters) {
    if (!in.primary() || with_secrets.contains(in.name)) continue;
    for (const ClusterSpec& of : scenario.clusters) {
      const bool there =
          std::any_of(scenario.remote_secrets.begin(), scenario.remote_secrets.end(),
                      [&](const RemoteSecretSpec& secret) { return secret.of == of.name && secret.in == in.name; });
      if (in.name != of.name && !there) out.push_back({of.name, in.name});
    }
  }
  return out;
}

// Versions that the simulated release does not serve yet, each once: a world reads them all the same.
void NoteLaterVersions(const std::vector<json>& objects, const pilot::Profile& profile,
                       std::vector<std::string>* notes) {
  for (const json& object : objects) {
    const std::string later = NotServedYet(object, profile);
    if (later.empty()) continue;
    std::string note = fmt::format("{}: an API server there refuses it, here it is read", later);
    if (std::find(notes->begin(), notes->end(), note) == notes->end()) notes->push_back(std::move(note));
  }
}

// Variables of istiods that other releases know, as one may have kept over an upgrade.
void NoteVariablesOfOtherReleases(const std::vector<json>& objects, const pilot::Profile& profile,
                                  std::vector<std::string>* notes) {
  for (const json& object : objects) {
    const json& pod = At(object, {"spec", "template"});
    if (At(pod, {"metadata", "labels", "app"}) != "istiod") continue;
    const json& meta = At(object, "metadata");
    for (const std::string& what : pilot::VariablesOfOtherReleases(pod, profile.istio))
      notes->push_back(fmt::format("{} {}/{}: {}, has no effect here", Text(object, "kind"), Text(meta, "namespace"),
                                   Text(meta, "name"), what));
  }
}

}  // namespace

absl::StatusOr<StartPhases> MakeStart(const Scenario& scenario) {
  StartPhases out;
  const auto chosen = [&](sim::Mend what) { return scenario.mending.Of(what) == sim::Mending::Choice::kYes; };
  std::set<std::string> with_secrets;  // clusters whose manifests bring remote Secrets
  std::set<std::string> without_istiod;
  std::vector<std::string> without_roots, without_kubeconfigs;  // of which dumps somebody cut them out
  std::vector<RemoteSecretSpec> stand_ins;
  std::map<std::pair<std::string, std::string>, std::string> brought_secrets;  // cluster and name: where it stands
  bool brings_control_plane = false;
  std::vector<ClusterRanges> files;
  const absl::StatusOr<pilot::Profile> profile = pilot::ParseProfile(scenario.profile);  // else the world refuses it
  for (const ClusterSpec& cluster : scenario.clusters) {
    absl::StatusOr<std::vector<json>> objects = LoadClusterManifests(cluster, &out.notes);
    if (!objects.ok()) return objects.status();
    if (profile.ok()) {
      NoteLaterVersions(*objects, *profile, &out.notes);
      NoteVariablesOfOtherReleases(*objects, *profile, &out.notes);
    }
    absl::StatusOr<ClusterRanges> ranges = ReadRanges(cluster);
    if (!ranges.ok()) return ranges.status();
    files.push_back(*ranges);
    for (const std::string& note : ranges->notes) out.notes.push_back(note);
    for (const auto& [said, taken, field] :
         {std::tuple(ranges->pods, cluster.pod_cidr, "pods"),
          std::tuple(ranges->services, cluster.service_cidr, "services"),
          std::tuple(ranges->load_balancers, cluster.load_balancer_cidr, "loadBalancers")}) {
      if (said.empty() || taken.empty() || SameRange(said, taken)) continue;
      out.notes.push_back(
          fmt::format("{}: its files give {} the range {}, and the scenario {}; say `{}: {}` to have it", cluster.name,
                      field, said, taken, field, said));
    }
    const bool policies = std::any_of(objects->begin(), objects->end(),
                                      [](const json& object) { return Text(object, "kind") == "NetworkPolicy"; });
    if (policies && !EnforcesPolicies(cluster, *ranges)) {
      out.notes.push_back(
          fmt::format("{}: kind's own network plugin acts upon no NetworkPolicy (or the scenario says so), and what "
                      "they say has no effect here",
                      cluster.name));
    }
    const SystemNamespaceSet own = SystemNamespaces(*objects);
    const CutOut cut = TakeCutOut(&*objects, own);
    for (const json& object : *objects) {
      out.certificates.Add(object);
      const json& meta = At(object, "metadata");
      const std::string ns = Text(meta, "namespace");
      if (Text(object, "kind") == "Secret" && (own.contains(ns) || ns == "istio-system") &&
          Text(meta, "name").starts_with(kRemoteSecretPrefix))
        brought_secrets[{cluster.name, Text(meta, "name")}] = PlaceInManifests(cluster, object);
    }
    // Namespaces first: their labels decide what becomes of everything in them.
    std::stable_partition(objects->begin(), objects->end(),
                          [](const json& object) { return Text(object, "kind") == "Namespace"; });
    out.system_namespaces.insert(own.begin(), own.end());
    brings_control_plane = brings_control_plane || BringsControlPlane(*objects, own);
    if (cluster.primary() && !BringsIstiod(*objects)) without_istiod.insert(cluster.name);
    if (BringsRemoteSecrets(*objects) || !cut.clusters.empty()) with_secrets.insert(cluster.name);
    if (cut.roots) without_roots.push_back(cluster.name);
    for (const std::string& of : cut.clusters) {
      without_kubeconfigs.push_back(fmt::format("{} in {}", of, cluster.name));
      if (scenario.FindCluster(of) != nullptr) stand_ins.push_back({of, cluster.name});
    }
    bool labelled = false;
    const std::string network = NetworkOf(*objects, own, &labelled);
    if (cluster.network_untold && labelled && network != cluster.network) {
      out.notes.push_back(
          fmt::format("{}: its manifests label {} with network {}, and the scenario attaches its pods to {}, as it "
                      "names none; say `network: {}` to have them there",
                      cluster.name, MainOf(own), network, cluster.network, network));
    }
    if (chosen(sim::Mend::kNetwork) && !labelled && !network.empty()) {
      out.mended.insert({sim::Mend::kNetwork, cluster.name});
      out.phases[0].insert(out.phases[0].begin(), ApplyObject{cluster.name, LabelledNamespace(MainOf(own), network)});
    }
    const bool roots = scenario.ca_said || scenario.mending.Does(sim::Mend::kRoots, true);
    const bool own_roots = !scenario.ca_said && BringsRoots(*objects, own);
    const bool plugs_in =
        ((scenario.ca != CaPlan::kSelfSigned && roots && !own_roots) || cut.roots) && cluster.primary();
    if (plugs_in && !scenario.ca_said && !cut.roots) out.mended.insert({sim::Mend::kRoots, cluster.name});
    const PlugInCa plugged{cluster.name, scenario.ca == CaPlan::kOwnRoots ? "root-" + cluster.name : "root"};
    // Where it belongs is known by the istiod, if that is elsewhere.
    const bool elsewhere = MainOf(own) != sim::kSystemNamespace;
    if (plugs_in && !elsewhere) out.phases[0].push_back(plugged);
    const std::set<std::string> csr = NamespacesOfIstioCsr(*objects);
    for (json& object : *objects) {
      const bool first = BelongsToControlPlane(object, own) || BelongsToIstioCsr(object, csr);
      const int phase = first ? 0 : InSystemNamespace(object, own) ? 1 : 2;
      out.phases[phase].push_back(ApplyObject{cluster.name, std::move(object)});
    }
    if (plugs_in && elsewhere) out.phases[0].push_back(plugged);
    out.phases[0].push_back(Install{cluster.name});
  }
  // Nor is its missing cacerts filled in, unless that is asked for.
  if (brings_control_plane && !scenario.ca_said && !chosen(sim::Mend::kRoots)) {
    std::erase_if(out.phases[0], [&](const sim::Input& input) {
      const auto* plugged = input.As<PlugInCa>();
      return plugged != nullptr && out.mended.erase({sim::Mend::kRoots, plugged->cluster}) > 0;
    });
  }
  // A mesh of which one cluster brings its control plane is no sketch: another one that lacks it lacks it.
  if (brings_control_plane && !scenario.mending.chosen()) {
    std::erase_if(out.phases[0], [&](const sim::Input& input) {
      const auto* install = input.As<Install>();
      return install != nullptr && without_istiod.contains(install->cluster);
    });
  }
  for (const json& set : scenario.key_sets) {
    out.phases[0].push_back(ServeKeySet{Text(set, "uri"), At(set, "keys"), Text(set, "issuer")});
  }
  for (const IssuerSpec& issuer : scenario.issuers) {
    out.phases[0].push_back(AddIssuer{issuer.name, issuer.jwks_uri});
  }
  if (!without_roots.empty()) {
    out.notes.push_back(
        fmt::format("{}: what Secret cacerts holds was cut out of the dump; a CA of this world stands in for it, under "
                    "one root for all, so nothing is told of the real certificates",
                    fmt::join(without_roots, ", ")));
  }
  if (!without_kubeconfigs.empty()) {
    out.notes.push_back(fmt::format(
        "kubeconfigs of {} were cut out of the dump; stand-ins lead to the clusters of those names, so it is "
        "not told whether the real ones lead there and are believed",
        fmt::join(without_kubeconfigs, ", ")));
  }
  for (const RemoteSecretSpec& secret : stand_ins) {
    out.phases[1].push_back(SetRemoteSecret{secret.of, secret.in, "present"});
  }
  for (const RemoteSecretSpec& secret : scenario.remote_secrets) {
    const std::string name = std::string(kRemoteSecretPrefix) + secret.of;
    if (const auto brought = brought_secrets.find({secret.in, name}); brought != brought_secrets.end()) {
      out.notes.push_back(
          fmt::format("{}: Secret {} is taken as it stands, and the scenario's remoteSecrets of {} in {} has no effect "
                      "here",
                      brought->second, name, secret.of, secret.in));
      continue;
    }
    out.phases[1].push_back(SetRemoteSecret{secret.of, secret.in, "present"});
  }
  if (chosen(sim::Mend::kTokens)) {
    for (const RemoteSecretSpec& secret : MissingSecrets(scenario, with_secrets)) {
      out.phases[1].push_back(SetRemoteSecret{secret.of, secret.in, "present"});
      out.mended.insert({sim::Mend::kTokens, secret.in});
    }
  }
  for (SharedRange& shared : SharedRanges(scenario, files)) out.notes.push_back(std::move(shared.text));
  if (absl::Status status = CheckSteps(scenario, &out.notes); !status.ok()) return status;
  return out;
}

absl::Status Strictly(const StartPhases& start) {
  // All notes of manifests are of that kind.
  if (start.notes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("--strict: what is said here has no effect:\n{}", fmt::join(start.notes, "\n")));
}

void DateByCertificates(const StartPhases& start, Scenario* scenario, std::vector<std::string>* notes) {
  if (scenario->date) return;
  scenario->date = start.certificates.DateBeside(Time{});
  if (!scenario->date) return;
  notes->push_back(
      fmt::format("the world begins at {}, since certificates of the manifests begin then; --date says otherwise",
                  kube::FormatRfc3339(kWorldEpochUnixSeconds + scenario->date->time_since_epoch() / 1s)));
}

absl::Status CheckSteps(const Scenario& scenario, std::vector<std::string>* notes) {
  for (const Step& step : scenario.steps) {
    for (const Action& action : step.actions) {
      if (Inputs inputs = MakeInputs(scenario, action, notes); !inputs.ok()) return inputs.status();
    }
  }
  return absl::OkStatus();
}

}  // namespace wavetank::scenario
