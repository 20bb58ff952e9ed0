#include "scenarios/reader/read_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/config/mesh/mesh_fields.h"
#include "core/profile/profile.h"
#include "scenarios/actions/action.h"
#include "scenarios/language/date.h"
#include "scenarios/reader/mappings.h"
#include "scenarios/reader/parts.h"
#include "sim/timing.h"

namespace wavetank::scenario {
namespace {

// A word that MeshConfig does not have is a mistake here, though an istiod takes it without one.
nlohmann::json ReadMeshConfig(const Field& field) {
  nlohmann::json out = field.Json();
  for (const config::UnknownMeshField& unknown : config::UnknownMeshFields("MeshConfig", out)) {
    Field at = field;
    for (const std::string& name : unknown.path) {
      if (at.IsMap()) at = at[name];  // as far as no list stands between
    }
    const std::string_view near = Nearest(unknown.path.back(), unknown.known);
    at.Fail(fmt::format("{} has no field '{}'", unknown.message, unknown.path.back()),
            near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  }
  return out;
}

// A scenario's fields: its own, or else those of the one that it extends.
class Root {
 public:
  Root(Document& own, Document* base) : own_(own.root()) {
    if (base != nullptr) base_ = base->root();
  }
  Field operator[](const std::string& key) const { return Inherited(key) ? (*base_)[key] : own_[key]; }
  bool Inherited(const std::string& key) const {
    return base_ && key != "steps" && key != "throughout" && key != "incident" && !own_[key].present() &&
           (*base_)[key].present();
  }

 private:
  Field own_;
  std::optional<Field> base_;
};

constexpr std::string_view kFileOfFolder = "scenario.yaml";

bool IsFolder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::filesystem::path FolderOf(const Document& document) {
  return std::filesystem::path(document.name()).parent_path();
}

// The file of the scenario that `document` extends, relative to the document's folder.
std::filesystem::path BaseFile(Document& document) {
  const std::filesystem::path base(document.root()["extends"].Text());
  return IsFolder(FolderOf(document) / base) ? base / kFileOfFolder : base;
}

// The scenario that `document` extends. Null: none. Beside a mistake in it, what stands in its way is an error.
absl::StatusOr<std::unique_ptr<Document>> BaseOf(Document& document) {
  const Field extends = document.root()["extends"];
  if (!extends.present()) return nullptr;
  const std::string file = (FolderOf(document) / BaseFile(document)).lexically_normal().string();
  absl::StatusOr<std::unique_ptr<Document>> base = Document::Load(file);
  if (absl::IsNotFound(base.status())) {
    extends.Fail(fmt::format("{}: no such scenario", file), "name a scenario's file, or a folder with a scenario.yaml");
    return document.status();
  }
  if (!base.ok()) return base.status();
  const Field root = (*base)->root();
  CheckMapping(root, MappingNamed("scenario"), nullptr);
  if (root["extends"].present()) root["extends"].Fail("stands in a scenario that is extended", "extend one only");
  if (!(*base)->status().ok()) return (*base)->status();
  return base;
}

// Into the document that has the field, or else into the scenario's own.
absl::Status PutAll(const std::vector<Setting>& settings, Document& own, Document* base) {
  for (const Setting& setting : settings) {
    const absl::StatusOr<std::vector<std::string>> segments = PathSegments(setting.path);
    if (!segments.ok()) return segments.status();
    if (segments->front() == "extends") {
      return absl::InvalidArgumentError("extends: another mesh is another scenario; write one that extends it");
    }
    const bool inherited = base != nullptr && Root(own, base).Inherited(segments->front());
    if (absl::Status status = Put(setting, inherited ? *base : own); !status.ok()) return status;
  }
  CheckMapping(own.root(), MappingNamed("scenario"), nullptr);
  return absl::OkStatus();
}

// A cluster's name says which of the log's is meant.
std::vector<std::string> LeftToLog(const Root& root) {
  std::vector<std::string> out;
  for (const char* key :
       {"seed", "profile", "ca", "mend", "date", "links", "remoteSecrets", "keySets", "issuers", "meshConfig"}) {
    if (root[key].present()) out.emplace_back(key);
  }
  std::set<std::string> of_clusters;
  for (const Field& cluster : root["clusters"].Items()) {
    for (const auto& [key, value] : cluster.Entries()) of_clusters.insert(key);
  }
  of_clusters.erase("name");
  for (const std::string& key : of_clusters) out.push_back("clusters' " + key);
  return out;
}

absl::StatusOr<Scenario> Read(Document& document, const std::vector<ClusterSpec>& mesh,
                              const std::vector<Setting>& settings) {
  Scenario s;
  s.file = document.name();
  if (!document.root().present())
    return absl::InvalidArgumentError(fmt::format("{}: is empty; write a scenario", s.file));
  CheckMapping(document.root(), MappingNamed("scenario"), nullptr);
  absl::StatusOr<std::unique_ptr<Document>> base = BaseOf(document);
  if (!base.ok()) return base.status();
  if (!settings.empty() && document.status().ok()) {
    if (absl::Status status = PutAll(settings, document, base->get()); !status.ok()) return status;
    for (const Setting& setting : settings) s.settings.push_back(setting.Text());
  }
  const Root root(document, base->get());
  const std::filesystem::path file(s.file);
  const bool in_folder = file.filename() == kFileOfFolder && file.has_parent_path();
  s.name = root["name"].Text((in_folder ? file.parent_path().filename() : file.stem()).string());
  s.description = root["description"].Text();
  s.seed = static_cast<uint64_t>(root["seed"].Integer(1, 0, INT64_MAX));
  s.profile = root["profile"].Text(s.profile);
  if (const auto profile = pilot::ParseProfile(s.profile); !profile.ok())
    root["profile"].Fail(Message(profile.status()));
  const std::string ca = root["ca"].Text("common-root");
  s.ca = ca == "common-root" ? CaPlan::kCommonRoot : ca == "own-roots" ? CaPlan::kOwnRoots : CaPlan::kSelfSigned;
  s.ca_said = root["ca"].present();
  if (const auto mending = sim::Mending::Parse(root["mend"].Text()); mending.ok()) {
    s.mending = *mending;
  } else {
    root["mend"].Fail(Message(mending.status()), "write all, none or some of them between commas");
  }
  s.unready = root["unready"].Flag(false);
  if (root["date"].present()) {
    if (const auto date = ParseDate("", root["date"].Text()); date.ok()) {
      s.date = *date;
    } else {
      root["date"].Fail(Message(date.status()), "write 2026-11-23 or 2026-11-23T10:00:00Z");
    }
  }
  for (const Field& cluster : root["clusters"].Items()) {
    s.clusters.push_back(ReadCluster(cluster));
  }
  s.of_log = !root["clusters"].present() && !mesh.empty();
  if (!mesh.empty()) s.left_to_log = LeftToLog(root);
  if (s.of_log) s.clusters = mesh;
  if (s.clusters.empty()) root["clusters"].Fail("is required but missing", "name at least one cluster");
  std::set<std::string> names;
  for (const Field& cluster : root["clusters"].Items()) {
    if (!names.insert(cluster["name"].Text()).second) {
      cluster["name"].Fail(fmt::format("two clusters are named '{}'", cluster["name"].Text()), "rename one");
    }
    const Field control_plane = cluster["controlPlane"];
    if (control_plane.present() && s.FindCluster(control_plane.Text()) == nullptr) {
      control_plane.Fail(fmt::format("no cluster is named '{}'", control_plane.Text()),
                         "name the cluster whose istiod serves this one");
    }
  }
  for (const Field& link : root["links"].Items()) {
    const LinkSpec read = ReadLink(link, s);
    const bool said = std::any_of(s.links.begin(), s.links.end(), [&](const LinkSpec& other) {
      return (other.a == read.a && other.b == read.b) || (other.a == read.b && other.b == read.a);
    });
    if (said)
      link["between"].Fail(fmt::format("the line between {} and {} was said already", read.a, read.b),
                           "say each line once, in either direction");
    s.links.push_back(read);
  }
  if (root["physical"].present() && s.of_log)
    root["physical"].Fail("the log brings its own", "leave it out; steps may change it");
  if (root["physical"].present()) s.physical = ReadPhysical(root["physical"], s);
  for (const Field& secret : root["remoteSecrets"].Items()) {
    CheckMapping(secret, MappingNamed("remoteSecret"), &s);
    s.remote_secrets.push_back({secret["of"].Text(), secret["in"].Text()});
    const auto& added = s.remote_secrets.back();
    if (std::any_of(s.remote_secrets.begin(), s.remote_secrets.end() - 1,
                    [&](const auto& other) { return other.of == added.of && other.in == added.in; }))
      secret.Fail(fmt::format("the remote Secret of {} in {} was said already", added.of, added.in), "say it once");
  }
  for (const Field& set : root["keySets"].Items()) {
    const MappingRow& row = MappingNamed("action.keySet");
    CheckMapping(set, row, &s);
    s.key_sets.push_back(ReadMapping(set, row));
  }
  for (const Field& issuer : root["issuers"].Items()) {
    CheckMapping(issuer, MappingNamed("issuer"), &s);
    s.issuers.push_back({issuer["name"].Text(), issuer["jwksUri"].Text()});
  }
  sim::Timing timing;
  for (const auto& [name, value] : root["timing"].Entries()) {
    s.timing[name] = value.Text();
    if (absl::Status status = timing.Set(name, value.Text()); !status.ok()) value.Fail(Message(status));
  }
  if (root["meshConfig"].present()) s.mesh_config = ReadMeshConfig(root["meshConfig"]);
  for (const Field& flow : root["flows"].Items()) s.flows.push_back(ReadFlow(flow, s));
  if (root["incident"].present()) s.incident = ReadIncident(root["incident"]);
  s.settle = root["settle"].Time(s.settle);
  if (const Field throughout = root["throughout"]; throughout.present()) s.throughout = ReadThroughout(throughout, s);
  for (const Field& step : root["steps"].Items()) s.steps.push_back(ReadStep(step, s));
  if (!document.status().ok()) return document.status();
  if (*base == nullptr) return s;
  if (!(*base)->status().ok()) return (*base)->status();
  // Paths are relative to the file that names them.
  const std::filesystem::path there = BaseFile(document).parent_path().lexically_normal();
  for (ClusterSpec& cluster : s.clusters) {
    for (ManifestSpec& manifest : cluster.manifests) {
      if (root.Inherited("clusters") && !manifest.path.empty()) manifest.path = (there / manifest.path).string();
    }
  }
  return s;
}

absl::StatusOr<Scenario> Load(const std::string& path, const std::vector<ClusterSpec>& mesh,
                              const std::vector<Setting>& settings) {
  std::error_code error;
  std::filesystem::path file(path);
  if (IsFolder(file)) file /= kFileOfFolder;
  absl::StatusOr<std::unique_ptr<Document>> document = Document::Load(file.string());
  if (!document.ok()) {
    if (absl::IsNotFound(document.status())) {
      return absl::NotFoundError(
          fmt::format("{}: no such scenario; give a scenario file or a folder with a scenario.yaml", file.string()));
    }
    return document.status();
  }
  absl::StatusOr<Scenario> scenario = Read(**document, mesh, settings);
  if (!scenario.ok()) return scenario;
  const std::filesystem::path folder = file.parent_path();
  const auto resolve = [&](const std::string& relative) { return (folder / relative).lexically_normal().string(); };
  for (ClusterSpec& cluster : scenario->clusters) {
    for (ManifestSpec& manifest : cluster.manifests) {
      if (manifest.path.empty()) continue;  // its objects stand in the scenario
      manifest.path = resolve(manifest.path);
      if (!std::filesystem::exists(manifest.path, error)) {
        return absl::NotFoundError(fmt::format("{}:{}: cluster {}: manifest {} does not exist; check the path",
                                               manifest.file, manifest.line, cluster.name, manifest.path));
      }
    }
  }
  for (Step& step : scenario->steps) {
    for (Action& action : step.actions) {
      const ActionKind* kind = FindAction(action.kind);
      for (const FieldRow& field : kind->row.fields) {
        if (field.type != FieldType::kPath || !action.arguments.contains(field.name)) continue;
        const std::string there = resolve(TextOf(action.arguments[std::string(field.name)]));
        if (!std::filesystem::exists(there, error)) {
          return absl::NotFoundError(fmt::format("{}:{}: {} {} does not exist; check the path", file.string(),
                                                 action.line, field.name, there));
        }
        action.arguments[std::string(field.name)] = there;
      }
    }
  }
  return scenario;
}

}  // namespace

absl::StatusOr<Scenario> ParseScenario(const std::string& name, const std::string& text,
                                       const std::vector<ClusterSpec>& mesh) {
  absl::StatusOr<std::unique_ptr<Document>> document = Document::Parse(name, text);
  if (!document.ok()) return document.status();
  return Read(**document, mesh, {});
}

absl::StatusOr<Scenario> LoadScenario(const std::string& path, const std::vector<ClusterSpec>& mesh,
                                      const std::vector<Setting>& settings) {
  if (!settings.empty()) {
    absl::StatusOr<Scenario> out = Load(path, mesh, settings);
    if (out.ok()) return out;
    // What is wrong without them is not their fault.
    if (absl::StatusOr<Scenario> plain = Load(path, mesh, {}); !plain.ok()) return plain;
    return absl::Status(out.status().code(), With(settings) + std::string(Message(out.status())));
  }
  return Load(path, mesh, settings);
}

}  // namespace wavetank::scenario
