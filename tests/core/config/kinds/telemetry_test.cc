#include "core/config/kinds/telemetry.h"

#include "core/config/mesh/mesh_config.h"
#include "gmock/gmock.h"
#include "tests/core/config/yaml_config.h"

namespace wavetank::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Mode = Telemetry::Mode;

TEST(TelemetryTest, EveryFieldIsRead) {
  const auto telemetry = ParseAs<Telemetry>(ConfigYaml("Telemetry", "a", "t", R"(selector: {matchLabels: {app: till}}
tracing:
- match: {mode: CLIENT}
  providers: [{name: zipkin}, {name: other}]
  randomSamplingPercentage: 12.5
  disableSpanReporting: true
  useRequestIdForTraceSampling: false
  customTags:
    l: {literal: {value: v}}
    e: {environment: {name: E, defaultValue: d}}
    h: {header: {name: x-h}}
    none: {}
metrics:
- providers: [{name: prometheus}]
  reportingInterval: 5s
  overrides:
  - match: {metric: REQUEST_COUNT, mode: SERVER}
    disabled: false
    tagOverrides: {host: {value: request.host}, gone: {operation: REMOVE}}
  - match: {customMetric: mine}
  - disabled: true
accessLogging:
- match: {mode: SERVER}
  disabled: true
  filter: {expression: response.code > 399}
- {})"));
  const Telemetry& spec = telemetry->spec;
  EXPECT_EQ(spec.selector, (Labels{{"app", "till"}}));
  ASSERT_EQ(spec.tracing.size(), 1u);
  const Telemetry::Tracing& tracing = spec.tracing[0];
  EXPECT_EQ(tracing.mode, Mode::kClient);
  EXPECT_THAT(tracing.providers, ElementsAre("zipkin", "other"));
  EXPECT_EQ(tracing.random_sampling_percentage, 12.5);
  EXPECT_EQ(tracing.disable_span_reporting, true);
  EXPECT_EQ(tracing.use_request_id_for_trace_sampling, false);
  using Tag = Telemetry::CustomTag;
  EXPECT_EQ(tracing.custom_tags, (std::map<std::string, Tag>{{"l", {Tag::Kind::kLiteral, "v", "", ""}},
                                                             {"e", {Tag::Kind::kEnvironment, "", "E", "d"}},
                                                             {"h", {Tag::Kind::kHeader, "", "x-h", ""}},
                                                             {"none", {}}}));
  ASSERT_EQ(spec.metrics.size(), 1u);
  EXPECT_EQ(spec.metrics[0].reporting_interval, Duration(5s));
  const auto& overrides = spec.metrics[0].overrides;
  ASSERT_EQ(overrides.size(), 3u);
  EXPECT_EQ(overrides[0].metric, "REQUEST_COUNT");
  EXPECT_EQ(overrides[0].mode, Mode::kServer);
  EXPECT_EQ(overrides[0].disabled, false);
  EXPECT_EQ(overrides[0].tag_overrides,
            (std::map<std::string, Telemetry::TagOverride>{{"host", {false, "request.host"}}, {"gone", {true, ""}}}));
  EXPECT_EQ(overrides[1].metric, "mine");
  EXPECT_EQ(overrides[2].metric, std::nullopt);
  EXPECT_EQ(overrides[2].disabled, true);
  ASSERT_EQ(spec.access_logging.size(), 2u);
  EXPECT_EQ(spec.access_logging[0], (Telemetry::AccessLogging{Mode::kServer, {}, true, "response.code > 399"}));
  EXPECT_EQ(spec.access_logging[1], Telemetry::AccessLogging());
}

TEST(TelemetryTest, AWrongTypeMakesItUnreadable) {
  for (const char* spec : {"metrics: {}", "tracing: [{randomSamplingPercentage: a}]", "accessLogging: [{disabled: 1}]",
                           "metrics: [{overrides: [{match: {metric: NO_SUCH}}]}]", "tracing: [{customTags: []}]"}) {
    EXPECT_FALSE(TryParseYaml(ConfigYaml("Telemetry", "a", "t", spec)).ok()) << spec;
  }
}

std::vector<std::string> NamesOf(const std::vector<ExtensionProvider>& providers) {
  std::vector<std::string> out;
  for (const ExtensionProvider& provider : providers) out.push_back(provider.name);
  return out;
}

TEST(TelemetryTest, ThreeProvidersAreThereUnaskedAndANewOneOfTheirNameTakesTheirPlace) {
  const MeshConfigRef mesh = *ApplyMeshConfigDefaults(R"(
extensionProviders:
- {name: own, envoyHttpAls: {service: a.b, port: 1}}
- {name: stackdriver, zipkin: {service: z, port: 9411, enable64bitTraceId: true}}
- {name: own, envoyFileAccessLog: {path: /x, logFormat: {text: t}}}
defaultProviders: {tracing: [z], metrics: [prometheus], accessLogging: [envoy, own]}
)");
  const auto& providers = mesh->extension_providers;
  ASSERT_THAT(NamesOf(providers), ElementsAre("prometheus", "stackdriver", "envoy", "own"));
  using Provider = ExtensionProvider;
  EXPECT_TRUE(std::holds_alternative<Provider::Prometheus>(providers[0].telemetry));
  const auto* tracer = std::get_if<Provider::Tracer>(&providers[1].telemetry);
  ASSERT_NE(tracer, nullptr);
  EXPECT_TRUE(tracer->short_trace_ids);
  const auto* file = std::get_if<Provider::FileAccessLog>(&providers[3].telemetry);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->format->text, "t");
  EXPECT_THAT(mesh->default_providers.access_logging, ElementsAre("envoy", "own"));
  EXPECT_EQ(FindTelemetryProvider(providers, "PROMETHEUS"), &providers[0]);
  EXPECT_EQ(FindTelemetryProvider(providers, "promethe"), nullptr);
}

TEST(TelemetryTest, OfAProxysSettingsForTracingWhatCannotBeReadCountsAsAbsent) {
  const ProxyTracing tracing = ReadProxyTracing(
      {{"tracing",
        {{"sampling", 3}, {"maxPathTagLength", 9}, {"customTags", {{"t", {{"literal", {{"value", "v"}}}}}}}}}});
  EXPECT_EQ(tracing.sampling, 3);
  EXPECT_EQ(tracing.max_path_tag_length, 9u);
  EXPECT_EQ(tracing.custom_tags.at("t").value, "v");
  EXPECT_EQ(ReadProxyTracing({{"tracing", {{"sampling", "often"}, {"maxPathTagLength", 9}}}}).max_path_tag_length, 0u);
  EXPECT_THAT(ReadProxyTracing({}).custom_tags, IsEmpty());
}

}  // namespace
}  // namespace wavetank::config
