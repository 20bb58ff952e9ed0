// The filters that measure: istio.stats for Prometheus, istio.stackdriver (istiod: pilot/pkg/model/telemetry.go,
// buildHTTPTelemetryFilter, buildTCPTelemetryFilter).
#pragma once

#include <string>

#include "core/gen/view/listener_types.h"
#include "core/push/policies/telemetry.h"

namespace wavetank::pilot {

// Encoded fields HttpConnectionManager.http_filters, or with `tcp` FilterChain.filters, by name of provider.
// `stackdriver`: it has a filter, too.
std::string MakeMetricsFilters(const WorkloadTelemetry& telemetry, ListenerClass listener_class,
                               const config::MeshConfig& mesh, bool stackdriver, bool tcp);

}  // namespace wavetank::pilot
