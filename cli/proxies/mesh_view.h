// A mesh looked at once, when its run ends or at a moment of it: of a scenario, or of an event log.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "serve/grpc/held_config.h"

namespace CLI {
class App;
}
namespace wavetank::sim {
class World;
}

namespace wavetank::cli {

struct MeshViewArguments {
  std::string source, at, profile;
  std::optional<size_t> step;

  void AddTo(CLI::App* verb);
};

// Runs it and shows it to `look`, with what each proxy was sent. InvalidArgument: the source or --at cannot be read;
// what `look` says.
using Look = std::function<absl::Status(sim::World& world, const serve::HeldConfig& held)>;
absl::Status LookAtMesh(const MeshViewArguments& a, const Look& look);

}  // namespace wavetank::cli
