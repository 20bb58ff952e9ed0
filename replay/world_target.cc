#include "replay/world_target.h"

#include <utility>

#include "core/base/status.h"
#include "fmt/format.h"
#include "replay/recorder.h"

namespace wavetank::replay {

void DescribeWorld(const sim::World& world, LogHeader* header) {
  header->seed = world.options().seed;
  header->profile = world.options().profile;
  header->world = world.options().ToJson();
}

absl::Status WorldTarget::Start(const LogHeader& header, Sink sink) {
  absl::StatusOr<sim::WorldOptions> options = sim::WorldOptions::FromJson(header.world);
  if (!options.ok()) return options.status();
  absl::StatusOr<std::unique_ptr<sim::World>> world = sim::World::Create(*options);
  if (!world.ok()) return world.status();
  world_ = *std::move(world);
  sim::Kernel& kernel = world_->kernel();
  // What the world's making emitted was not recorded either: a log's events count from there.
  const uint64_t made = kernel.digest().records();
  kernel.AddObserver([&kernel, made, sink = std::move(sink)](const sim::TraceEvent& event) {
    LoggedEvent logged = Logged(kernel, event);
    logged.index -= made;
    sink(logged);
  });
  return absl::OkStatus();
}

absl::Status WorldTarget::Do(const LogInput& input) {
  // What real clients say is replayed as it was written down, whatever they put into it.
  const bool of_client = input.kind.rfind("xds", 0) == 0 || input.kind == "certificateRequest";
  sim::Input again{input.kind, input.body};
  if (const absl::Status restored = secrets_.Restore(&again.body); !restored.ok() && !of_client) {
    return absl::FailedPreconditionError(fmt::format(
        "logs hold no private keys, so the replay of this one needs the manifests with the keys of {}, just "
        "as they were: --secrets FILE or FOLDER",
        Message(restored)));
  }
  // What a live world refused when it was recorded changed nothing then, and is refused again.
  const absl::Status status = world_->Do(again);
  return absl::IsUnimplemented(status) ? status : absl::OkStatus();
}

}  // namespace wavetank::replay
