#include "scenarios/mesh/manifests.h"

#include <fmt/format.h>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/label_selector.h"
#include "fakes/kube/objects/kinds.h"
#include "fakes/kube/objects/manifest.h"
#include "scenarios/mesh/installer_files.h"
#include "scenarios/mesh/known_resources.h"
#include "scenarios/mesh/manifest_check.h"
#include "sim/inputs/input.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::scenario {
namespace {

using nlohmann::json;

// Where it is, of a spec whose objects are in `ns` where they name none; empty: in no namespace.
std::string NamespaceOf(const json& object, const std::string& ns) {
  const std::string own = Text(At(object, "metadata"), "namespace");
  if (!own.empty() || fakekube::ClusterScoped(Text(object, "kind"))) return own;
  return ns.empty() ? "default" : ns;
}

void SetNamespace(json& object, const std::string& ns) {
  if (std::string own = NamespaceOf(object, ns); !own.empty()) object["metadata"]["namespace"] = std::move(own);
}

kube::Labels LabelsOf(const json& object) {
  kube::Labels labels;
  const json& given = At(object, {"metadata", "labels"});
  for (const auto& [key, value] : given.items()) {
    if (value.is_string()) labels[key] = value.get<std::string>();
  }
  return labels;
}

}  // namespace

absl::StatusOr<std::vector<json>> LoadManifestObjects(const ManifestSpec& spec, std::vector<std::string>* notes,
                                                      std::vector<Installation>* installations) {
  absl::StatusOr<kube::LabelSelector> selector = kube::LabelSelector::Parse(spec.selector);
  if (!selector.ok()) return selector.status();
  if (!spec.objects.is_null()) {
    json matched;
    if (spec.unmatched_left_out) {
      matched = json::array();
      for (const json& object : Items(spec.objects))
        if (NoMatch(object).empty()) matched.push_back(object);
    }
    absl::StatusOr<std::vector<json>> objects =
        CheckInlineObjects(spec.file, spec.line, spec.unmatched_left_out ? matched : spec.objects, spec.ns, notes);
    if (!objects.ok() || selector->empty()) return objects;
    std::erase_if(*objects, [&](const json& object) { return !selector->Matches(LabelsOf(object)); });
    return objects;
  }
  absl::StatusOr<std::vector<fakekube::Manifest>> manifests = LoadRendered(spec, notes, nullptr, installations);
  if (!manifests.ok()) return manifests.status();
  std::vector<json> out;
  for (fakekube::Manifest& manifest : *manifests) {
    if (!selector->empty() && !selector->Matches(LabelsOf(manifest.object))) continue;
    if (spec.unmatched_left_out && !NoMatch(manifest.object).empty()) continue;
    SetNamespace(manifest.object, spec.ns);
    absl::Status status = CheckManifest(manifest.file, manifest.line, manifest.object, notes);
    if (!status.ok()) return status;
    out.push_back(std::move(manifest.object));
  }
  return out;
}

absl::StatusOr<std::vector<json>> LoadClusterManifests(const ClusterSpec& cluster, std::vector<std::string>* notes) {
  std::vector<json> out;
  std::vector<Installation> installations;
  for (const ManifestSpec& spec : cluster.manifests) {
    absl::StatusOr<std::vector<json>> objects = LoadManifestObjects(spec, notes, &installations);
    if (!objects.ok()) return objects.status();
    for (json& object : *objects) out.push_back(std::move(object));
  }
  if (absl::Status status = MakeDefault(installations, &out); !status.ok()) return status;
  return out;
}

std::string PlaceInManifests(const ClusterSpec& cluster, const json& object) {
  const auto same = [&](const json& other, const ManifestSpec& spec) {
    const json &one = At(object, "metadata"), &meta = At(other, "metadata");
    return Text(other, "kind") == Text(object, "kind") && Text(meta, "name") == Text(one, "name") &&
           NamespaceOf(other, spec.ns) == Text(one, "namespace");
  };
  std::string out;
  for (const ManifestSpec& spec : cluster.manifests) {
    for (const json& inline_object : Items(spec.objects)) {
      if (same(inline_object, spec)) out = fmt::format("{}:{}", spec.file, spec.line);
    }
    if (!spec.objects.is_null()) continue;
    const absl::StatusOr<std::vector<fakekube::Manifest>> manifests = LoadRendered(spec);
    if (!manifests.ok()) continue;
    for (const fakekube::Manifest& manifest : *manifests) {
      if (same(manifest.object, spec)) out = fmt::format("{}:{}", manifest.file, manifest.line);
    }
  }
  return out;
}

absl::Status AtItsPlace(const Scenario& scenario, const sim::Input& input, const absl::Status& refused) {
  std::string place = scenario.file, what(input.kind());
  if (const auto* apply = input.As<sim::inputs::ApplyObject>(); apply != nullptr) {
    const nlohmann::json& metadata = At(apply->object, "metadata");
    const std::string ns = Text(metadata, "namespace");
    what = fmt::format("{} {}{}{}", Text(apply->object, "kind"), ns, ns.empty() ? "" : "/", Text(metadata, "name"));
    const ClusterSpec* const cluster = scenario.FindCluster(input.cluster());
    if (const std::string found = cluster == nullptr ? "" : PlaceInManifests(*cluster, apply->object); !found.empty())
      place = found;
  }
  return absl::Status(refused.code(),
                      fmt::format("{}: cluster {}: {}: {}", place, input.cluster(), what, Message(refused)));
}

absl::StatusOr<std::vector<json>> CheckInlineObjects(const std::string& file, int line, const json& objects,
                                                     const std::string& ns, std::vector<std::string>* notes) {
  std::vector<json> out;
  for (const json& object : Items(objects)) {
    const json& meta = At(object, "metadata");
    if (Text(object, "kind").empty() || !meta.is_object() || Text(meta, "name").empty()) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: an object needs apiVersion, kind and metadata with a name, as text", file, line));
    }
    out.push_back(object);
    SetNamespace(out.back(), ns);
    if (absl::Status status = CheckManifest(file, line, out.back(), notes); !status.ok()) return status;
  }
  return out;
}

}  // namespace wavetank::scenario
