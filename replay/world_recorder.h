// The recording of a whole world: its inputs as they come, and unless a real istiod serves it, what follows from them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/recorder.h"
#include "sim/world.h"

namespace wavetank::replay {

struct WorldRecording {
  std::string log;  // file to write
  std::string program_version, scenario_name;
  std::string scenario_file;  // its text goes into the header
  // Real istiods serve its proxies. The log then holds what others did, alone and so that it means the same where our
  // own istiods serve: without what real istiods wrote, and without preconditions that held
  // (fakes/kube/http/rest/rest.h).
  bool real_istiod = false;
  // That are watched and stand in the trace: a replay watches them, too.
  std::vector<std::string> invariants;
  bool durable_commits = false;  // LogWriterOptions
  // Inputs stand in the log as they were given, with keys, tokens and passwords (kept_secrets.h).
  bool keep_secrets = false;
};

// Before the world's first input. The recorder follows the world as long as it lives; `world` must outlive it.
absl::StatusOr<std::unique_ptr<Recorder>> RecordWorld(sim::World& world, const WorldRecording& recording);

}  // namespace wavetank::replay
