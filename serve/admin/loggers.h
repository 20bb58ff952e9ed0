// The loggers of a proxy's Envoy and their levels, as POST /logging of its admin interface shows them.
#pragma once

#include <string>
#include <string_view>

#include "core/kube/object.h"

namespace wavetank::serve {

// "active loggers:\n  admin: warning\n...", by what the agent of the pod's proxy is told (--proxyLogLevel,
// --proxyComponentLogLevel). `envoy`: its release, "1.26".
std::string ActiveLoggers(const kube::Object& pod, std::string_view envoy);

}  // namespace wavetank::serve
