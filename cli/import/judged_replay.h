// `wavetank replay` of a log that `wavetank import` wrote.
#pragma once

#include "replay/event_log.h"

namespace wavetank::cli {

bool WasImported(const replay::LogHeader& header);

// Runs the mesh and judges every claim of the log. Prints both timelines above each other; `all`: what agrees, too.
int ReplayImported(replay::LogReader& log, bool json, bool all);

}  // namespace wavetank::cli
