// Collectors of spans as Envoy's tracers (istiod: pilot/pkg/networking/core/v1alpha3/tracing.go,
// configureFromProviderConfig).
#pragma once

#include <optional>
#include <string>

#include "core/config/mesh/extension_provider.h"
#include "core/model/proxy.h"

namespace wavetank::pilot {

class PushContext;

struct TracingProvider {
  std::string config;  // an encoded Tracing.Http
  uint32_t max_path_tag_length = 0;
  bool start_child_span = false;
};

// nullopt: the provider is no tracer, its service is not there, or the proxy lacks what it needs.
std::optional<TracingProvider> MakeTracingProvider(const config::ExtensionProvider& provider, const Proxy& proxy,
                                                   const PushContext& push);

// What a proxy's spans call its service where one of the mesh's providers wants OpenTelemetry's conventions; empty:
// none does.
std::string ConventionalServiceName(const Proxy& proxy, const PushContext& push);

}  // namespace wavetank::pilot
