// A fleet as an argument of a verb: its page, or an event log whose mesh it is like.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "capacity/recorded/fleet_of_log.h"

namespace wavetank::cli {

struct FleetArgument {
  std::string path;
  std::string scale;                 // "10x"; empty: as it is
  std::vector<std::string> secrets;  // for a log whose Secrets are digests
};

// A page has no notes. Errors are the page's or the log's, and the scale's.
absl::StatusOr<capacity::RecordedFleet> ReadFleet(const FleetArgument& argument);

// "note: ..." a line each, on stderr, so that what is on stdout stays what was asked for.
void SayNotes(const std::vector<std::string>& notes);

}  // namespace wavetank::cli
