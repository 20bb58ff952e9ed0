// One seed of a swarm: a mesh, what happens to it, and what must be true of it then.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "library/swarm/worst_moments.h"
#include "wavetank/arbitrary.h"

namespace wavetank::swarm {

// What a seed is tried on.
struct Trial {
  uint64_t seed = 1;
  Mesh mesh;
  std::string scenario;  // file whose mesh it is; empty: the mesh above
  std::string profile;
  std::vector<Event> history;
  std::vector<WorstMoment> moments;
  std::vector<std::string> buggify;     // points of our own code that may fire until all is healed, by name
  std::vector<std::string> invariants;  // of sim/invariants/catalogue.h, by name, besides those that always hold
};

struct Verdict {
  bool held = true;
  std::string invariant, what;  // that was broken first
  Time at{};                    // when that was seen
  std::string digest;
  Duration lived{};                      // virtual time
  std::set<std::string> reached;         // rows of SometimesRows()
  std::map<std::string, int64_t> fired;  // points of `buggify` that fired, and how often
  std::set<std::string> known;  // bugs of the simulated release (sim::KnownBugs) that broke an invariant: no failure
  std::string error;            // of the input, or of the log's file
};

// Of the seed alone: its mesh (or that of `scenario`), its history, moments and points. InvalidArgument in
// Verdict::error later on.
Trial MakeTrial(uint64_t seed, const std::string& scenario, const std::string& profile, const Sizes& sizes);

// `log`: an event log of it all, if not empty.
Verdict Try(const Trial& trial, const std::string& log);

// Fewer events, moments and points that break the same invariant: without each in turn, as often as that is so.
Trial Shrink(Trial trial, const Verdict& broken);

}  // namespace wavetank::swarm
