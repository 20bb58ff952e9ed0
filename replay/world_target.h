// A world under replay, and the recording of one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "replay/replayer.h"
#include "replay/secret_source.h"
#include "sim/invariants/invariant.h"
#include "sim/world.h"

namespace wavetank::sim {
class InvariantWatch;
}

namespace wavetank::replay {

// In LogHeader::world: the invariants that the run watched, whose breaches are part of its trace.
inline constexpr std::string_view kInvariantsKey = "invariants";

// What the header of a log must hold for WorldTarget to build the same world again.
void DescribeWorld(const sim::World& world, LogHeader* header);

class WorldTarget final : public ReplayTarget {
 public:
  WorldTarget();
  // `secrets`: those of the manifests that the recorded run was given; a log holds their digests only.
  explicit WorldTarget(SecretSource secrets);
  ~WorldTarget() override;

  // The log's file, which an invariant that does not hold names. Before Start.
  void ComesFrom(std::string log) { log_ = std::move(log); }
  // To be watched besides those of the log, without a trace of their own. Before Start.
  void Watch(std::vector<std::string> invariants) { more_invariants_ = std::move(invariants); }
  // What broke them; of the log's own too.
  std::vector<sim::Violation> Violations();

  absl::Status Start(const LogHeader& header, Sink sink) override;
  void AdvanceTo(Time time) override { world_->RunUntil(time); }
  // FailedPrecondition: the log holds only the digest of a secret, and none of `secrets` has it.
  absl::Status Do(const LogInput& input) override;
  std::string TraceDigest() const override { return world_->kernel().digest().Hex(); }

  // The world after the replay, or where it stopped. Null before Start.
  sim::World* world() { return world_.get(); }
  std::unique_ptr<sim::World> TakeWorld() { return std::move(world_); }

 private:
  SecretSource secrets_;
  std::string log_;
  std::unique_ptr<sim::World> world_;
  LogHeader header_;
  std::vector<std::string> more_invariants_;
  std::vector<std::unique_ptr<sim::InvariantWatch>> watches_;
};

// What an input of a log does, its secrets put back (RestoreSecrets). FailedPrecondition: some are known nowhere.
// InvalidArgument: it is none that this program knows.
absl::StatusOr<sim::Input> InputOf(const LogHeader& header, LogInput input, const SecretSource& secrets = {});

// The first bytes of `path` are an event log's, of whatever version.
bool LooksLikeLog(const std::string& path);

// How long a recording's world may take to come to rest where it ends: the mesh that was recorded had been at rest, and
// the simulated one starts anew.
inline constexpr Duration kRecordingSettles = 5min;

// The world that a log's inputs lead to, at its end or `until` (since the world's beginning). Nothing is compared: see
// Replay() for that. A recording's comes to rest unless `until` says where to stop.
absl::StatusOr<std::unique_ptr<sim::World>> WorldOfLog(LogReader& log, std::optional<Duration> until);

}  // namespace wavetank::replay
