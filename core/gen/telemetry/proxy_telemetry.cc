#include "core/gen/telemetry/proxy_telemetry.h"

#include "core/gen/telemetry/access_log.h"
#include "core/gen/telemetry/metrics_filters.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"

namespace wavetank::pilot {
namespace {

// A stock Envoy has neither istio.stats nor the null VM's stackdriver.
std::string FiltersFor(const WorkloadTelemetry& of, ListenerClass listener_class, const PushContext& push, bool tcp) {
  return push.profile().Has(Change::kUpstreamEnvoy)
             ? ""
             : MakeMetricsFilters(of, listener_class, push.mesh(), !push.profile().Has(Change::kStackdriverGone), tcp);
}

}  // namespace

ProxyTelemetry::ProxyTelemetry(const Proxy& proxy, const PushContext& push)
    : push_(push), of_(push.telemetry().ForWorkload(proxy.config_namespace, proxy.labels)) {}

Telemetries::Generated& ProxyTelemetry::At(ListenerClass listener_class) {
  const int index = static_cast<int>(listener_class);
  Telemetries::Generated*& at = generated_[static_cast<size_t>(index)];
  if (at == nullptr) at = &push_.telemetry().GeneratedFor(of_, index);
  return *at;
}

const std::string& ProxyTelemetry::HttpFilters(ListenerClass listener_class) {
  auto& filters = At(listener_class).http_filters;
  if (!filters) filters = FiltersFor(of_, listener_class, push_, false);
  return *filters;
}

const std::string& ProxyTelemetry::TcpFilters(ListenerClass listener_class) {
  auto& filters = At(listener_class).tcp_filters;
  if (!filters) filters = FiltersFor(of_, listener_class, push_, true);
  return *filters;
}

const Telemetries::Logs& ProxyTelemetry::Logs(ListenerClass listener_class) {
  auto& logs = At(listener_class).logs;
  if (!logs) logs = MakeAccessLogs(of_, listener_class, push_);
  return *logs;
}

}  // namespace wavetank::pilot
