#include "core/config/kinds/telemetry.h"

#include "core/config/kinds/read_message.h"

namespace wavetank::config {
namespace {

using Workloads = Telemetry::Mode;  // as clients, servers or both

void ReadMode(ProtoJson& in, Workloads& out) {
  in.Enum("mode", out,
          {{"CLIENT_AND_SERVER", Workloads::kClientAndServer},
           {"CLIENT", Workloads::kClient},
           {"SERVER", Workloads::kServer}});
}

struct ModeSelector {
  Workloads mode = Workloads::kClientAndServer;
};
struct ProviderRef {
  std::string name;
};
struct LogFilter {
  std::string expression;
};
struct Literal {
  std::string value;
};
struct NameAndDefault {
  std::string name, default_value;
};
void ReadMessage(ProtoJson& in, ModeSelector& out) { ReadMode(in, out.mode); }
void ReadMessage(ProtoJson& in, ProviderRef& out) { in.Field("name", out.name); }
void ReadMessage(ProtoJson& in, LogFilter& out) { in.Field("expression", out.expression); }
void ReadMessage(ProtoJson& in, Literal& out) { in.Field("value", out.value); }
void ReadMessage(ProtoJson& in, NameAndDefault& out) {
  in.Field("name", out.name);
  in.Field("defaultValue", out.default_value);
}

// What the three parts have in common.
template <typename Part>
void ReadMatchAndProviders(ProtoJson& in, Part& out) {
  if constexpr (requires { out.mode; }) {
    ModeSelector match;
    in.Field("match", match);
    out.mode = match.mode;
  }
  std::vector<ProviderRef> providers;
  in.Field("providers", providers);
  for (ProviderRef& provider : providers) out.providers.push_back(std::move(provider.name));
}

// MetricSelector.
struct MetricMatch {
  std::optional<std::string> metric;
  Workloads mode = Workloads::kClientAndServer;
};
void ReadMessage(ProtoJson& in, MetricMatch& out) {
  static constexpr const char* kMetrics[] = {
      "ALL_METRICS",        "REQUEST_COUNT",          "REQUEST_DURATION",       "REQUEST_SIZE",
      "RESPONSE_SIZE",      "TCP_OPENED_CONNECTIONS", "TCP_CLOSED_CONNECTIONS", "TCP_SENT_BYTES",
      "TCP_RECEIVED_BYTES", "GRPC_REQUEST_MESSAGES",  "GRPC_RESPONSE_MESSAGES"};
  uint8_t metric = 0;
  in.Enum<uint8_t>("metric", metric,
                   {{kMetrics[0], 0},
                    {kMetrics[1], 1},
                    {kMetrics[2], 2},
                    {kMetrics[3], 3},
                    {kMetrics[4], 4},
                    {kMetrics[5], 5},
                    {kMetrics[6], 6},
                    {kMetrics[7], 7},
                    {kMetrics[8], 8},
                    {kMetrics[9], 9},
                    {kMetrics[10], 10}});
  if (metric != 0) out.metric = kMetrics[metric];
  in.Field("customMetric", out.metric);
  ReadMode(in, out.mode);
}

}  // namespace

void ReadMessage(ProtoJson& in, Telemetry::CustomTag& out) {
  using Tag = Telemetry::CustomTag;
  // One of them is there; of several, the last field of the message counts.
  if (in.Has("literal")) {
    Literal literal;
    in.Field("literal", literal);
    out.kind = Tag::Kind::kLiteral;
    out.value = std::move(literal.value);
  }
  if (in.Has("formatter")) {
    Literal formatter;
    in.Field("formatter", formatter);
    out.kind = Tag::Kind::kFormatter;
    out.value = std::move(formatter.value);
  }
  for (const auto& [field, kind] :
       {std::pair("environment", Tag::Kind::kEnvironment), std::pair("header", Tag::Kind::kHeader)}) {
    if (!in.Has(field)) continue;
    NameAndDefault named;
    in.Field(field, named);
    out.kind = kind;
    out.name = std::move(named.name);
    out.default_value = std::move(named.default_value);
  }
}

void ReadMessage(ProtoJson& in, Telemetry::Tracing& out) {
  ReadMatchAndProviders(in, out);
  in.Field("randomSamplingPercentage", out.random_sampling_percentage);
  in.Field("disableSpanReporting", out.disable_span_reporting);
  in.Field("customTags", out.custom_tags);
  in.Field("useRequestIdForTraceSampling", out.use_request_id_for_trace_sampling);
  in.Field("enableIstioTags", out.enable_istio_tags);
}

void ReadMessage(ProtoJson& in, Telemetry::TagOverride& out) {
  in.Enum("operation", out.remove, {{"UPSERT", false}, {"REMOVE", true}});
  in.Field("value", out.value);
}

void ReadMessage(ProtoJson& in, Telemetry::MetricsOverride& out) {
  MetricMatch match;
  in.Field("match", match);
  out.metric = std::move(match.metric);
  out.mode = match.mode;
  in.Field("disabled", out.disabled);
  in.Field("tagOverrides", out.tag_overrides);
}

void ReadMessage(ProtoJson& in, Telemetry::Metrics& out) {
  ReadMatchAndProviders(in, out);
  in.Field("overrides", out.overrides);
  in.Field("reportingInterval", out.reporting_interval);
}

void ReadMessage(ProtoJson& in, Telemetry::AccessLogging& out) {
  ReadMatchAndProviders(in, out);
  in.Field("disabled", out.disabled);
  std::optional<LogFilter> filter;
  in.Field("filter", filter);
  if (filter) out.filter = std::move(filter->expression);
}

void ReadMessage(ProtoJson& in, Telemetry& out) {
  ReadSelector(in, "selector", "matchLabels", out.selector);
  ReadTargets(in, out.targets);
  in.Field("tracing", out.tracing);
  in.Field("metrics", out.metrics);
  in.Field("accessLogging", out.access_logging);
}

}  // namespace wavetank::config
