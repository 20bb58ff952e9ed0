#include "check/mesh/source.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/bounds.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/read_up_to.h"
#include "fakes/kube/objects/kinds.h"
#include "fakes/kube/objects/manifest.h"
#include "fmt/format.h"
#include "replay/event_log.h"
#include "replay/world_target.h"
#include "scenarios/mesh/installer_files.h"
#include "scenarios/mesh/manifests.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/start.h"
#include "sim/inputs/input.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::check {
namespace {

constexpr Duration kSettleLimit = 5min;  // as the messages below say

// Manifests once more, for where each object stands: what a world takes in has no lines.
absl::StatusOr<std::vector<BroughtObject>> ReadBrought(const scenario::Scenario& scenario, const MeshSource& source,
                                                       std::vector<BroughtObject>* operators) {
  std::vector<BroughtObject> out;
  for (const scenario::ClusterSpec& cluster : scenario.clusters) {
    for (const scenario::ManifestSpec& spec : cluster.manifests) {
      if (!spec.objects.is_null()) {
        absl::StatusOr<std::vector<nlohmann::json>> objects = scenario::LoadManifestObjects(spec, nullptr);
        if (!objects.ok()) return objects.status();
        for (nlohmann::json& object : *objects)
          out.push_back({cluster.name, spec.file, spec.line, std::move(object), false, {}});
        continue;
      }
      std::vector<fakekube::Manifest> installers;
      absl::StatusOr<std::vector<fakekube::Manifest>> manifests = scenario::LoadRendered(spec, nullptr, &installers);
      if (!manifests.ok()) return manifests.status();
      for (fakekube::Manifest& m : installers)
        operators->push_back({cluster.name, m.file, m.line, std::move(m.object), false, {}});
      const bool laid_over = std::any_of(source.with.begin(), source.with.end(),
                                         [&](const auto& with) { return with.second == spec.path; });
      for (fakekube::Manifest& m : *manifests) {
        nlohmann::json& meta = m.object["metadata"];
        if (!meta.contains("namespace") && !fakekube::ClusterScoped(m.object.value("kind", "")))
          meta["namespace"] = spec.ns.empty() ? "default" : spec.ns;
        out.push_back({cluster.name, m.file, m.line, std::move(m.object), m.dumped, std::move(m.status), laid_over});
      }
    }
  }
  return out;
}

absl::Status NoSuchCluster(const std::string& name, const std::string& path) {
  return absl::InvalidArgumentError(fmt::format("--with {}={}: the mesh has no cluster '{}'", name, path, name));
}

absl::Status AddOverlays(const MeshSource& source, scenario::Scenario* scenario) {
  for (const auto& [name, path] : source.with) {
    bool found = false;
    for (scenario::ClusterSpec& cluster : scenario->clusters) {
      if (cluster.name != name) continue;
      cluster.manifests.push_back({path, "", ""});
      found = true;
    }
    if (!found) return NoSuchCluster(name, path);
  }
  return absl::OkStatus();
}

absl::Status Start(const scenario::StartPhases& start, SettledMesh* mesh, const MeshSource& source) {
  for (const auto& [what, cluster] : start.mended) mesh->world->Mended(what, cluster);
  for (const std::vector<sim::Input>& phase : start.phases) {
    if (source.progress) source.progress("installing the mesh");
    for (const sim::Input& input : phase) {
      if (absl::Status status = mesh->world->Do(input); !status.ok()) {
        if (const auto* apply = input.As<sim::inputs::ApplyObject>();
            apply != nullptr && Message(status).starts_with("admission webhook")) {
          // A finding, as others are: what else is wrong with the mesh is told beside it.
          if (absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(apply->object); object.ok()) {
            mesh->refused.push_back({apply->cluster, *std::move(object), std::string(Message(status))});
            continue;
          }
        }
        return absl::InvalidArgumentError(
            fmt::format("cluster {}: {}", input.cluster().empty() ? "?" : input.cluster(), Message(status)));
      }
    }
    if (!mesh->world->RunUntilSettled(mesh->world->Now() + kSettleLimit)) {
      mesh->notes.emplace_back("the mesh has not settled after 5 minutes");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SettledMesh> FromStart(scenario::Scenario scenario, scenario::StartPhases start,
                                      const MeshSource& source) {
  SettledMesh out;
  sim::WorldOptions options = scenario::MakeWorldOptions(scenario);
  if (!source.profile.empty()) options.profile = source.profile;
  options.trace_requests = false;
  absl::StatusOr<std::unique_ptr<sim::World>> world = sim::World::Create(options);
  if (!world.ok()) return world.status();
  out.world = *std::move(world);
  out.notes = std::move(start.notes);
  absl::StatusOr<std::vector<BroughtObject>> brought = ReadBrought(scenario, source, &out.operators);
  if (!brought.ok()) return brought.status();
  out.brought = *std::move(brought);
  out.scenario = std::move(scenario);
  if (absl::Status status = Start(start, &out, source); !status.ok()) return status;
  return out;
}

absl::StatusOr<SettledMesh> FromScenario(const MeshSource& source) {
  absl::StatusOr<scenario::Scenario> scenario = scenario::LoadScenario(source.scenario);
  if (!scenario.ok()) return scenario.status();
  if (absl::Status status = AddOverlays(source, &*scenario); !status.ok()) return status;
  // A finding (WT701): what else is wrong is told beside it.
  for (scenario::ClusterSpec& cluster : scenario->clusters) {
    for (scenario::ManifestSpec& spec : cluster.manifests) spec.unmatched_left_out = true;
  }
  absl::StatusOr<scenario::StartPhases> start = scenario::MakeStart(*scenario);
  if (!start.ok()) return start.status();
  scenario::DateByCertificates(*start, &*scenario, &start->notes);
  return FromStart(*std::move(scenario), *std::move(start), source);
}

absl::StatusOr<SettledMesh> FromManifests(const MeshSource& source) {
  scenario::SurveyOptions options;
  options.clusters = source.clusters;
  options.seed = source.seed;
  options.unmatched_left_out = true;
  if (!source.profile.empty()) options.profile = source.profile;
  for (const auto& [name, path] : source.with) {
    bool found = false;
    for (scenario::SurveyCluster& cluster : options.clusters) {
      if (cluster.name == name) cluster.paths.push_back(path), found = true;
    }
    if (!found) return NoSuchCluster(name, path);
  }
  absl::StatusOr<scenario::MeshPlan> plan = scenario::PlanMesh(options);
  if (!plan.ok()) return plan.status();
  return FromStart(std::move(plan->scenario), std::move(plan->start), source);
}

// What a log sent, once for each flow.
void KeepTraffic(const replay::LogHeader& header, const replay::LogInput& input, SettledMesh* out) {
  const absl::StatusOr<sim::Input> read = replay::InputOf(header, input);
  const auto* traffic = read.ok() ? read->As<sim::inputs::StartTraffic>() : nullptr;
  if (traffic == nullptr) return;
  const bool known =
      std::any_of(out->traffic.begin(), out->traffic.end(), [&](const auto& t) { return t.flow == traffic->flow; });
  if (!known) out->traffic.push_back(*traffic);
}

absl::StatusOr<SettledMesh> FromLog(const MeshSource& source) {
  if (!source.with.empty())
    return absl::InvalidArgumentError("--with goes with scenarios and manifests, not with a log");
  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(source.log);
  if (!log.ok()) return log.status();
  if (const auto usable = replay::VerifyUsable(**log); !usable.ok()) return usable.status();
  absl::StatusOr<sim::WorldOptions> options = sim::WorldOptions::FromJson((*log)->header().world);
  if (!options.ok()) return options.status();
  if (!source.profile.empty()) options->profile = source.profile;
  options->trace_requests = false;
  SettledMesh out;
  out.scenario.clusters = scenario::ClustersOfWorld(*options);
  absl::StatusOr<std::unique_ptr<sim::World>> world = sim::World::Create(*options);
  if (!world.ok()) return world.status();
  out.world = *std::move(world);
  if (source.progress) source.progress("following the log");
  while (true) {
    absl::StatusOr<replay::LogReader::Item> item = (*log)->Next();
    if (!item.ok()) return item.status();
    if (*item == replay::LogReader::Item::kEnd) break;
    if (*item != replay::LogReader::Item::kInput) continue;
    const replay::LogInput& input = (*log)->input();
    // The mesh as it was last; its traffic says nothing about it, and is there for who asks what would become of it.
    if (input.kind == sim::inputs::StartTraffic::kKind) KeepTraffic((*log)->header(), input, &out);
    if (input.kind == sim::inputs::StartTraffic::kKind || input.kind == sim::inputs::StopTraffic::kKind) continue;
    if (source.log_until && input.at > (*log)->header().Beginning() + *source.log_until) continue;
    out.world->RunUntil(input.at);
    const absl::StatusOr<sim::Input> read = replay::InputOf((*log)->header(), input);
    if (!read.ok()) {
      return absl::Status(read.status().code(),
                          fmt::format("{}: {}: {}", source.log, replay::Describe(input, (*log)->header().Beginning()),
                                      Message(read.status())));
    }
    if (absl::Status status = out.world->Do(*read); !status.ok()) {
      out.notes.push_back(
          fmt::format("refused: {}: {}", replay::Describe(input, (*log)->header().Beginning()), Message(status)));
    }
  }
  if (!out.world->RunUntilSettled(out.world->Now() + kSettleLimit)) out.notes.emplace_back("the mesh has not settled");
  for (const sim::WorldCluster& cluster : out.world->options().clusters) {
    if (!source.live || !cluster.observed || out.world->cluster(cluster.name).live()) continue;
    if (absl::Status status = out.world->Do(sim::inputs::GoLive{cluster.name}); !status.ok()) return status;
    for (const std::string& note : out.world->cluster(cluster.name).untold())
      out.notes.push_back(fmt::format("{}: {}", cluster.name, note));
  }
  if (!out.world->RunUntilSettled(out.world->Now() + kSettleLimit)) out.notes.emplace_back("the mesh has not settled");
  return out;
}

bool JsonKubeConfig(const std::string& path) {
  constexpr uintmax_t kMost = 1 << 20;  // as record/kubeconfig_file.cc has it
  std::error_code error;
  if (std::filesystem::file_size(path, error) > kMost || error) return false;
  std::ifstream in(path, std::ios::binary);
  const nlohmann::json file = ParseJson(std::string(std::istreambuf_iterator<char>(in), {}));
  return file.is_object() && Text(file, "kind") == "Config" && file.contains("clusters");
}

}  // namespace

SourceKind KindOfSource(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(path, error))
    return fs::exists(fs::path(path) / "scenario.yaml", error) ? SourceKind::kScenario : SourceKind::kManifests;
  std::ifstream in(path, std::ios::binary);
  // Not as long as a line or the file goes on, which may be a device's. Scenarios and kubeconfigs are no longer.
  std::istringstream head(ReadUpTo(in, bounds::kScenarioBytes));
  std::string line;
  bool first = true, clusters = false, contexts = false, manifest = false;
  while (std::getline(head, line)) {
    if (first && line.starts_with("SQLite format")) return SourceKind::kLog;
    first = false;
    if (line.starts_with("{")) return JsonKubeConfig(path) ? SourceKind::kKubeConfig : SourceKind::kManifests;
    clusters = clusters || line.starts_with("clusters:");
    contexts = contexts || line.starts_with("contexts:") || line.starts_with("current-context:");
    manifest = manifest || line.starts_with("apiVersion:");
    if (line.starts_with("metadata:") || (manifest && line.starts_with("---"))) break;
    if (line.starts_with("steps:") || line.starts_with("extends:")) return SourceKind::kScenario;
  }
  // A kubeconfig has both, whatever order it is written in; a scenario knows no contexts.
  if (clusters && contexts) return SourceKind::kKubeConfig;
  return clusters && !manifest ? SourceKind::kScenario : SourceKind::kManifests;
}

std::string MeshSource::FirstPath() const {
  if (!stands_for.empty()) return stands_for;
  if (!scenario.empty() || !log.empty()) return scenario.empty() ? log : scenario;
  for (const scenario::SurveyCluster& cluster : clusters) {
    if (!cluster.paths.empty()) return cluster.paths.front();
  }
  return with.empty() ? "" : with.front().second;
}

absl::StatusOr<SettledMesh> BringToRest(const MeshSource& source) {
  if (!source.scenario.empty()) return FromScenario(source);
  if (!source.log.empty()) return FromLog(source);
  return FromManifests(source);
}

}  // namespace wavetank::check
