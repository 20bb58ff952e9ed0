// A log that was imported, run again, with every claim judged; and what of it people and programs see.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "import/judge/judge.h"
#include "replay/event_log.h"
#include "replay/replayer.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::importing {

bool WasImported(const replay::LogHeader& header);

struct JudgedReplay {
  replay::ReplayResult result;
  Judgement judgement;
  std::string text;  // both timelines above each other, the first disagreement with its causes, the share
  std::string json;
};

// What a proxy of that world holds now; which of its clusters, if that is known.
using HeldInWorld = std::function<std::optional<HeldEndpoints>(sim::World& world, const std::string& proxy,
                                                               const std::string& cluster)>;

// Who knows what the simulated mesh would show. Null: nobody does, and such claims cannot be judged.
struct WorldAnswers {
  HeldInWorld held;
  // The world is made, and nothing has happened in it.
  std::function<void(sim::World& world)> begins;
  // A metric of the istiods of one of its clusters.
  std::function<std::optional<double>(const std::string& cluster, const std::string& metric,
                                      const std::map<std::string, std::string>& labels)>
      istiods;
};

// `all`: the text has the claims that agree, too. The errors are those of a replay.
absl::StatusOr<JudgedReplay> ReplayAndJudge(replay::LogReader& log, bool all, const WorldAnswers& answers = {});

}  // namespace wavetank::importing
