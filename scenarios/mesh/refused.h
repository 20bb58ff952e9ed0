// Why one of the inputs that a scenario's mesh begins with was refused: an API server, or a webhook, knows no file.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "scenarios/language/scenario.h"
#include "sim/inputs/input.h"
#include "sim/inputs/kinds/objects.h"

namespace wavetank::scenario {

// The same with the scenario, the cluster and the object that it is about.
inline absl::Status AtItsPlace(const Scenario& scenario, const sim::Input& input, const absl::Status& refused) {
  std::string what(input.kind());
  if (const auto* apply = input.As<sim::inputs::ApplyObject>(); apply != nullptr) {
    const nlohmann::json& metadata = At(apply->object, "metadata");
    const std::string ns = Text(metadata, "namespace");
    what = fmt::format("{} {}{}{}", Text(apply->object, "kind"), ns, ns.empty() ? "" : "/", Text(metadata, "name"));
  }
  return absl::Status(refused.code(),
                      fmt::format("{}: cluster {}: {}: {}", scenario.file, input.cluster(), what, Message(refused)));
}

}  // namespace wavetank::scenario
