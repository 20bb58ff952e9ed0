#include "core/push/policies/telemetry.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/push/policies/policy_attachment.h"

namespace wavetank::pilot {
namespace {

using config::Telemetry;
using Names = std::vector<std::string>;

constexpr std::array<const char*, 10> kIstioMetrics = {
    "GRPC_REQUEST_MESSAGES", "GRPC_RESPONSE_MESSAGES", "REQUEST_COUNT",          "REQUEST_DURATION",
    "REQUEST_SIZE",          "RESPONSE_SIZE",          "TCP_CLOSED_CONNECTIONS", "TCP_OPENED_CONNECTIONS",
    "TCP_RECEIVED_BYTES",    "TCP_SENT_BYTES"};

bool Concerns(Telemetry::Mode mode, TelemetrySide side) {
  return mode == Telemetry::Mode::kClientAndServer ||
         (mode == Telemetry::Mode::kClient) == (side == TelemetrySide::kClient);
}

// Of a whole namespace, or of the mesh.
bool IsNamespaceWide(const Telemetry& spec, bool by_target) {
  return (!spec.selector || spec.selector->empty()) && (!by_target || spec.targets.empty());
}

bool Holds(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// One provider's overrides while entries are merged, later ones over earlier.
struct MergingOverride {
  std::optional<bool> disabled;
  std::map<std::string, const Telemetry::TagOverride*> tags;
};
struct MergingMetrics {
  bool all_disabled = false;
  std::map<std::string, MergingOverride> overrides;
  std::optional<Duration> reporting_interval;
};

void Apply(const Telemetry::MetricsOverride& override, MergingMetrics& out) {
  if (!override.metric && override.disabled.value_or(false)) {
    out.all_disabled = true;
    return;
  }
  out.all_disabled = false;  // something is wanted after all, and what was said of it before counts again
  const auto apply = [&](const std::string& metric) {
    MergingOverride& merged = out.overrides[metric];
    if (override.disabled) merged.disabled = override.disabled;
    for (const auto& [name, tag] : override.tag_overrides) merged.tags[name] = &tag;
  };
  if (override.metric) return apply(*override.metric);
  for (const char* metric : kIstioMetrics) apply(metric);
}

MetricsSpec Finish(const MergingMetrics& merged) {
  MetricsSpec out;
  out.reporting_interval = merged.reporting_interval;
  out.disabled = merged.all_disabled;
  if (out.disabled) return out;
  for (const auto& [metric, override] : merged.overrides) {
    MetricsSpec::Override& to = out.overrides.emplace_back();
    to.metric = metric;
    to.disabled = override.disabled.value_or(false);
    for (const auto& [name, tag] : override.tags) {
      to.tags.push_back({name, tag->remove ? std::string() : tag->value, tag->remove});
    }
  }
  return out;
}

}  // namespace

// istiod: mergeLogs. A level that names providers replaces those of the levels above it.
std::map<std::string, LoggingSpec> WorkloadTelemetry::Logging(TelemetrySide side) const {
  const Names& defaults = mesh_->default_providers.access_logging;
  std::map<std::string, LoggingSpec> out;
  bool said = false;
  Names in_scope = defaults;
  std::map<std::string, LoggingSpec> filters;
  for (const Config* level : levels_) {
    if (level->spec.access_logging.empty()) continue;
    said = true;
    Names named;
    for (const Telemetry::AccessLogging& entry : level->spec.access_logging) {
      if (!Concerns(entry.mode, side)) continue;
      named.insert(named.end(), entry.providers.begin(), entry.providers.end());
      for (const std::string& provider : entry.providers) filters[provider] = {false, &entry.filter};
    }
    if (!named.empty()) in_scope = std::move(named);
  }
  if (!said) {
    for (const std::string& provider : defaults) out[provider] = {};
    return out;
  }
  const Names* inherited = &defaults;
  for (const Config* level : levels_) {
    for (const Telemetry::AccessLogging& entry : level->spec.access_logging) {
      if (!entry.providers.empty()) inherited = &entry.providers;
      if (!Concerns(entry.mode, side)) continue;
      for (const std::string& provider : *inherited) {
        if (!Holds(in_scope, provider)) continue;
        out[provider] = entry.disabled ? LoggingSpec{true, nullptr} : filters[provider];
      }
    }
  }
  return out;
}

// istiod: mergeMetrics. The last entry that names providers says which; what was said of others is forgotten.
std::map<std::string, MetricsSpec> WorkloadTelemetry::Metrics(TelemetrySide side) const {
  const Names& defaults = mesh_->default_providers.metrics;
  std::map<std::string, MetricsSpec> out;
  bool said = false;
  const Names* in_scope = &defaults;
  for (const Config* level : levels_) {
    for (const Telemetry::Metrics& entry : level->spec.metrics) {
      said = true;
      if (!entry.providers.empty()) in_scope = &entry.providers;
    }
  }
  if (!said) {
    for (const std::string& provider : defaults) out[provider] = {};
    return out;
  }
  std::map<std::string, MergingMetrics> merging;
  const Names* inherited = &defaults;
  for (const Config* level : levels_) {
    for (const Telemetry::Metrics& entry : level->spec.metrics) {
      if (!entry.providers.empty()) inherited = &entry.providers;
      for (const std::string& provider : *inherited) {
        if (!Holds(*in_scope, provider)) continue;
        MergingMetrics& merged = merging[provider];
        if (entry.reporting_interval) merged.reporting_interval = entry.reporting_interval;
        for (const Telemetry::MetricsOverride& override : entry.overrides) {
          if (Concerns(override.mode, side)) Apply(override, merged);
        }
      }
    }
  }
  for (const auto& [provider, merged] : merging) out.emplace(provider, Finish(merged));
  return out;
}

// istiod: Telemetries.Tracing. One provider only: the first that the last entry names.
std::optional<TracingSpec> WorkloadTelemetry::Tracing(TelemetrySide side) const {
  const Names& defaults = mesh_->default_providers.tracing;
  const auto find = [&](const Names& names) {
    return config::FindTelemetryProvider(mesh_->extension_providers, names.front());
  };
  bool said = !defaults.empty();
  TracingSpec out;
  if (said) out.provider = find(defaults);
  for (const Config* level : levels_) {
    for (const Telemetry::Tracing& entry : level->spec.tracing) {
      said = true;
      if (!Concerns(entry.mode, side)) continue;
      if (!entry.providers.empty()) out.provider = find(entry.providers);
      if (entry.disable_span_reporting) out.disabled = *entry.disable_span_reporting;
      if (!entry.custom_tags.empty()) out.custom_tags = &entry.custom_tags;
      if (entry.random_sampling_percentage) {
        out.random_sampling_percentage = *entry.random_sampling_percentage;
        out.sampling_said = true;
      }
      if (entry.enable_istio_tags) out.istio_tags = *entry.enable_istio_tags;
      if (entry.use_request_id_for_trace_sampling) {
        out.use_request_id_for_trace_sampling = *entry.use_request_id_for_trace_sampling;
      }
    }
  }
  if (!said) return std::nullopt;
  out.disabled |= out.provider == nullptr;
  return out;
}

Telemetries::Telemetries(const std::vector<config::TelemetryRef>& sorted,
                         std::shared_ptr<const config::MeshConfig> mesh, bool add_up, bool by_target)
    : mesh_(std::move(mesh)), add_up_(add_up), by_target_(by_target) {
  for (const config::TelemetryRef& telemetry : sorted) by_namespace_[telemetry->meta.ns].push_back(telemetry);
}

const Telemetries::Config* Telemetries::NamespaceWide(std::string_view ns) const {
  const auto it = by_namespace_.find(ns);
  if (it == by_namespace_.end()) return nullptr;
  for (const config::TelemetryRef& telemetry : it->second) {
    if (IsNamespaceWide(telemetry->spec, by_target_)) return telemetry.get();
  }
  return nullptr;
}

WorkloadTelemetry Telemetries::ForWorkload(std::string_view ns, const config::Labels& labels) const {
  WorkloadTelemetry out;
  out.mesh_ = mesh_.get();
  if (by_namespace_.empty()) return out;
  const std::string& root = mesh_->root_namespace;
  const auto add = [&](const Config* level) {
    if (level != nullptr) out.levels_.push_back(level);
  };
  if (!root.empty()) add(NamespaceWide(root));
  if (ns != root) add(NamespaceWide(ns));
  const auto it = by_namespace_.find(ns);
  if (it == by_namespace_.end()) return out;
  for (const config::TelemetryRef& telemetry : it->second) {
    if (IsNamespaceWide(telemetry->spec, by_target_)) continue;
    if (!Attaches(telemetry->spec, ns, ns, labels, by_target_)) continue;
    add(telemetry.get());
    if (!add_up_) break;
  }
  return out;
}

Telemetries::Generated& Telemetries::GeneratedFor(const WorkloadTelemetry& of, int listener_class) const {
  return generated_[{of.levels_, listener_class}];
}

}  // namespace wavetank::pilot
