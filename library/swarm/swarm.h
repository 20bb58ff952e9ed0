// Many seeds, in as many processes as there are processors; what failed, once for each signature.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "library/swarm/seed_run.h"

namespace wavetank::swarm {

struct SwarmOptions {
  uint64_t first = 1, last = 100;
  std::string scenario, profile;        // empty: arbitrary meshes; the default profile
  std::vector<std::string> invariants;  // Trial::invariants
  // Trial::buggify of every seed; nothing: each seed chooses its own.
  std::optional<std::vector<std::string>> buggify;
  Sizes sizes;
  int jobs = 0;         // 0: as many as there are processors
  uint64_t twice = 20;  // one seed in so many runs twice, and its digest must be the same; 0: none
  std::string logs;     // folder for the logs of failures, if not empty
  // Asked before each batch of seeds: false ends the swarm there.
  std::function<bool()> go_on;
  std::function<void(std::string_view)> progress;
};

struct SwarmFailure {
  std::string signature;
  std::vector<uint64_t> seeds;  // that failed so, in order
  Verdict first;                // of the first of them
  Trial shrunk;                 // the first one with as few events as break the same invariant
  std::string log;              // of the first, where logs were asked for
};

struct SwarmResult {
  uint64_t seeds = 0, held = 0, run_twice = 0;
  Duration lived{};                         // virtual, over all seeds
  std::vector<SwarmFailure> failures;       // the most frequent first
  std::map<std::string, uint64_t> reached;  // seeds that reached a row of SometimesRows()
  std::map<std::string, std::pair<uint64_t, int64_t>>
      fired;                              // seeds in which a point of Buggify fired; how often in all
  std::map<std::string, uint64_t> known;  // seeds in which a bug of the simulated release broke an invariant
};

// Errors: the system refuses processes, or the scenario cannot be read.
absl::StatusOr<SwarmResult> RunSwarm(const SwarmOptions& options);

// What failures of one kind have in common: the invariant and what was found, without names and numbers.
std::string Signature(const Verdict& verdict);

}  // namespace wavetank::swarm
