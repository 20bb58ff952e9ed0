// What Envoys refused, and what they took that has no effect here. A refusal is never silent: every verb that runs a
// mesh tells of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "scenarios/results/result.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

// Counts a world's NACKs by phases.
class NackTally {
 public:
  explicit NackTally(const sim::World& world) : world_(world) {}

  std::vector<Nack> Since();  // those since the last call, or the world's beginning
  std::vector<Nack> All();

 private:
  std::string Said(const std::string& proxy);

  const sim::World& world_;
  std::vector<int64_t> counted_;             // by index among the data plane's
  std::map<std::string, std::string> said_;  // a name stays what it was when it was first told
};

std::vector<WithoutEffect> WithoutEffectOf(const sim::World& world);

// Warnings and errors that Envoys' scripts wrote, or that there were about them, in words.
std::vector<std::string> ScriptNotes(const sim::World& world);

// Where a real istiod of the release would have ended in a panic, by what is there now.
std::vector<std::string> PanicNotes(const sim::World& world);

// "sleep@cluster1 refused LDS: Error adding ... (3 times, first at 1.2 s)".
std::string Describe(const Nack& nack);
// "HTTP filter envoy.... has no effect here (sleep@cluster1, helloworld@cluster1 and 3 more have it)".
std::string Describe(const WithoutEffect& without);

nlohmann::ordered_json ToJson(const std::vector<Nack>& nacks);
nlohmann::ordered_json ToJson(const std::vector<WithoutEffect>& without);

}  // namespace wavetank::scenario
