// pods/exec: a command in a simulated pod, or a shell that somebody types into, over streams.
#pragma once

#include <memory>

#include "fakes/kube/http/message/message.h"
#include "serve/loop/loop.h"
#include "serve/pods/pod_commands.h"

namespace wavetank::serve {

// `loop` outlives the streams' use.
fakekube::http::Response ExecInPod(Loop& loop, std::shared_ptr<PodCommands> commands, const PodPort& where,
                                   const fakekube::http::Request& request);

}  // namespace wavetank::serve
