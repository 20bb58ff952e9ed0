// Why an incident looks as it does, in one line.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "scenarios/language/scenario.h"
#include "scenarios/results/result.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

class CauseFinder {
 public:
  // `scenario` outlives it.
  explicit CauseFinder(const Scenario& scenario) : scenario_(scenario) {}

  // Often while time passes: what is odd about endpoints for a while only.
  void Glance(sim::World& world, std::string_view step);
  // After each step, while its world is there: of those with symptoms, what is odd about the endpoints of their flows.
  void Look(sim::World& world, const Step& step);
  // Empty: nothing is known of it.
  std::string Tell(const RunResult& result) const;

 private:
  static constexpr Duration kGlance = 250ms;

  void Add(sim::World& world, const Step& step, std::vector<std::string>* out) const;

  const Scenario& scenario_;
  std::set<std::string> steps_;  // with symptoms
  std::vector<std::string> oddities_, passing_;
  Time glanced_{};
};

}  // namespace wavetank::scenario
