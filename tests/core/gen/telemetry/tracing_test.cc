#include "core/gen/telemetry/tracing.h"

#include "core/gen/lds/lds.h"
#include "core/profile/changes.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/trace/v3/opentelemetry.pb.h"
#include "envoy/config/trace/v3/zipkin.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

namespace trace = ::envoy::config::trace::v3;
using config::ExtensionProvider;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using Manager = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using ListenerPb = ::envoy::config::listener::v3::Listener;
using Tracer = ExtensionProvider::Tracer;
using CustomTag = config::Telemetry::CustomTag;

// What the listener of an outbound HTTP port says of traces, with one provider that a Telemetry names.
class TracingTest : public ::testing::Test {
 protected:
  TracingTest() { world_.AddService("web"); }

  static Tracer To(Tracer::Kind kind) {
    Tracer out;
    out.kind = kind;
    out.service = GenWorld::Host("web");
    out.port = 80;
    return out;
  }

  Manager::Tracing Generate(const Tracer& tracer, config::Telemetry::Tracing spec = {}) {
    ExtensionProvider provider;
    provider.name = "tracer";
    provider.telemetry = tracer;
    world_.mesh.extension_providers = {provider};
    spec.providers = {"tracer"};
    config::Telemetry telemetry;
    telemetry.tracing.push_back(std::move(spec));
    world_.AddTelemetry(telemetry);
    return Generate();
  }

  Manager::Tracing Generate() {
    const PushContextRef push = world_.Push();
    Proxy proxy = world_.Connect(*push, "c1", type_, labels_);
    proxy.service_cluster = "till.shop";
    proxy.metadata.istio_version = version_;
    proxy.metadata.raw = SharedJson(metadata_);
    proxy.labels = labels_;
    for (const Resource& resource : MakeLdsGenerator()->Generate(proxy, {}, GenWorld::Request(push)).resources) {
      ListenerPb listener;
      Manager manager;
      if (resource.name != "0.0.0.0_80" || !listener.ParseFromString(std::string(*resource.bytes))) continue;
      for (const auto& filter : listener.filter_chains(0).filters()) {
        if (filter.typed_config().UnpackTo(&manager)) return manager.tracing();
      }
    }
    ADD_FAILURE() << "no listener";
    return {};
  }

  template <typename Config>
  Config ConfigOf(const Tracer& tracer) {
    Config out;
    const Manager::Tracing tracing = Generate(tracer);
    EXPECT_TRUE(tracing.provider().typed_config().UnpackTo(&out)) << tracing.DebugString();
    return out;
  }
  trace::ZipkinConfig Zipkin(const Tracer& tracer) { return ConfigOf<trace::ZipkinConfig>(tracer); }
  trace::OpenTelemetryConfig OpenTelemetry(const Tracer& tracer) {
    return ConfigOf<trace::OpenTelemetryConfig>(tracer);
  }

  static std::vector<std::string> Tags(const Manager::Tracing& tracing) {
    std::vector<std::string> out;
    for (const auto& tag : tracing.custom_tags()) out.push_back(tag.tag());
    return out;
  }

  GenWorld world_;
  std::string version_;  // of the proxy
  nlohmann::json metadata_ = nlohmann::json::object();
  Labels labels_;
  NodeType type_ = NodeType::kSidecarProxy;
};

TEST_F(TracingTest, ZipkinsPathCountsSinceTheReleaseThatReadsIt) {
  Tracer zipkin = To(Tracer::Kind::kZipkin);
  zipkin.path = "/spans";
  EXPECT_EQ(Zipkin(zipkin).collector_endpoint(), "/api/v2/spans");
  world_.profile.Set(Change::kZipkinPaths);
  EXPECT_EQ(Zipkin(zipkin).collector_endpoint(), "/spans");
}

TEST_F(TracingTest, ZipkinIsAServiceForProxiesThatKnowIt) {
  Tracer zipkin = To(Tracer::Kind::kZipkin);
  zipkin.timeout = 2s;
  zipkin.headers = {{"who", "me"}};
  version_ = "1.29.0";
  EXPECT_EQ(Zipkin(zipkin).collector_cluster(), "outbound|80||web.shop.svc.cluster.local");
  world_.profile.Set(Change::kCollectorService);
  const trace::ZipkinConfig newer = Zipkin(zipkin);
  EXPECT_THAT(newer.collector_cluster(), IsEmpty());
  EXPECT_EQ(newer.collector_service().http_uri().uri(), "http://web.shop.svc.cluster.local/api/v2/spans");
  EXPECT_EQ(newer.collector_service().http_uri().cluster(), "outbound|80||web.shop.svc.cluster.local");
  EXPECT_EQ(newer.collector_service().http_uri().timeout().seconds(), 2);
  EXPECT_EQ(newer.collector_service().request_headers_to_add(0).header().key(), "who");
  zipkin.timeout.reset();
  EXPECT_EQ(Zipkin(zipkin).collector_service().http_uri().timeout().seconds(), 5) << "Envoy wants one";
  version_ = "1.28.3";
  EXPECT_FALSE(Zipkin(zipkin).has_collector_service());
}

TEST_F(TracingTest, ZipkinPassesContextsOfTheW3CForProxiesThatKnowIt) {
  Tracer zipkin = To(Tracer::Kind::kZipkin);
  zipkin.b3_with_w3c = true;
  version_ = "1.28.0";
  EXPECT_EQ(Zipkin(zipkin).trace_context_option(), trace::ZipkinConfig::USE_B3);
  world_.profile.Set(Change::kZipkinW3cContext);
  EXPECT_EQ(Zipkin(zipkin).trace_context_option(), trace::ZipkinConfig::USE_B3_WITH_W3C_PROPAGATION);
  version_ = "1.27.9";
  EXPECT_EQ(Zipkin(zipkin).trace_context_option(), trace::ZipkinConfig::USE_B3);
}

TEST_F(TracingTest, OpenTelemetryGoesByHttpAndDetectsResourcesSinceTheReleaseThatReadsIt) {
  Tracer otel = To(Tracer::Kind::kOpenTelemetry);
  otel.over_http = true;
  otel.path = "/v1/traces";
  otel.timeout = 3s;
  otel.headers = {{"who", "me"}};
  otel.detects_environment = otel.detects_dynatrace = true;
  EXPECT_TRUE(OpenTelemetry(otel).has_grpc_service());
  EXPECT_EQ(OpenTelemetry(otel).resource_detectors_size(), 0);
  world_.profile.Set(Change::kOtelOverHttp);
  const trace::OpenTelemetryConfig later = OpenTelemetry(otel);
  EXPECT_FALSE(later.has_grpc_service());
  EXPECT_EQ(later.http_service().http_uri().uri(), GenWorld::Host("web") + "/v1/traces");
  EXPECT_EQ(later.http_service().http_uri().timeout().seconds(), 3);
  EXPECT_EQ(later.http_service().request_headers_to_add(0).header().value(), "me");
  ASSERT_EQ(later.resource_detectors_size(), 2);
  EXPECT_EQ(later.resource_detectors(0).name(), "envoy.tracers.opentelemetry.resource_detectors.environment");
  EXPECT_EQ(later.resource_detectors(1).name(), "envoy.tracers.opentelemetry.resource_detectors.dynatrace");
}

TEST_F(TracingTest, OpenTelemetryByGrpcHasATimeoutAndMetadataSinceTheReleaseThatReadsThem) {
  Tracer otel = To(Tracer::Kind::kOpenTelemetry);
  otel.timeout = 3s;
  otel.headers = {{"who", "me"}};
  EXPECT_FALSE(OpenTelemetry(otel).grpc_service().has_timeout());
  EXPECT_EQ(OpenTelemetry(otel).grpc_service().initial_metadata_size(), 0);
  world_.profile.Set(Change::kOtelMetadata);
  EXPECT_EQ(OpenTelemetry(otel).grpc_service().timeout().seconds(), 3);
  EXPECT_EQ(OpenTelemetry(otel).grpc_service().initial_metadata(0).key(), "who");
}

TEST_F(TracingTest, OpenTelemetrysServiceIsNamedByItsConventionsWhereTheProviderWantsThem) {
  Tracer otel = To(Tracer::Kind::kOpenTelemetry);
  otel.semantic_conventions = true;
  labels_ = {{"app.kubernetes.io/name", "till"}};
  EXPECT_EQ(OpenTelemetry(otel).service_name(), "till.shop");
  world_.profile.Set(Change::kOtelServiceNames);
  EXPECT_EQ(OpenTelemetry(otel).service_name(), "till");
  EXPECT_EQ(OpenTelemetry(otel).resource_detectors(0).name(),
            "envoy.tracers.opentelemetry.resource_detectors.environment");
  labels_["app.kubernetes.io/instance"] = "till-eu";
  EXPECT_EQ(OpenTelemetry(otel).service_name(), "till-eu");
  metadata_["ANNOTATIONS"] = {{"resource.opentelemetry.io/service.name", "own"}};
  EXPECT_EQ(OpenTelemetry(otel).service_name(), "own");
  labels_.clear();
  metadata_.clear();
  EXPECT_EQ(OpenTelemetry(otel).service_name(), "client") << "the pod's name is what is left";
  otel.semantic_conventions = false;
  EXPECT_EQ(OpenTelemetry(otel).service_name(), "till.shop");
}

TEST_F(TracingTest, OpenCensusTracesUntilTheReleaseThatDropsIt) {
  const Tracer census = To(Tracer::Kind::kOpenCensus);
  EXPECT_EQ(Generate(census).provider().name(), "envoy.tracers.opencensus");
  world_.profile.Set(Change::kTracersGone);
  EXPECT_FALSE(Generate(census).has_provider());
}

TEST_F(TracingTest, StackdriverTracesUntilTheReleaseThatDropsIt) {
  ExtensionProvider provider;
  provider.name = "tracer";
  provider.telemetry = ExtensionProvider::Stackdriver{};
  metadata_["PLATFORM_METADATA"] = {{"gcp_project", "p"}};
  world_.mesh.extension_providers = {provider};
  config::Telemetry telemetry;
  telemetry.tracing.emplace_back().providers = {"tracer"};
  world_.AddTelemetry(telemetry);
  EXPECT_EQ(Generate().provider().name(), "envoy.tracers.opencensus");
  world_.profile.Set(Change::kTracersGone);
  EXPECT_FALSE(Generate().has_provider());
}

TEST_F(TracingTest, WithoutAShareOfItsOwnATelemetryHasTheMeshsSinceTheReleaseThatSaysSo) {
  const Tracer zipkin = To(Tracer::Kind::kZipkin);
  world_.mesh.tracing_sampling = 30;
  EXPECT_EQ(Generate(zipkin).random_sampling().value(), 0);
  world_.profile.Set(Change::kTraceShareOfMesh);
  EXPECT_EQ(Generate(zipkin).random_sampling().value(), 30);
  config::Telemetry::Tracing none;
  none.random_sampling_percentage = 0.0;
  EXPECT_EQ(Generate(zipkin, none).random_sampling().value(), 0) << "none, too, is a share";
}

TEST_F(TracingTest, TagsByFormatterAreForProxiesThatKnowThem) {
  config::Telemetry::Tracing spec;
  spec.custom_tags["mine"] = {CustomTag::Kind::kFormatter, "%PROTOCOL%", "", ""};
  version_ = "1.29.0";
  const Tracer zipkin = To(Tracer::Kind::kZipkin);
  EXPECT_THAT(Tags(Generate(zipkin, spec)), Not(Contains("mine")));
  world_.profile.Set(Change::kFormatterTags);
  const Manager::Tracing tracing = Generate(zipkin, spec);
  ASSERT_THAT(Tags(tracing), Contains("mine"));
  for (const auto& tag : tracing.custom_tags()) {
    if (tag.tag() != "mine") continue;
    EXPECT_EQ(tag.value(), "%PROTOCOL%");
  }
  version_ = "1.28.3";
  EXPECT_THAT(Tags(Generate(zipkin, spec)), Not(Contains("mine")));
}

TEST_F(TracingTest, SpansHaveIstiosTagsUnlessATelemetryWantsNone) {
  config::Telemetry::Tracing spec;
  spec.enable_istio_tags = false;
  spec.custom_tags["mine"] = {CustomTag::Kind::kLiteral, "x", "", ""};
  const Tracer zipkin = To(Tracer::Kind::kZipkin);
  EXPECT_THAT(Tags(Generate(zipkin, spec)), AllOf(Contains("istio.mesh_id"), Contains("mine")));
  world_.profile.Set(Change::kOptionalIstioTags);
  EXPECT_THAT(Tags(Generate(zipkin, spec)), ElementsAre("mine"));
  spec.enable_istio_tags.reset();
  EXPECT_THAT(Tags(Generate(zipkin, spec)), Contains("istio.mesh_id"));
}

TEST_F(TracingTest, WithoutATelemetryTheMeshsSettingsSayWhetherSpansHaveIstiosTags) {
  world_.mesh.enable_tracing = true;
  world_.mesh.tracing_istio_tags = false;
  EXPECT_THAT(Tags(Generate()), Contains("istio.mesh_id"));
  world_.profile.Set(Change::kOptionalIstioTags);
  EXPECT_THAT(Tags(Generate()), IsEmpty());
}

TEST_F(TracingTest, ThatEachAttemptIsASpanIsToldToTheTracerSinceTheReleaseThatDoes) {
  const Tracer walker = To(Tracer::Kind::kSkyWalking);
  EXPECT_FALSE(Generate(walker).has_spawn_upstream_span()) << "the router is told";
  world_.profile.Set(Change::kUpstreamSpans);
  EXPECT_TRUE(Generate(walker).spawn_upstream_span().value());
  EXPECT_FALSE(Generate(To(Tracer::Kind::kZipkin)).has_spawn_upstream_span());
}

TEST_F(TracingTest, GatewaysMakeASpanOfEachAttemptSinceTheReleaseThatLetsThem) {
  config::Server server;
  server.port = {80, "HTTP", "http", 0};
  server.has_port = true;
  server.hosts = {"*"};
  auto gateway = std::make_shared<config::TypedConfig<config::Gateway>>();
  gateway->meta.kind = config::Kind::kGateway;
  gateway->meta.name = "gw";
  gateway->meta.ns = "shop";
  gateway->spec.servers = {server};
  gateway->spec.selector = {{"istio", "gw"}};
  world_.configs.Put(config::GatewayRef(std::move(gateway)));
  type_ = NodeType::kRouter;
  labels_ = {{"istio", "gw"}};
  world_.profile.Set(Change::kUpstreamSpans);
  const Tracer zipkin = To(Tracer::Kind::kZipkin);
  EXPECT_FALSE(Generate(zipkin).has_spawn_upstream_span());
  world_.profile.Set(Change::kGatewaysMakeSpans);
  EXPECT_TRUE(Generate(zipkin).spawn_upstream_span().value());
}

}  // namespace
}  // namespace wavetank::pilot
