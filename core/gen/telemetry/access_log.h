// Access logs of listeners, HTTP connection managers and TCP proxies: what Telemetry asks for, else accessLogFile and
// enableEnvoyAccessLogService of the mesh config (istiod: pilot/pkg/networking/core/v1alpha3/accesslog.go,
// pilot/pkg/model/telemetry_logging.go).
#pragma once

#include "core/gen/view/listener_types.h"
#include "core/push/policies/telemetry.h"

namespace wavetank::pilot {

class PushContext;

// By name of provider, where istiod leaves the order of several to chance.
Telemetries::Logs MakeAccessLogs(const WorkloadTelemetry& telemetry, ListenerClass listener_class,
                                 const PushContext& push);

}  // namespace wavetank::pilot
