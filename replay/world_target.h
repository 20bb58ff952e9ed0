// A world under replay, and the recording of one.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "replay/replayer.h"
#include "replay/secret_source.h"
#include "sim/world.h"

namespace wavetank::replay {

// What the header of a log must hold for WorldTarget to build the same world again.
void DescribeWorld(const sim::World& world, LogHeader* header);

class WorldTarget final : public ReplayTarget {
 public:
  WorldTarget() = default;
  // `secrets`: those of the manifests that the recorded run was given; a log holds their digests only.
  explicit WorldTarget(SecretSource secrets) : secrets_(std::move(secrets)) {}

  absl::Status Start(const LogHeader& header, Sink sink) override;
  void AdvanceTo(Time time) override { world_->RunUntil(time); }
  // FailedPrecondition: the log holds only the digest of a secret, and none of `secrets` has it.
  absl::Status Do(const LogInput& input) override;
  std::string TraceDigest() const override { return world_->kernel().digest().Hex(); }

  // The world after the replay, or where it stopped. Null before Start.
  sim::World* world() { return world_.get(); }

 private:
  SecretSource secrets_;
  std::unique_ptr<sim::World> world_;
};

}  // namespace wavetank::replay
