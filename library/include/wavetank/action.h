// Actions as values: what a step of a scenario can do.
/// \file
/// Actions as values: what a step of a scenario can do. wavetank/actions.h has a struct for each.
#pragma once

#include <string>
#include <utility>

#include "wavetank/value.h"

namespace wavetank {

/// One action: its name in the scenario language, and its fields. scenarios/README.md has the table.
/// \code
/// world->Do(wavetank::Action{"kill", {{"cluster", "c1"}, {"namespace", "sample"}, {"app", "sleep"}}});
/// world->Do(wavetank::actions::Scale{.cluster = "c1", .deployment = "sample/web", .replicas = 3});   // the same way
/// \endcode
struct Action {
  std::string kind;
  Value::Map fields;

  /// {"scale": {...}}, as under `do:`.
  Value ToValue() const { return Value::Map{{kind, fields}}; }
  std::string Print() const { return ToValue().Print(); }
  friend bool operator==(const Action&, const Action&) = default;
};

}  // namespace wavetank
