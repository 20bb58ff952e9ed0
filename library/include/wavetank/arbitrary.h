// Meshes, and what may happen to them, made of choices.
/// \file
/// Meshes, and what may happen to them, made of choices: RapidCheck's (wavetank/rapidcheck.h), which shrink, or those
/// of a seed, as in `wavetank swarm`.
/// \code
/// struct Simplest final : wavetank::Choices {
///   int64_t Between(int64_t low, int64_t) override { return low; }
/// } choices;
/// const wavetank::Mesh mesh = wavetank::ArbitraryMesh(choices, {});
/// const std::vector<wavetank::Event> history = wavetank::ArbitraryHistory(choices, mesh, {});
/// \endcode
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wavetank/action.h"
#include "wavetank/mesh.h"

namespace wavetank {

/// Where choices come from. The lower a choice, the simpler what is made of it.
class Choices {
 public:
  virtual ~Choices() = default;
  /// low <= result <= high.
  virtual int64_t Between(int64_t low, int64_t high) = 0;
  bool Maybe() { return Between(0, 1) == 1; }
};

/// How large what is made may be.
struct Sizes {
  int clusters = 3, networks = 2, apps = 2, replicas = 3;
  int objects = 2;      ///< DestinationRules, PeerAuthentications, Sidecars, ServiceEntries
  int events = 6;       ///< of a history
  bool remotes = true;  ///< clusters without an istiod of their own
  bool faults = true;   ///< of a history: lines, API servers, remote Secrets, gateways, pods that die
};

/// Something that happens, and how long virtual time passes after it.
struct Event {
  Action action;
  int64_t then_ms = 0;
  /// Whether it may be refused when its turn comes: there is no pod to kill, no Secret to delete where it is gone
  /// already.
  bool MayBeRefused() const { return action.kind == "kill" || action.kind == "remoteSecret"; }
  friend bool operator==(const Event&, const Event&) = default;
};

/// A mesh whose requests are all answered as long as nothing happens.
Mesh ArbitraryMesh(Choices& choices, const Sizes& sizes = {});

/// One thing that may happen to `mesh`.
Event ArbitraryEvent(Choices& choices, const Mesh& mesh, const Sizes& sizes = {});

/// Whether a world in which `history` has happened lets the action in: a remote Secret that is deleted can only come
/// back.
bool CanHappen(const Action& action, const std::vector<Event>& history);

/// What may happen to `mesh`, in order; each can be done when its turn comes, or MayBeRefused().
std::vector<Event> ArbitraryHistory(Choices& choices, const Mesh& mesh, const Sizes& sizes = {});

/// Ends what of `history` has not ended: lines are healed, API servers answer, Secrets and gateways are there again,
/// and every Deployment has a pod.
std::vector<Action> Heal(const std::vector<Event>& history);

/// One line each, "scale {...}, then 2.5 s", for a person.
std::string Describe(const std::vector<Event>& history);

}  // namespace wavetank
