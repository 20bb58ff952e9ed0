// When a mesh of manifests lives: where the certificates that they bring hold.
#pragma once

#include <optional>

#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace wavetank::scenario {

// When all certificates in the Secrets of manifests hold; `end` may lie before `begin`.
struct Validity {
  std::optional<Time> begin, end;  // nothing: there are none
  void Add(const nlohmann::json& object);
  // A second after the last of them begins, if a world that begins at `usual` would find one that does not hold.
  // nullopt: there is no need.
  std::optional<Time> DateBeside(Time usual) const;
};

}  // namespace wavetank::scenario
