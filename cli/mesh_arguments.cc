#include "cli/mesh_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/recorder.h"
#include "core/base/status.h"
#include "core/base/text/kube_names.h"
#include "fakes/kube/objects/manifest.h"
#include "fmt/format.h"
#include "scenarios/language/date.h"
#include "scenarios/language/install_setting.h"
#include "scenarios/language/yaml_reader.h"
#include "scenarios/mesh/installer_files.h"
#include "scenarios/reader/read_scenario.h"

namespace wavetank::cli {

absl::StatusOr<std::pair<std::string, std::string>> SplitPair(const std::string& text, const char* option) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(fmt::format("{} '{}' is not NAME=VALUE", option, text));
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

bool LooksLikeScenario(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return std::filesystem::exists(std::filesystem::path(path) / "scenario.yaml", ignored);
  }
  absl::StatusOr<std::unique_ptr<scenario::Document>> document = scenario::Document::Load(path);
  if (!document.ok()) return std::filesystem::path(path).filename() == "scenario.yaml";
  const scenario::Field root = (*document)->root();
  return root.IsMap() && !root["kind"].present() &&
         (root["clusters"].present() || root["steps"].present() || root["extends"].present());
}

absl::StatusOr<scenario::Moment> ParseMomentOf(const char* option, const std::string& text,
                                               const scenario::Scenario* scenario) {
  return scenario::ParseMoment(option, text, scenario == nullptr ? std::vector<std::string>() : scenario->StepNames());
}

void MeshArguments::AddTo(CLI::App* verb, const char* folder, const char* help) {
  verb->add_option(folder, folders, help);
  verb->add_option("--cluster", clusters, "NAME=FILE..., any number of times");
  verb->add_option("--control-plane", control_planes, "NAME=PRIMARY for a cluster without an istiod of its own")
      ->allow_extra_args(false);
  verb->add_option("-n,--namespace", ns, "Of objects that name none");
  verb->add_option("--set", install,
                   "[CLUSTER:][FILE:]PATH=VALUE as of `istioctl install --set`, any number of times, over the "
                   "IstioOperator among a cluster's manifests, or, without one, as its installation: profile=minimal, "
                   "c1:values.global.network=network1")
      ->allow_extra_args(false);
  AddCharts(verb);
}

void AddCharts(CLI::App* verb) {
  verb->add_option_function<std::string>(
      "--charts", [](const std::string& folder) { setenv("ISTIO_CHARTS", folder.c_str(), 1); },
      "Istio's manifests, or their charts, that istioctl is to render IstioOperators by (also $ISTIO_CHARTS)");
}

void AddMending(CLI::App* verb, std::string* mend, std::string* date) {
  verb->add_option(
      "--mend", *mend,
      "What of the mesh's gaps is filled in: all, none, or names between commas: istiod, clusterID, external, "
      "controlPlane, address, servers, rbac, roots, tokens, network; without it, what a mesh without a "
      "control plane of its own lacks");
  verb->add_option(
      "--date", *date,
      "Where the mesh's clock begins, 2026-11-23 or 2026-11-23T10:00:00Z; without it, where the manifests' "
      "certificates hold, else 2023-09-01");
}

void AddSettings(CLI::App* verb, std::vector<std::string>* settings) {
  verb->add_option("--set", *settings,
                   "PATH=VALUE, any number of times, in the place of what the scenario says: "
                   "timing.istiod.debounce_after=50ms, flows.NAME.rate=200/s, steps.NAME.do.0.scale.replicas=3; or "
                   "CLUSTER:[FILE:]PATH=VALUE, as of `istioctl install --set`, over an IstioOperator of its manifests");
}

absl::Status TakeMending(const std::string& mend, const std::string& date, sim::Mending* mending,
                         std::optional<Time>* begins) {
  absl::StatusOr<sim::Mending> chosen = sim::Mending::Parse(mend);
  if (!chosen.ok()) return absl::InvalidArgumentError(fmt::format("--mend: {}", Message(chosen.status())));
  if (chosen->chosen()) *mending = *chosen;
  if (date.empty()) return absl::OkStatus();
  absl::StatusOr<Time> parsed = scenario::ParseDate("--date", date);
  if (!parsed.ok()) return parsed.status();
  *begins = *parsed;
  return absl::OkStatus();
}

namespace {

// A file of that name, with its extension or without, is among these or in one of these folders.
bool HasFile(const std::vector<std::string>& paths, const std::string& name) {
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path, ignored)) {
      if (scenario::IsCalled(path, name)) return true;
      continue;
    }
    using Walk = std::filesystem::recursive_directory_iterator;
    for (Walk at(path, std::filesystem::directory_options::skip_permission_denied, ignored), end; at != end;
         at.increment(ignored)) {
      if (scenario::IsCalled(at->path(), name)) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<std::vector<scenario::SurveyCluster>> MeshArguments::Clusters() const {
  if (!ns.empty() && (!ReadsAsDnsLabel(ns) || ns.size() > kLongestDnsLabel))
    return absl::InvalidArgumentError(fmt::format("-n {}: is no namespace's name: {}", ns, kDnsLabelSays));
  std::vector<scenario::SurveyCluster> out;
  const auto cluster = [&](const std::string& name) -> scenario::SurveyCluster& {
    const auto it = std::find_if(out.begin(), out.end(), [&](const auto& c) { return c.name == name; });
    if (it != out.end()) return *it;
    out.push_back({name, {}, "", ns, false});
    return out.back();
  };
  for (const std::string& folder : folders) {
    const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
    const std::string name = (path.has_filename() ? path : path.parent_path()).filename().stem().string();
    scenario::SurveyCluster& at = cluster(name);
    at.paths.push_back(folder);
    at.by_folder = true;
  }
  std::string last;
  for (const std::string& text : clusters) {
    // `--cluster c1=a.yaml b.yaml`: what follows without a name belongs to the same cluster.
    if (text.find('=') == std::string::npos && !last.empty()) {
      cluster(last).paths.push_back(text);
      continue;
    }
    const auto pair = SplitPair(text, "--cluster");
    if (!pair.ok()) return pair.status();
    last = pair->first;
    cluster(last).paths.push_back(pair->second);
    cluster(last).by_folder = false;
  }
  if (out.empty()) {
    return absl::InvalidArgumentError("no manifests; give a folder per cluster, or --cluster NAME=FILE...");
  }
  for (const std::string& text : control_planes) {
    const auto pair = SplitPair(text, "--control-plane");
    if (!pair.ok()) return pair.status();
    const std::string &name = pair->first, &primary = pair->second;
    const auto refuse = [&](std::string_view why) {
      return absl::InvalidArgumentError(fmt::format("--control-plane {}: {}", text, why));
    };
    // A name that nothing else says would be a cluster without any manifests.
    const auto it = std::find_if(out.begin(), out.end(), [&](const auto& each) { return each.name == name; });
    if (it == out.end())
      return refuse(
          fmt::format("no cluster is called {}; a folder, or --cluster {}=FILE, gives its manifests", name, name));
    if (name == primary) return refuse("a cluster with an istiod of its own needs no such word");
    if (!it->control_plane.empty() && it->control_plane != primary)
      return refuse(fmt::format("{} has {} for its control plane already", name, it->control_plane));
    it->control_plane = primary;
  }
  for (const std::string& setting : install) {
    const auto [name, text] = scenario::SplitInstallSetting(setting);
    bool taken = false;
    for (scenario::SurveyCluster& each : out) {
      const bool named = each.name == name;
      if (!named && !name.empty() && !HasFile(each.paths, name)) continue;
      each.set.push_back(named ? text : setting);
      taken = true;
    }
    if (!taken) {
      return absl::InvalidArgumentError(
          fmt::format("--set {}: neither a cluster nor a file of manifests is called {}", setting, name));
    }
  }
  return out;
}

namespace {

// Fields of an IstioOperator's spec which a scenario does not have (istio: operator/pkg/apis/istio/v1alpha1).
constexpr std::string_view kOfOperatorsAlone[] = {"addonComponents",
                                                  "compatibilityVersion",
                                                  "components",
                                                  "defaultRevision",
                                                  "hub",
                                                  "installPackagePath",
                                                  "namespace",
                                                  "revision",
                                                  "tag",
                                                  "unvalidatedValues",
                                                  "values"};

std::vector<std::string> PathsOf(const scenario::ClusterSpec& cluster) {
  std::vector<std::string> out;
  for (const scenario::ManifestSpec& manifest : cluster.manifests) {
    if (!manifest.path.empty()) out.push_back(manifest.path);
  }
  return out;
}

// To the clusters of the scenario that the text means. False: it means none, and is the scenario's own.
absl::StatusOr<bool> GiveInstallSetting(const std::string& text, scenario::Scenario* scenario) {
  const auto [name, setting] = scenario::SplitInstallSetting(text);
  const std::string_view first = std::string_view(setting).substr(0, setting.find_first_of(".=["));
  const bool of_operators =
      std::find(std::begin(kOfOperatorsAlone), std::end(kOfOperatorsAlone), first) != std::end(kOfOperatorsAlone);
  if (name.empty() && !of_operators) return false;
  bool taken = false;
  for (scenario::ClusterSpec& cluster : scenario->clusters) {
    const std::vector<std::string> paths = PathsOf(cluster);
    const bool has = std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
      return fakekube::AnyMentions(path, {"IstioOperator"});
    });
    if (cluster.name != name && !(name.empty() ? has : HasFile(paths, name))) continue;
    if (absl::Status given = scenario::GiveSettings({cluster.name == name ? setting : text}, &cluster); !given.ok())
      return given;
    taken = true;
  }
  if (taken || (!of_operators && scenario->FindCluster(name) == nullptr && name.find('.') != name.npos)) return taken;
  if (!name.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "--set {}: neither a cluster of the scenario nor a file of its manifests is called {}", text, name));
  }
  return absl::InvalidArgumentError(
      fmt::format("--set {}: {} is an IstioOperator's, and no cluster's manifests hold one; CLUSTER:{} installs Istio "
                  "there by these settings alone",
                  text, first, text));
}

}  // namespace

absl::StatusOr<scenario::Scenario> LoadScenarioWith(const std::string& path,
                                                    const std::vector<scenario::ClusterSpec>& mesh,
                                                    const std::vector<std::string>& settings) {
  std::vector<scenario::Setting> own;
  std::vector<std::string> of_installations;
  std::optional<absl::StatusOr<scenario::Scenario>> before;  // without any of them
  for (const std::string& text : settings) {
    absl::StatusOr<bool> install = false;
    const bool may = !scenario::SplitInstallSetting(text).name.empty() ||
                     std::any_of(std::begin(kOfOperatorsAlone), std::end(kOfOperatorsAlone),
                                 [&](std::string_view field) { return text.starts_with(field); });
    if (may) {
      // Whether it means an installation the scenario's clusters and files say.
      if (!before) before = scenario::LoadScenario(path, mesh, {});
      if (!before->ok()) return *before;
      install = GiveInstallSetting(text, &**before);
    }
    if (!install.ok()) return install.status();
    if (*install) {
      of_installations.push_back(text);
      continue;
    }
    absl::StatusOr<scenario::Setting> setting = scenario::ParseSetting(text);
    if (!setting.ok()) return absl::InvalidArgumentError(fmt::format("--set {}", Message(setting.status())));
    own.push_back(*std::move(setting));
  }
  absl::StatusOr<scenario::Scenario> out = scenario::LoadScenario(path, mesh, own);
  if (!out.ok() || of_installations.empty()) return out;
  if (!mesh.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "--set {}: is of an installation, and the log of --from brings its own; leave it out", of_installations[0]));
  }
  for (const std::string& text : of_installations) {
    if (const absl::StatusOr<bool> given = GiveInstallSetting(text, &*out); !given.ok()) return given.status();
    out->settings.push_back(text);
  }
  return out;
}

absl::Status AddOverlay(const std::string& text, std::vector<std::pair<std::string, std::string>>* out) {
  namespace fs = std::filesystem;
  if (text.find('=') != std::string::npos) {
    const auto pair = SplitPair(text, "--with");
    if (!pair.ok()) return pair.status();
    out->push_back(*pair);
    return absl::OkStatus();
  }
  std::error_code error;
  if (!fs::is_directory(text, error)) {
    return absl::InvalidArgumentError(
        fmt::format("--with {}: neither CLUSTER=PATH nor a folder with a file for each cluster", text));
  }
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(text, error)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& path : entries) out->emplace_back(path.stem().string(), path.string());
  if (entries.empty()) return absl::InvalidArgumentError(fmt::format("--with {}: an empty folder", text));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ClusterFolders(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension().string();
    std::error_code ignored;  // of a link that leads nowhere
    if (entry.is_directory(ignored) || extension == ".yaml" || extension == ".yml" || extension == ".json")
      out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  if (out.empty())
    return absl::InvalidArgumentError(fmt::format("{}: no folder with a folder of manifests for each cluster", folder));
  return out;
}

absl::Status MeshArguments::CheckBeside(const std::string& path, bool scenario) const {
  const auto refuse = [&](const char* option, const std::string& value, const char* remedy) {
    return absl::InvalidArgumentError(
        scenario ? fmt::format("{} {}: {} {}", option, value, path, remedy)
                 : fmt::format("{} {}: is of manifests, and {} is a whole mesh; leave it out", option, value, path));
  };
  if (!install.empty())
    return refuse("--set", install.front(),
                  "says it itself of its installation, as `set:` beside the manifest's `path:`, or as `install:`");
  if (!ns.empty())
    return refuse("--namespace", ns,
                  "says it itself of its manifests, as `namespace:` beside the `path:`; write it into the objects of "
                  "--with");
  if (!control_planes.empty())
    return refuse("--control-plane", control_planes.front(), "says it itself, as `controlPlane:` of the cluster");
  return absl::OkStatus();
}

void MeshSourceArguments::AddTo(CLI::App* verb) {
  manifests.AddTo(verb, "mesh",
                  "A scenario, an event log, kubeconfigs of live clusters, or a folder (or file) of manifests per "
                  "cluster, which it names");
  verb->add_option("--kubeconfig", kubeconfigs,
                   "File with live clusters' contexts, each a cluster of the mesh: read only, once");
  verb->add_option("--context", contexts, "Only these contexts");
  verb->add_option("--with", with,
                   "CLUSTER=PATH, or a folder with a file per cluster: manifests applied over the mesh");
  verb->add_option("--profile", profile, "Behaviour profile; otherwise the mesh's own");
  verb->add_option("--seed", seed, "Of a world of manifests");
}

absl::StatusOr<check::MeshSource> MeshSourceArguments::OfLiveClusters(std::vector<std::string> files) const {
  if (!with.empty())
    return absl::InvalidArgumentError("--with goes with scenarios and manifests, not with live clusters");
  if (seed) return absl::InvalidArgumentError("--seed is of a world of manifests, not of live clusters");
  if (absl::Status status = manifests.CheckBeside(files.front(), false); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<const LivePicture>> picture = TakeLivePicture(files, contexts);
  if (!picture.ok()) return picture.status();
  check::MeshSource out;
  out.profile = profile;
  out.log = (*picture)->log;
  out.stands_for = files.front();
  out.keeper = *std::move(picture);
  return out;
}

absl::StatusOr<check::MeshSource> MeshSourceArguments::Source() const {
  check::MeshSource out;
  out.profile = profile;
  out.seed = seed.value_or(out.seed);
  for (const std::string& text : with) {
    if (absl::Status status = AddOverlay(text, &out.with); !status.ok()) return status;
  }
  std::vector<std::string> live = kubeconfigs, others;
  for (const std::string& path : manifests.folders)
    (check::KindOfSource(path) == check::SourceKind::kKubeConfig ? live : others).push_back(path);
  if (!live.empty()) {
    if (!others.empty() || !manifests.clusters.empty())
      return absl::InvalidArgumentError(
          fmt::format("{}: live clusters are a whole mesh, and stand alone", live.front()));
    return OfLiveClusters(std::move(live));
  }
  if (!contexts.empty()) return absl::InvalidArgumentError("--context is of a kubeconfig; name one with --kubeconfig");
  if (manifests.folders.size() == 1 && manifests.clusters.empty()) {
    const std::string& path = manifests.folders.front();
    switch (check::KindOfSource(path)) {
      case check::SourceKind::kScenario:
        if (absl::Status status = manifests.CheckBeside(path, true); !status.ok()) return status;
        if (seed)
          return absl::InvalidArgumentError("--seed is of a world of manifests; a scenario says its own (`seed:`)");
        out.scenario = path;
        return out;
      case check::SourceKind::kLog:
        if (absl::Status status = manifests.CheckBeside(path, false); !status.ok()) return status;
        if (seed) return absl::InvalidArgumentError("--seed is of a world of manifests; an event log has its own");
        out.log = path;
        return out;
      case check::SourceKind::kManifests:
      case check::SourceKind::kKubeConfig:
        break;
    }
  }
  for (const std::string& path : manifests.folders) {
    if (check::KindOfSource(path) == check::SourceKind::kManifests) continue;
    return absl::InvalidArgumentError(fmt::format("{}: a scenario or a log is a whole mesh, and stands alone", path));
  }
  absl::StatusOr<std::vector<scenario::SurveyCluster>> clusters = manifests.Clusters();
  if (!clusters.ok()) return clusters.status();
  out.clusters = *std::move(clusters);
  return out;
}

}  // namespace wavetank::cli
