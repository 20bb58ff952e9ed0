// telemetry.istio.io Telemetry.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "core/config/kinds/policy_target.h"
#include "core/config/kinds/typed_config.h"

namespace wavetank::config {

struct Telemetry {
  // The API's values: which side of a call is meant.
  enum class Mode : uint8_t { kClientAndServer, kClient, kServer };

  // What a trace's spans say besides. A tag without a kind is left out.
  struct CustomTag {
    enum class Kind : uint8_t { kNone, kLiteral, kEnvironment, kHeader, kFormatter };
    Kind kind = Kind::kNone;
    std::string value;                // of a literal or a formatter
    std::string name, default_value;  // of the others
    friend bool operator==(const CustomTag&, const CustomTag&) = default;
  };
  struct Tracing {
    Mode mode = Mode::kClientAndServer;
    std::vector<std::string> providers;
    std::optional<double> random_sampling_percentage;
    std::optional<bool> disable_span_reporting;
    std::map<std::string, CustomTag> custom_tags;
    std::optional<bool> use_request_id_for_trace_sampling, enable_istio_tags;
    friend bool operator==(const Tracing&, const Tracing&) = default;
  };

  struct TagOverride {
    bool remove = false;
    std::string value;  // a CEL expression
    friend bool operator==(const TagOverride&, const TagOverride&) = default;
  };
  struct MetricsOverride {
    std::optional<std::string> metric;  // "REQUEST_COUNT", or a metric of the user's own; nullopt: all of Istio's
    Mode mode = Mode::kClientAndServer;
    std::optional<bool> disabled;
    std::map<std::string, TagOverride> tag_overrides;
    friend bool operator==(const MetricsOverride&, const MetricsOverride&) = default;
  };
  struct Metrics {
    std::vector<std::string> providers;
    std::vector<MetricsOverride> overrides;
    std::optional<Duration> reporting_interval;
    friend bool operator==(const Metrics&, const Metrics&) = default;
  };

  struct AccessLogging {
    Mode mode = Mode::kClientAndServer;
    std::vector<std::string> providers;
    bool disabled = false;
    std::optional<std::string> filter;  // a CEL expression
    friend bool operator==(const AccessLogging&, const AccessLogging&) = default;
  };

  std::optional<Labels> selector;     // matchLabels
  std::vector<PolicyTarget> targets;  // targetRefs, or targetRef
  std::vector<Tracing> tracing;
  std::vector<Metrics> metrics;
  std::vector<AccessLogging> access_logging;
  friend bool operator==(const Telemetry&, const Telemetry&) = default;
};
using TelemetryRef = TypedConfigRef<Telemetry>;

// A CustomTag of Telemetry or of a ProxyConfig's tracing, which have the same fields.
class ProtoJson;
void ReadMessage(ProtoJson& in, Telemetry::CustomTag& out);

}  // namespace wavetank::config
