#include <algorithm>

#include "core/base/json_access.h"
#include "import/report/report.h"
#include "import/skeleton/skeleton.h"
#include "replay/kept_secrets.h"

namespace wavetank::importing {

replay::LogInput MeshInput::Whole() const {
  replay::LogInput out = *this;
  if (!packed.empty()) out.body.update(packed.Unpack());
  return out;
}

absl::Status WriteLog(const Skeleton& skeleton, const std::string& path, const std::string& program_version,
                      bool keeps_secrets) {
  replay::LogHeader header;
  header.seed = skeleton.world.seed;
  header.program_version = program_version;
  header.profile = skeleton.world.profile;
  header.scenario_name = "import";
  header.scenario_text = "# wavetank import\n";
  for (const std::string& note : skeleton.notes) header.scenario_text += "# note: " + Harmless(note) + "\n";
  header.world = skeleton.world.ToJson();
  header.world[std::string(replay::kRecordingKey)] = true;
  header.world[std::string(kImportedKey)] = true;
  header.world[std::string(kBeginsKey)] = skeleton.begins;
  if (keeps_secrets) header.world[std::string(replay::kKeepsSecretsKey)] = true;
  absl::StatusOr<std::unique_ptr<replay::LogWriter>> writer =
      replay::LogWriter::Create(path, header, {.keep_secrets = keeps_secrets});
  if (!writer.ok()) return writer.status();
  Time last = skeleton.world.start;
  bool pictured = false;
  for (const MeshInput& input : skeleton.inputs) {
    // Behind the first picture stands a checkpoint, as in every recording.
    if (!pictured && input.at > skeleton.world.start) {
      pictured = true;
      if (absl::Status status = (*writer)->AddCheckpoint(""); !status.ok()) return status;
    }
    if (absl::Status status = (*writer)->Add(input.Whole()); !status.ok()) return status;
    last = std::max(last, input.at);
    // Requests go on after their input.
    if (input.kind == "traffic") {
      const int64_t gaps = std::max<int64_t>(Number(input.body, "requests") - 1, 0);
      constexpr int64_t kMost = Duration(24h).count();  // whatever a source claims
      const int64_t period = std::clamp<int64_t>(Number(input.body, "periodNs"), 1, kMost);
      last = std::max(last, input.at + Duration(gaps > kMost / period ? kMost : gaps * period));
    }
  }
  if (!pictured) {
    if (absl::Status status = (*writer)->AddCheckpoint(""); !status.ok()) return status;
  }
  return (*writer)->Finish(last + 5s, "");
}

}  // namespace wavetank::importing
