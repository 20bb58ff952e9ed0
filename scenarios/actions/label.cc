#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/json_access.h"
#include "fakes/kube/objects/kinds.h"
#include "scenarios/actions/action.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::scenario {
namespace {

std::string DescribeLabel(const Arguments& a) {
  std::vector<std::string> changes;
  for (const auto& [label, value] : a.Json("set").items()) changes.push_back(label + "=" + TextOf(value));
  for (const std::string& label : a.Texts("remove")) changes.push_back(label + "-");  // as kubectl has it
  return fmt::format("label {} {} in {}: {}", a.Text("kind"), a.Text("name"), a.Text("cluster"),
                     fmt::join(changes, " "));
}

Inputs InputsOfLabel(const Arguments& a, const ActionContext&) {
  nlohmann::json labels = nlohmann::json::object();
  for (const auto& [key, value] : a.Json("set").items()) labels[key] = TextOf(value);
  for (const std::string& key : a.Texts("remove")) labels[key] = nullptr;
  const bool scoped = !fakekube::ClusterScoped(a.Text("kind"));
  return std::vector<sim::Input>{sim::inputs::PatchObject{a.Text("cluster"),
                                                          a.Text("kind"),
                                                          scoped ? a.Text("namespace", "default") : "",
                                                          a.Text("name"),
                                                          {{"metadata", {{"labels", std::move(labels)}}}}}};
}

}  // namespace

void RegisterLabel(std::vector<ActionKind>& table) {
  table.push_back(
      {.row = {"label",
               "Change labels",
               {row::Cluster().Required(), row::Text("kind", "Kind").Required(),
                row::Text("namespace", "Namespace; default if left out"), row::Text("name", "Name").Required(),
                row::Other("set", FieldType::kTextMap, "Labels by name"),
                row::Other("remove", FieldType::kTexts, "Label names")}},
       .example = "{cluster: c1, kind: Namespace, name: sample, set: {a: b}, remove: [c]}",
       .what = "labels change",
       .check =
           [](const Field& f) {
             if (!f["set"].present() && !f["remove"].present())
               f.Fail("changes no label", "add set: {name: value} or remove: [name]");
           },
       .describe = DescribeLabel,
       .inputs = InputsOfLabel});
}

}  // namespace wavetank::scenario
