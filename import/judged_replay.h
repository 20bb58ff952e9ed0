// A log that was imported, run again, with every claim judged; and what of it people and programs see.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "import/judge/judge.h"
#include "replay/event_log.h"
#include "replay/replayer.h"

namespace wavetank::importing {

bool WasImported(const replay::LogHeader& header);

struct JudgedReplay {
  replay::ReplayResult result;
  Judgement judgement;
  std::string text;  // both timelines above each other, the first disagreement with its causes, the share
  std::string json;
};

// `all`: the text has the claims that agree, too. The errors are those of a replay.
absl::StatusOr<JudgedReplay> ReplayAndJudge(replay::LogReader& log, bool all);

}  // namespace wavetank::importing
