#include "scenarios/mesh/refused.h"

#include <string>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "scenarios/language/scenario.h"
#include "scenarios/mesh/manifests.h"
#include "sim/inputs/input.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::scenario {

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

}  // namespace wavetank::scenario
