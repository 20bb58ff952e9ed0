// A mesh made of evidence alone: the clusters, services, proxies and configuration that logs name, with what became of
// them as inputs, so that a world that is told of these pushes what the real istiods pushed.
//
// It holds what evidence says and nothing else: addresses, ports and specifications are made up, one of each, and
// change where something of the kind is said to have changed. What cannot be said in a mesh of such parts is a note.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/json/packed_json.h"
#include "import/evidence/evidence.h"
#include "replay/event_log.h"
#include "sim/world_options.h"

namespace wavetank::importing {

struct DumpedPlaces;

// How long a simulated mesh is left to come up before the first change.
inline constexpr Duration kComesUp = 60s;

// An input as its log will have it.
struct MeshInput : replay::LogInput {
  MeshInput(replay::LogInput input, PackedJson rest = {})  // NOLINT: it is one
      : replay::LogInput(std::move(input)), packed(std::move(rest)) {}
  PackedJson packed;  // what the body has besides: of objects as large and as many as pods
  replay::LogInput Whole() const;
};

struct Skeleton {
  sim::WorldOptions world;
  std::vector<MeshInput> inputs;  // in order of time; claims among them
  std::vector<std::string> notes;
  std::vector<std::string> inferred;  // changes that no source tells as they were: a line each
  WallNs begins = 0;                  // the calendar's instant of the world's beginning
};

// Pure. InvalidArgument: no istiod's log, so no mesh.
absl::StatusOr<Skeleton> MakeSkeleton(const Evidence& evidence);

// What logs tell of a mesh whose objects dumps hold, to be put on them (history.h): changes without requests.
Skeleton ChangesOfLogs(const Evidence& evidence, const DumpedPlaces& dumped);

// Writes it as an event log, whose header says what it is made from. The errors are those of a LogWriter.
// `keeps_secrets`: the evidence was read so (replay/kept_secrets.h).
absl::Status WriteLog(const Skeleton& skeleton, const std::string& path, const std::string& program_version,
                      bool keeps_secrets = false);

// Under these keys in LogHeader::world.
inline constexpr std::string_view kImportedKey = "imported", kBeginsKey = "beginsNs";

}  // namespace wavetank::importing
