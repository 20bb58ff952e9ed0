// How an HTTP connection manager traces: what Telemetry asks for, else what the proxy's and the mesh's older settings
// say (istiod: pilot/pkg/networking/core/v1alpha3/tracing.go).
#pragma once

#include <string>

#include "core/gen/view/listener_types.h"
#include "core/model/proxy.h"
#include "core/push/policies/telemetry.h"

namespace wavetank::pilot {

class PushContext;

struct HttpTracing {
  std::string config;  // an encoded HttpConnectionManager.Tracing; empty: no traces
  bool use_request_id_for_sampling = true;
  bool start_child_span = false;
};

HttpTracing MakeHttpTracing(const WorkloadTelemetry& telemetry, ListenerClass listener_class, const Proxy& proxy,
                            const PushContext& push);

}  // namespace wavetank::pilot
