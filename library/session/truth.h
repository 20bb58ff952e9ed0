// What must be true of a mesh at rest in which nothing is broken, whatever happened to it before: the named invariants
// of the swarm and of World::Check().
#pragma once

#include <string>
#include <vector>

#include "library/session/live_world.h"

namespace wavetank::session {

// A broken invariant: its name ("endpoints-are-ready-pods"), and what was found.
struct Breach {
  std::string invariant, what;
};

// The names of all of them, with what they say.
struct Invariant {
  std::string_view name, says;
};
const std::vector<Invariant>& Invariants();

// What the trace must never show, whatever is broken: seen by an observer from the world's beginning.
class Watch {
 public:
  // To be called before anything happens in `world`, which must outlive this.
  explicit Watch(sim::World& world);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  const std::vector<Breach>& breaches() const { return breaches_; }  // in order of time; at most kMost
  Time first() const { return first_; }                              // of the first one

 private:
  static constexpr size_t kMost = 20;
  std::vector<Breach> breaches_;
  Time first_{};
};

// "endpoints-are-ready-pods": each sidecar holds, for each Service of its namespaces' clusters, the ready pods of its
// own network, and none that is gone; and for another network something, if there are ready pods. Only of a world at
// rest without faults, whose istiods all read all clusters.
std::vector<Breach> CheckEndpoints(const LiveWorld& live);

}  // namespace wavetank::session
