// Arbitrary meshes and histories for RapidCheck.
/// \file
/// Arbitrary meshes and histories for RapidCheck. They shrink: fewer clusters, one network, fewer and simpler events.
/// \code
/// rc::check("what happened leaves no trace", [] {
///   const auto mesh = *rc::gen::arbitrary<wavetank::Mesh>();
///   const auto history = *wavetank::Histories(mesh);
///   wavetank::RequireRecovery(mesh, history);
/// });
/// \endcode
#pragma once

#include <rapidcheck.h>
#include <rapidcheck/state.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "wavetank/arbitrary.h"
#include "wavetank/world.h"

namespace wavetank {

/// RapidCheck's choices; only within rc::gen::exec, rc::check or rc::prop.
class RapidCheckChoices final : public Choices {
 public:
  int64_t Between(int64_t low, int64_t high) override {
    // Whatever the size is: small things come by shrinking, large ones must come at all.
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int64_t>(low, high + 1));
  }
};

inline rc::Gen<Mesh> Meshes(Sizes sizes = {}) {
  return rc::gen::exec([sizes] {
    RapidCheckChoices choices;
    return ArbitraryMesh(choices, sizes);
  });
}

inline rc::Gen<std::vector<Event>> Histories(const Mesh& mesh, Sizes sizes = {}) {
  return rc::gen::exec([mesh, sizes] {
    RapidCheckChoices choices;
    return ArbitraryHistory(choices, mesh, sizes);
  });
}

inline void showValue(const Mesh& mesh, std::ostream& out) { out << mesh.Describe(); }
inline void showValue(const Event& event, std::ostream& out) {
  out << event.action.Print() << ", then " << event.then_ms << " ms";
}

/// Writes the log and the story of a world, and says the commands that run them again. `folder`: empty:
/// $WAVETANK_FAILURES, or /tmp. The files are named by the process and the line that asks for them, so that a property
/// that shrinks leaves those of its last failure, and each property its own.
inline std::string Reproduction(World& world, std::string folder = {}, const char* file = __builtin_FILE(),
                                int line = __builtin_LINE()) {
  const char* const named = std::getenv("WAVETANK_FAILURES");
  if (folder.empty()) folder = named == nullptr ? "/tmp" : named;
  std::string stem = file;
  stem.erase(0, stem.rfind('/') + 1);
  stem.erase(std::min(stem.rfind('.'), stem.size()));
  const std::string name = folder + "/wavetank-" + std::to_string(getpid()) + "-" + stem + "-" + std::to_string(line);
  const Status written = world.WriteLog(name + ".wtlog");
  if (!written.ok()) return "no log: " + written.error();
  const std::string again = "wavetank replay " + name + ".wtlog", story = world.Story();
  if (story.empty()) return again;
  std::ofstream(name + ".scenario.yaml") << story;
  return again + "\nas a scenario, a step for each action: wavetank run " + name + ".scenario.yaml";
}

/// Does what happens in `history`.
inline Status Live(World& world, const std::vector<Event>& history) {
  for (const Event& event : history) {
    if (Status done = world.Do(event.action); !done.ok() && !event.MayBeRefused()) return done;
    if (Status passed = world.Step(std::chrono::milliseconds(event.then_ms)); !passed.ok()) return passed;
  }
  return Nothing{};
}

/// What is wrong after `history` has happened to `world`, everything has been healed, and time has passed: it does not
/// come to rest, an invariant does not hold, a request is not answered. Empty: nothing.
inline std::string WhatDoesNotRecover(World& world, const Mesh& mesh, const std::vector<Event>& history) {
  if (Status lived = Live(world, history); !lived.ok()) return lived.error();
  for (const Action& action : Heal(history)) {
    if (Status done = world.Do(action); !done.ok()) return done.error();
  }
  const Result<Settled> settled = world.Recover();
  if (!settled.ok()) return settled.error();
  if (!settled->settled) return "does not come to rest: " + (settled->at_work.empty() ? "" : settled->at_work[0]);
  Result<std::vector<Breach>> breaches = world.Check();
  // What waits to try again is at rest, and not done.
  for (int i = 0; i < 60 && breaches.ok() && !breaches->empty(); ++i) {
    if (Status passed = world.Step(std::chrono::seconds(10)); !passed.ok()) return passed.error();
    breaches = world.Check();
  }
  if (!breaches.ok()) return breaches.error();
  if (!breaches->empty()) return breaches->front().invariant + ": " + breaches->front().what;
  for (const App& app : mesh.apps) {
    for (const Cluster& cluster : mesh.clusters) {
      const Flow flow{.cluster = cluster.name, .host = app.name + "." + app.ns + ":" + std::to_string(app.port)};
      const Result<Requests> requests = world.Send(flow, 20);
      if (!requests.ok()) return requests.error();
      if (requests->failed == 0) continue;
      return flow.host + " from " + cluster.name + ": " + std::to_string(requests->failed) + " of 20 requests failed" +
             (requests->failures.empty() ? "" : ": " + requests->failures[0].flags + " " + requests->failures[0].cause);
    }
  }
  return {};
}

/// The property of every mesh: whatever happens to it, when all is healed it is as it was. Fails with what is wrong,
/// the mesh, and the command that runs it again.
inline void RequireRecovery(const Mesh& mesh, const std::vector<Event>& history, const WorldOptions& options = {},
                            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  Result<World> world = World::Open(mesh, options);
  if (!world.ok()) RC_FAIL(world.error());
  const std::string wrong = WhatDoesNotRecover(*world, mesh, history);
  if (!wrong.empty())
    RC_FAIL(wrong + "\nmesh: " + mesh.Describe() + "\nagain: " + Reproduction(*world, {}, file, line));
}

/// A world's model under rc::state: its mesh, and what has happened to it so far.
struct Lived {
  Mesh mesh;
  std::vector<Event> history;
};
inline void showValue(const Lived& lived, std::ostream& out) {
  out << lived.mesh.Describe() << "; " << lived.history.size() << " events";
}

/// A command of rc::state: something happens to the world, if it can after what has happened already. What must hold
/// after each is said with Happenings(), or by a class that is derived from this.
class Happens : public rc::state::Command<Lived, World> {
 public:
  using Holds = std::function<void(const Lived&, World&)>;

  explicit Happens(Event event, Holds holds = {}) : event_(std::move(event)), holds_(std::move(holds)) {}
  const Event& event() const { return event_; }

  void checkPreconditions(const Lived& lived) const override { RC_PRE(CanHappen(event_.action, lived.history)); }
  void apply(Lived& lived) const override { lived.history.push_back(event_); }
  void run(const Lived& before, World& world) const override {
    const Status happened = Live(world, {event_});
    if (!happened.ok()) RC_FAIL(happened.error());
    if (holds_) holds_(nextState(before), world);
  }
  void show(std::ostream& out) const override { showValue(event_, out); }

 private:
  const Event event_;
  const Holds holds_;
};

/// Commands for rc::state::check. `holds` is asked after each, with what has happened and the world.
/// \code
/// wavetank::Lived lived{mesh, {}};
/// rc::state::check(lived, *world, wavetank::Happenings({}, [](const wavetank::Lived&, wavetank::World& now) {
///   RC_ASSERT(now.Proxies().ok());
/// }));
/// \endcode
inline auto Happenings(Sizes sizes = {}, Happens::Holds holds = {}) {
  return [sizes, holds](const Lived& lived) -> rc::Gen<std::shared_ptr<const rc::state::Command<Lived, World>>> {
    return rc::gen::exec(
        [sizes, holds, mesh = lived.mesh]() -> std::shared_ptr<const rc::state::Command<Lived, World>> {
          RapidCheckChoices choices;
          return std::make_shared<const Happens>(ArbitraryEvent(choices, mesh, sizes), holds);
        });
  };
}

}  // namespace wavetank

namespace rc {
template <>
struct Arbitrary<wavetank::Mesh> {
  static Gen<wavetank::Mesh> arbitrary() { return wavetank::Meshes(); }
};
}  // namespace rc
