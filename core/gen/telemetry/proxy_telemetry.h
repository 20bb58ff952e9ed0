// What Telemetry puts into a proxy's listeners: filters that measure, and access logs. Both are made once for all
// workloads with the same Telemetry (istiod: pilot/pkg/model/telemetry.go, telemetryFilters).
#pragma once

#include <array>
#include <string>

#include "core/gen/view/listener_types.h"
#include "core/model/proxy.h"
#include "core/push/policies/telemetry.h"

namespace wavetank::pilot {

class PushContext;

inline TelemetrySide SideOf(ListenerClass listener_class) {
  return listener_class == ListenerClass::kSidecarInbound ? TelemetrySide::kServer : TelemetrySide::kClient;
}

class ProxyTelemetry {
 public:
  // Both must outlive the object.
  ProxyTelemetry(const Proxy& proxy, const PushContext& push);

  // Encoded fields HttpConnectionManager.http_filters, before the router, and FilterChain.filters, before the last.
  const std::string& HttpFilters(ListenerClass listener_class);
  const std::string& TcpFilters(ListenerClass listener_class);
  // Encoded access_log fields.
  const Telemetries::Logs& Logs(ListenerClass listener_class);

  const WorkloadTelemetry& of() const { return of_; }

 private:
  Telemetries::Generated& At(ListenerClass listener_class);

  const PushContext& push_;
  const WorkloadTelemetry of_;
  std::array<Telemetries::Generated*, 3> generated_{};  // by class, looked up once
};

}  // namespace wavetank::pilot
