// An event log, read as it lies there: its header, then inputs and events in order, so many at a time. Nothing is run,
// and nothing of what has been read is kept.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "replay/event_log.h"

namespace wavetank::session {

// As answers have it (docs/library.md), its time since `beginning`.
nlohmann::ordered_json EventRow(const replay::LoggedEvent& event, Time beginning = Time{});

// InvalidArgument: no event is of that kind, so that a search for it would find nothing whatever happened. Empty: all.
absl::Status CheckEventKind(const std::string& kind);

class LogView {
 public:
  // With `path` that log is opened, and its header is the answer; without, the answer are the next `limit` of its
  // inputs and events, those of `kind` and `subject` where they are given, and `end`: there are no more. Errors name
  // the file, and the record that is missing or altered.
  absl::StatusOr<nlohmann::ordered_json> Read(const nlohmann::json& request);

 private:
  std::unique_ptr<replay::LogReader> log_;
};

}  // namespace wavetank::session
