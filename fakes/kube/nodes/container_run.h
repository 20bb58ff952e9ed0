// How long a pod's containers run, where they end by themselves. Simulated containers run no process; what is known of
// them is what their commands say.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/time.h"
#include "core/kube/object.h"

namespace wavetank::fakekube {

struct ContainerRun {
  Duration time{};
  int64_t exit_code = 0;
};

// The run of a pod with restartPolicy Never or OnFailure, until the last of its containers has ended; its exit code is
// the first that is not 0. nullopt: the pod runs on. A container runs on if it has a port or a probe, or its command
// never ends (`pause`, `tail -f`, `sleep infinity`, `while true`), or it has none and no Job controls its pod. Of any
// other command `sleep N` takes its time, `exit N` and `false` give the exit code, and all else takes a second.
// Containers that run on end with one whose command asks for that (a POST to /quitquitquit, as proxies have it).
std::optional<ContainerRun> RunOf(const kube::Object& pod);

}  // namespace wavetank::fakekube
