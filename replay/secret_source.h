// Secrets from where they are kept, for the replay of a log that holds only their digests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "replay/event_log.h"

namespace wavetank::replay {

class SecretSource {
 public:
  // Reads manifests, and all of those below folders; in a folder, what is no manifest is passed over. Errors are those
  // of the file that was named. What they hold beside secrets is forgotten at once.
  static absl::StatusOr<SecretSource> Load(const std::vector<std::string>& paths);

  // Those of $WAVETANK_SECRETS, files and folders with colons between them, read once. Errors are Load()'s.
  static const absl::StatusOr<SecretSource>& OfEnvironment();

  // Takes every string of `value` that Redacted() would not leave as it is.
  void Add(const nlohmann::json& value);
  bool empty() const { return by_digest_.empty(); }

  // Puts back what Redacted() took out. NotFound names the objects (or else the fields) whose secrets are not known
  // here, never a secret. O(size of the value).
  absl::Status Restore(nlohmann::json* value) const;

 private:
  void Restore(nlohmann::json* value, std::string_view where, std::vector<std::string>* missing) const;

  absl::flat_hash_map<std::string, std::string> by_digest_;  // what stands in the log -> what stood there before
};

// Puts back what an input of the log holds digests of, by `secrets`, or without any by those of the environment.
// FailedPrecondition: some are known nowhere, and what the log's run went through does not happen again. What real
// clients said, and what recordings hold, stands as it was written down.
absl::Status RestoreSecrets(const LogHeader& header, const SecretSource& secrets, LogInput* input);

}  // namespace wavetank::replay
