// What must be true of any world, whatever happens to it. A checker watches one world for one of these and tells
// breaches; it changes nothing in the world.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/base/trace.h"

namespace wavetank::sim {

// In traces: a breach, by its causes. subject: what breaks it, object: the invariant; detail: how.
inline constexpr TraceKind kInvariantViolated{900};

class Held;
class InvariantWatch;
class World;
struct Assignment;
struct TraceEvent;
struct TrafficRecord;

// What a checker finds wrong. `key` tells it from others of its scope: one that is found again is the same breach.
struct Breach {
  std::string key, subject, what;
  std::string_view known;  // the name of the bug of the simulated release that explains it (FindKnownBug); or empty
  CauseId cause = kNoCause;
};

// A breach as outputs tell it.
struct Violation {
  std::string invariant, subject, what, known;
  Time at{};
  std::optional<Time> until;     // nothing: still so
  std::vector<uint64_t> inputs;  // its causes, sorted
};

class Checker {
 public:
  virtual ~Checker() = default;

  // Within the event: take note of it, and look at nothing else.
  virtual void OnTrace(const TraceEvent&) {}
  // A proxy was sent the endpoints of a cluster; `before`: those that it held. Null: none.
  virtual void OnAssignment(const std::string& proxy, const Assignment& now, const Assignment* before);
  virtual void OnRequest(const TrafficRecord&) {}
  // The control plane has been quiet for a second; also some seconds later, as long as a breach needs patience.
  virtual void AtRest() {}
  // Every five seconds, as long as anything happens, or as it returns true: it waits for something.
  virtual bool Tick() { return false; }

 protected:
  // Replaces what was told of `scope`; an empty list: it holds there. What needs `patience` is a breach when it was
  // told for that long without a pause.
  void Tell(const std::string& scope, std::vector<Breach> breaches, Duration patience = {});
  // The same for a scope of which nothing was told mostly; costs nothing then.
  void Holds(std::string_view scope);

  World& world() const;
  const Held& held() const;
  // Of what runs now, or of the last event of the control plane.
  CauseId cause() const;

 private:
  friend class InvariantWatch;
  InvariantWatch* watch_ = nullptr;
  size_t index_ = 0;
};

}  // namespace wavetank::sim
