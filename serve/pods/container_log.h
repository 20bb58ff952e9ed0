// pods/log: what a container of a simulated pod has printed, and with `follow` what it prints from now on.
#pragma once

#include <string>

#include "fakes/kube/http/message/message.h"
#include "serve/grpc/pod_logs.h"
#include "serve/loop/loop.h"

namespace wavetank::serve {

// `pod`: the object; `process`: its name among the world's pods, of which it may be none any more, or not yet. On the
// loop's thread; `loop` and `logs` outlive the answer.
fakekube::http::Response ContainerLog(Loop& loop, const PodLogs& logs, const kube::Object& pod,
                                      const std::string& process, const fakekube::http::Query& query);

}  // namespace wavetank::serve
