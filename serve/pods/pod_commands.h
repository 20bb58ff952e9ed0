// Commands that can be executed in a simulated pod: curl, pilot-agent request, pilot-discovery request and version, and
// the few that scripts and `istioctl bug-report` use around them (true, false, echo, sleep, hostname, printenv,
// netstat, find, ls, and a shell for these).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/grpc/held_config.h"
#include "serve/loop/loop.h"
#include "serve/pods/curl.h"
#include "serve/pods/pod_pages.h"
#include "serve/pods/shell.h"

namespace wavetank::serve {

class PodCommands {
 public:
  // Hears of the world's requests from now on; both outlive it, and `loop` has not started yet.
  PodCommands(Loop& loop, const HeldConfig& held);

  void SetMetrics(PodMetrics metrics) { metrics_ = std::move(metrics); }

  using Done = std::function<void(CommandResult)>;
  // On the loop's thread; so is `done`, once, now or later. A request that is sent is an input of the world.
  void Run(sim::World& world, const PodPort& where, const std::vector<std::string>& argv, Done done);
  // One that somebody types into. On the loop's thread; this outlives it.
  std::shared_ptr<Shell> OpenShell(const PodPort& where);

 private:
  void Curl(sim::World& world, const PodPort& where, const CurlCall& call, Done done);
  CommandResult Request(const sim::World& world, PodPort where, std::vector<std::string> argv) const;

  Loop& loop_;
  const HeldConfig& held_;
  PodMetrics metrics_;
  std::map<std::string, std::function<void(const CurlAnswer&)>> waiting_;  // by the traffic's ID
  Subscription requests_;
};

}  // namespace wavetank::serve
