#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/json_access.h"
#include "scenarios/actions/action.h"
#include "scenarios/mesh/manifests.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::scenario {
namespace {

std::string DescribeApply(const Arguments& a) {
  if (a.Has("manifest")) return fmt::format("apply {} in {}", a.Text("manifest"), a.Text("cluster"));
  // By name: an inline Secret's data belongs in no report.
  std::vector<std::string> names;
  for (const nlohmann::json& object : Items(a.Json("objects"))) {
    names.push_back(wavetank::Text(object, "kind", "?") + " " + TextOf(At(object, {"metadata", "name"}), "?"));
  }
  return fmt::format("apply {} in {}", fmt::join(names, ", "), a.Text("cluster"));
}

Inputs InputsOfApply(const Arguments& a, const ActionContext& context) {
  absl::StatusOr<std::vector<nlohmann::json>> objects =
      a.Has("manifest") ? LoadManifestObjects({a.Text("manifest"), a.Text("namespace"), ""}, context.notes)
                        : CheckInlineObjects(context.scenario.file, a.line(), Items(a.Json("objects")),
                                             a.Text("namespace"), context.notes);
  if (!objects.ok()) return objects.status();
  std::vector<sim::Input> out;
  for (nlohmann::json& object : *objects) {
    out.emplace_back(sim::inputs::ApplyObject{a.Text("cluster"), std::move(object)});
  }
  return out;
}

}  // namespace

void RegisterApply(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"apply",
               "Create or replace objects",
               {row::Cluster().Required(),
                row::Other("manifest", FieldType::kPath, "File or folder, relative to the scenario"),
                row::Other("objects", FieldType::kObjects, "Inline objects"),
                row::Text("namespace", "For objects that name none; default if left out")},
               {"manifest", "objects"}},
       .example = "{cluster: c1, manifest: more.yaml, namespace: sample}",
       .what = "objects of a file or folder are created or replaced, or those that stand `objects: [...]` inline; what "
               "names no namespace goes to the given one, or to `default`",
       .describe = DescribeApply,
       .inputs = InputsOfApply});
}

}  // namespace wavetank::scenario
