// A scenario's run that real control planes serve: from the moment at which its mesh is up it goes along with real
// time, and its steps, traffic and expectations are what they always are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "scenarios/runner/runner.h"
#include "serve/control_planes.h"
#include "serve/loop/loop.h"

namespace wavetank::serve {

class LiveRun {
 public:
  explicit LiveRun(ControlPlaneOptions options) : options_(std::move(options)) {}

  // Makes a run live. `options` must not outlive this; what else it calls is called too.
  void Attach(scenario::RunOptions* options);

  // Called when the proxies' streams have just been moved; nothing has come from a real istiod yet.
  std::function<void()> on_moved;
  // Which istiod a proxy is to connect with; before the run (ControlPlanes::Follow).
  ControlPlanes::Assign assign;
  // Lets time pass until the world has settled and no real istiod has anything left to do: none has needed a processor
  // to speak of for `quiet` of real time, and `sent`, a count of what they sent, has not grown. False: that was not so
  // within `limit`.
  struct Rest {
    std::function<uint64_t()> sent;
    Duration quiet{}, limit{};
    bool unready = false;     // pods that do not become ready are no unrest
    int64_t unconnected = 0;  // so many proxies may be without an istiod
  };
  bool RunUntilAtRest(sim::World& world, const Rest& rest);
  // Proxies of pods that run, without an istiod.
  static int64_t Unconnected(const sim::World& world);
  // While the run lasts; null otherwise.
  ControlPlanes* planes() { return planes_.get(); }

 private:
  absl::Status Begin(sim::World& world);

  const ControlPlaneOptions options_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<ControlPlanes> planes_;
};

}  // namespace wavetank::serve
