// Telemetry by namespace, and what those of one workload amount to (istiod: pilot/pkg/model/telemetry.go).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/config/kinds/telemetry.h"
#include "core/config/mesh/mesh_config.h"

namespace wavetank::pilot {

struct Proxy;

// The side of a listener: one that a workload's own requests reach first, or one that it serves at. Gateways are
// clients.
enum class TelemetrySide : uint8_t { kClient, kServer };

// What one provider is to log; disabled: it is named, so that nothing else logs in its place.
struct LoggingSpec {
  bool disabled = false;
  const std::optional<std::string>* filter = nullptr;  // null: none; as long as the Telemetry
  bool HasFilter() const { return filter != nullptr && filter->has_value(); }
};

// What one provider is to measure at one side. Overrides and tags are sorted by name.
struct MetricsSpec {
  struct Tag {
    std::string name, value;
    bool remove = false;
  };
  struct Override {
    std::string metric;
    bool disabled = false;
    std::vector<Tag> tags;
  };
  bool disabled = false;
  std::vector<Override> overrides;
  std::optional<Duration> reporting_interval;
};

struct TracingSpec {
  const config::ExtensionProvider* provider = nullptr;  // of the mesh config; null only if disabled
  bool disabled = false;
  double random_sampling_percentage = 0;
  bool sampling_said = false, istio_tags = true;
  const std::map<std::string, config::Telemetry::CustomTag>* custom_tags = nullptr;  // not empty
  bool use_request_id_for_trace_sampling = true;
};

// The Telemetry that holds for a workload: at most one each of the root namespace and its own, and the workload's: the
// first of these or, with Change::kTelemetriesAddUp, all. Later ones override.
class WorkloadTelemetry {
 public:
  using Config = config::TypedConfig<config::Telemetry>;

  // By name of provider. Empty: no Telemetry names any, or only for other sides.
  std::map<std::string, LoggingSpec> Logging(TelemetrySide side) const;
  std::map<std::string, MetricsSpec> Metrics(TelemetrySide side) const;
  // nullopt: no Telemetry says anything, so that older settings of the mesh config hold.
  std::optional<TracingSpec> Tracing(TelemetrySide side) const;

 private:
  friend class Telemetries;
  const config::MeshConfig* mesh_ = nullptr;
  // Root, namespace, workload's; none is null.
  using Levels = absl::InlinedVector<const Config*, 3>;
  Levels levels_;
};

// Immutable but for what generators keep in it: what they made of the Telemetry of one kind of workload stays as it is
// until any Telemetry or the mesh config changes, also when a service that a log names has gone meanwhile.
class Telemetries {
 public:
  // `sorted`: by creation time. `add_up`: all that select a workload hold for it, else the first. `by_target`: as of
  // Attaches().
  Telemetries(const std::vector<config::TelemetryRef>& sorted, std::shared_ptr<const config::MeshConfig> mesh,
              bool add_up = false, bool by_target = false);

  WorkloadTelemetry ForWorkload(std::string_view ns, const config::Labels& labels) const;

  // What generators made for workloads with the same Telemetry and the same sort of listener; encoded fields.
  struct Logs {
    std::string http, tcp, listener;
  };
  struct Generated {
    std::optional<std::string> http_filters, tcp_filters;
    std::optional<Logs> logs;
  };
  Generated& GeneratedFor(const WorkloadTelemetry& of, int listener_class) const;

 private:
  using Config = WorkloadTelemetry::Config;
  const Config* NamespaceWide(std::string_view ns) const;

  std::shared_ptr<const config::MeshConfig> mesh_;
  const bool add_up_, by_target_;
  std::map<std::string, std::vector<config::TelemetryRef>, std::less<>> by_namespace_;
  // By address, only ever looked up.
  mutable std::map<std::pair<WorkloadTelemetry::Levels, int>, Generated> generated_;
};

}  // namespace wavetank::pilot
