#include "core/gen/lds/lds.h"

#include "absl/strings/str_join.h"
#include "core/profile/changes.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/trace/v3/zipkin.pb.h"
#include "envoy/extensions/access_loggers/file/v3/file.pb.h"
#include "envoy/extensions/access_loggers/grpc/v3/als.pb.h"
#include "envoy/extensions/access_loggers/open_telemetry/v3/logs_service.pb.h"
#include "envoy/extensions/filters/http/wasm/v3/wasm.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/wrappers.pb.h"
#include "gtest/gtest.h"
#include "istio/stats.pb.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using config::ExtensionProvider;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Manager = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using TcpProxyPb = ::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
using ListenerPb = ::envoy::config::listener::v3::Listener;

class LdsTelemetryTest : public ::testing::Test {
 protected:
  LdsTelemetryTest() {
    world_.AddService("web");
    Service& db = *world_.AddService("db", "shop", {"tcp", 5432, Protocol::kTcp});
    db.default_address = "240.0.0.2";
  }

  void Generate(NodeType type = NodeType::kSidecarProxy) {
    push_ = world_.Push();
    Proxy proxy = world_.Connect(*push_, "c1", type, {{"app", "till"}});
    proxy.service_cluster = "till.shop";
    listeners_.clear();
    for (const Resource& resource : MakeLdsGenerator()->Generate(proxy, {}, GenWorld::Request(push_)).resources) {
      ASSERT_TRUE(listeners_[std::string(resource.name)].ParseFromString(std::string(*resource.bytes)));
    }
  }

  template <typename Message>
  static std::optional<Message> Find(const ListenerPb& listener) {
    for (const auto& chain : listener.filter_chains()) {
      for (const auto& filter : chain.filters()) {
        Message out;
        if (filter.typed_config().UnpackTo(&out)) return out;
      }
    }
    return std::nullopt;
  }
  Manager HttpOf(const std::string& listener) { return Find<Manager>(listeners_.at(listener)).value(); }
  static std::vector<std::string> NamesOf(const Manager& manager) {
    std::vector<std::string> out;
    for (const auto& filter : manager.http_filters()) out.push_back(filter.name());
    return out;
  }
  static config::Telemetry Metrics(const std::vector<std::string>& providers) {
    config::Telemetry out;
    out.metrics.emplace_back().providers = providers;
    return out;
  }
  static config::Telemetry Logs(const std::vector<std::string>& providers) {
    config::Telemetry out;
    out.access_logging.emplace_back().providers = providers;
    return out;
  }

  static constexpr const char* kOutbound = "0.0.0.0_80";
  GenWorld world_;
  PushContextRef push_;
  std::map<std::string, ListenerPb> listeners_;
};

TEST_F(LdsTelemetryTest, WithoutTelemetryNothingMeasuresOrLogs) {
  Generate();
  EXPECT_THAT(NamesOf(HttpOf(kOutbound)), Not(Contains("istio.stats")));
  EXPECT_EQ(HttpOf("virtualInbound").access_log_size(), 0);
  EXPECT_EQ(listeners_.at("virtualOutbound").access_log_size(), 0);
}

TEST_F(LdsTelemetryTest, StatsStandBeforeTheRouterAndBeforeEveryTcpProxy) {
  world_.AddTelemetry(Metrics({"prometheus"}), "istio-system");
  Generate();
  std::vector<std::string> names = NamesOf(HttpOf(kOutbound));
  EXPECT_THAT(std::vector(names.end() - 2, names.end()), ElementsAre("istio.stats", "envoy.filters.http.router"));
  names = NamesOf(HttpOf("virtualInbound"));
  EXPECT_THAT(std::vector(names.end() - 2, names.end()), ElementsAre("istio.stats", "envoy.filters.http.router"));
  int tcp = 0;
  for (const auto& [name, listener] : listeners_) {
    for (const auto& chain : listener.filter_chains()) {
      const int last = chain.filters_size() - 1;
      if (chain.filters(last).name() != "envoy.filters.network.tcp_proxy") continue;
      ++tcp;
      ASSERT_GT(last, 0) << name;
      EXPECT_EQ(chain.filters(last - 1).name(), "istio.stats") << name << " " << chain.name();
    }
  }
  EXPECT_GT(tcp, 4);
  stats::PluginConfig config;
  ASSERT_TRUE(HttpOf("virtualInbound")
                  .http_filters(HttpOf("virtualInbound").http_filters_size() - 2)
                  .typed_config()
                  .UnpackTo(&config));
  EXPECT_TRUE(config.disable_host_header_fallback()) << "servers know who they are";
}

TEST_F(LdsTelemetryTest, AStockEnvoyIsSpared) {
  world_.profile.Set(Change::kUpstreamEnvoy);
  world_.AddTelemetry(Metrics({"prometheus", "stackdriver"}), "istio-system");
  Generate();
  EXPECT_THAT(NamesOf(HttpOf(kOutbound)), Not(Contains(HasSubstr("istio."))));
}

TEST_F(LdsTelemetryTest, StackdriverReadsJsonInTheOrderOfItsApi) {
  config::Telemetry telemetry = Metrics({"stackdriver"});
  auto& override = telemetry.metrics[0].overrides.emplace_back();
  override.metric = "REQUEST_COUNT";
  override.tag_overrides["who"].value = "a > \"b\"";
  telemetry.access_logging.emplace_back().providers = {"stackdriver"};
  world_.AddTelemetry(telemetry);
  Generate();
  for (const auto& [listener, expected] :
       {std::pair(kOutbound, R"({"access_logging":"ERRORS_ONLY","metric_expiry_duration":"3600s",)"
                             R"("metrics_overrides":{"client/request_count":{"tag_overrides":{"who":"a > \"b\""}}}})"),
        std::pair("virtualInbound",
                  R"({"disable_host_header_fallback":true,"access_logging":"FULL","metric_expiry_duration":"3600s",)"
                  R"("metrics_overrides":{"server/request_count":{"tag_overrides":{"who":"a > \"b\""}}}})")}) {
    const Manager manager = HttpOf(listener);
    ::envoy::extensions::filters::http::wasm::v3::Wasm wasm;
    ASSERT_TRUE(manager.http_filters(manager.http_filters_size() - 2).typed_config().UnpackTo(&wasm));
    google::protobuf::StringValue json;
    ASSERT_TRUE(wasm.config().configuration().UnpackTo(&json));
    EXPECT_EQ(json.value(), expected);
  }
}

TEST_F(LdsTelemetryTest, StackdriverHasNoFilterWhereItIsGone) {
  config::Telemetry telemetry = Metrics({"stackdriver"});
  telemetry.access_logging.emplace_back().providers = {"stackdriver"};
  world_.AddTelemetry(telemetry);
  Generate();
  EXPECT_THAT(NamesOf(HttpOf(kOutbound)), Contains("istio.stackdriver"));
  world_.profile.Set(Change::kStackdriverGone);
  Generate();
  EXPECT_THAT(NamesOf(HttpOf(kOutbound)), Not(Contains("istio.stackdriver")));
}

TEST_F(LdsTelemetryTest, LogsTellThePeerByTheNamesOfTheRelease) {
  namespace loggers = ::envoy::extensions::access_loggers;
  ExtensionProvider als, otel;
  als.name = "als";
  als.telemetry = ExtensionProvider::GrpcAccessLog{.service = GenWorld::Host("web"), .port = 80};
  otel.name = "otel";
  otel.telemetry = ExtensionProvider::OtelAccessLog{.service = GenWorld::Host("web"), .port = 80};
  world_.mesh.extension_providers = {als, otel};
  world_.AddTelemetry(Logs({"als", "otel"}));
  const auto told = [&] {
    Generate();
    std::vector<std::string> out;
    loggers::grpc::v3::HttpGrpcAccessLogConfig grpc;
    loggers::open_telemetry::v3::OpenTelemetryAccessLogConfig open;
    const Manager manager = HttpOf(kOutbound);
    EXPECT_TRUE(manager.access_log(0).typed_config().UnpackTo(&grpc));
    EXPECT_TRUE(manager.access_log(1).typed_config().UnpackTo(&open));
    for (const auto* common : {&grpc.common_config(), &open.common_config()}) {
      out.push_back(absl::StrJoin(common->filter_state_objects_to_log(), " "));
    }
    out.push_back(open.disable_builtin_labels() ? "no labels" : "labels");
    return out;
  };
  const std::string old = "wasm.upstream_peer wasm.upstream_peer_id wasm.downstream_peer wasm.downstream_peer_id";
  EXPECT_THAT(told(), ElementsAre(old, old, "labels"));
  world_.profile.Set(Change::kOtelNoBuiltinLabels);
  world_.profile.Set(Change::kPeerStateNames);
  EXPECT_THAT(told(), ElementsAre("upstream_peer downstream_peer", "upstream_peer downstream_peer", "no labels"));
  world_.profile.Set(Change::kOtelLogsAllPeerStates);
  EXPECT_THAT(told(),
              ElementsAre("upstream_peer downstream_peer", "upstream_peer downstream_peer " + old, "no labels"));
}

class LdsFileLogTest : public LdsTelemetryTest {
 protected:
  using Log = ExtensionProvider::FileAccessLog;
  ::envoy::config::core::v3::SubstitutionFormatString FormatOf(const Log& log, const std::string& name = "file") {
    ExtensionProvider file;
    file.name = name;
    file.telemetry = log;
    world_.mesh.extension_providers = {file};
    world_.AddTelemetry(Logs({name}));
    Generate();
    ::envoy::extensions::access_loggers::file::v3::FileAccessLog read;
    EXPECT_TRUE(HttpOf(kOutbound).access_log(0).typed_config().UnpackTo(&read));
    return read.log_format();
  }
};

TEST_F(LdsFileLogTest, AFilesFormatNamesNoExtensionThatEnvoyHas) {
  Log log;
  log.format.emplace().text = "%METADATA(ROUTE:a:b)%";
  EXPECT_EQ(FormatOf(log).formatters_size(), 1);
  world_.profile.Set(Change::kFormattersBuiltIn);
  EXPECT_EQ(FormatOf(log).formatters_size(), 0);
}

TEST_F(LdsFileLogTest, AFileLeavesOutWhatIsEmptyWhereTheReleaseReadsThatItShould) {
  Log log;
  log.omit_empty = true;
  log.format.emplace().text = "%PROTOCOL%";
  EXPECT_FALSE(FormatOf(log).omit_empty_values());
  world_.profile.Set(Change::kOmitEmptyLogValues);
  EXPECT_TRUE(FormatOf(log).omit_empty_values());
  log.omit_empty = false;
  EXPECT_FALSE(FormatOf(log).omit_empty_values());
}

// istiod: "envoy" is the mesh's own log only as long as it says nothing else.
TEST_F(LdsFileLogTest, TheBuiltInLogThatLeavesOutWhatIsEmptyHasNotTheMeshsFormat) {
  Log log;
  log.path = "/dev/stdout";
  log.omit_empty = true;
  world_.mesh.access_log_format = "the mesh's";
  EXPECT_THAT(FormatOf(log, "envoy").text_format_source().inline_string(), HasSubstr("the mesh's"));
  world_.profile.Set(Change::kOmitEmptyLogValues);
  const auto format = FormatOf(log, "envoy");
  EXPECT_THAT(format.text_format_source().inline_string(), Not(HasSubstr("the mesh's")));
  EXPECT_TRUE(format.omit_empty_values());
}

TEST_F(LdsTelemetryTest, AListenersOwnLogIsOfConnectionsWithoutARouteAndHasTheUsersFilterToo) {
  config::Telemetry telemetry = Logs({"envoy"});
  telemetry.access_logging[0].filter = "response.code > 399";
  world_.AddTelemetry(telemetry);
  world_.mesh.access_log_file = "/legacy";
  Generate();
  const auto& logs = listeners_.at("virtualInbound").access_log();
  ASSERT_THAT(logs, SizeIs(1));
  ASSERT_THAT(logs[0].filter().and_filter().filters(), SizeIs(2));
  EXPECT_THAT(logs[0].filter().and_filter().filters(0).response_flag_filter().flags(), ElementsAre("NR"));
  EXPECT_EQ(logs[0].filter().and_filter().filters(1).extension_filter().name(),
            "envoy.access_loggers.extension_filters.cel");
  ASSERT_THAT(HttpOf(kOutbound).access_log(), SizeIs(1));
  ::envoy::extensions::access_loggers::file::v3::FileAccessLog file;
  ASSERT_TRUE(HttpOf(kOutbound).access_log(0).typed_config().UnpackTo(&file));
  EXPECT_EQ(file.path(), "/dev/stdout");
}

TEST_F(LdsTelemetryTest, ADisabledLogKeepsTheMeshsOwnAwayAndOneThatIsNoLogDoesNot) {
  world_.mesh.access_log_file = "/legacy";
  world_.AddTelemetry(Logs({"prometheus"}));
  Generate();
  EXPECT_EQ(HttpOf(kOutbound).access_log_size(), 1) << "prometheus logs nothing, so that older settings hold";
  config::Telemetry off = Logs({"envoy"});
  off.access_logging[0].disabled = true;
  world_.AddTelemetry(off);
  Generate();
  EXPECT_EQ(HttpOf(kOutbound).access_log_size(), 0);
}

TEST_F(LdsTelemetryTest, TheMeshsLogServiceHearsOfHttpTcpAndListeners) {
  world_.mesh.enable_envoy_access_log_service = true;
  Generate();
  EXPECT_EQ(HttpOf(kOutbound).access_log(0).name(), "envoy.access_loggers.http_grpc");
  EXPECT_EQ(listeners_.at("virtualOutbound").access_log(0).name(), "envoy.tcp_grpc_access_log");
  const auto tcp = Find<TcpProxyPb>(listeners_.at("240.0.0.2_5432"));
  ASSERT_TRUE(tcp);
  EXPECT_EQ(tcp->access_log(0).name(), "envoy.tcp_grpc_access_log");
}

// istiod: computedLoggingConfig lives as long as the Telemetries.
TEST_F(LdsTelemetryTest, ALogStaysWhenItsServiceGoesUntilATelemetryChangesAndATracerDoesNot) {
  ExtensionProvider als, zipkin;
  als.name = "als";
  als.telemetry = ExtensionProvider::GrpcAccessLog{
      .service = GenWorld::Host("web"), .port = 80, .log_name = "", .filter_state_objects = {}};
  zipkin.name = "zipkin";
  zipkin.telemetry = ExtensionProvider::Tracer{.service = GenWorld::Host("web"), .port = 80};
  world_.mesh.extension_providers = {als, zipkin};
  config::Telemetry telemetry = Logs({"als"});
  telemetry.tracing.emplace_back().providers = {"zipkin"};
  world_.AddTelemetry(telemetry);
  Environment env = world_.Env();
  PushRequest request;
  request.full = true;
  const PushContextRef first = PushContext::Create(env, nullptr, request, "1");
  const auto manager = [&](const PushContextRef& push) {
    Proxy proxy = world_.Connect(*push, "c1");
    for (const Resource& resource : MakeLdsGenerator()->Generate(proxy, {}, GenWorld::Request(push)).resources) {
      if (resource.name != "virtualInbound") continue;
      ListenerPb listener;
      EXPECT_TRUE(listener.ParseFromString(std::string(*resource.bytes)));
      return Find<Manager>(listener).value();
    }
    return Manager();
  };
  EXPECT_EQ(manager(first).access_log_size(), 1);
  EXPECT_TRUE(manager(first).has_tracing());
  world_.discovery.services.erase(world_.discovery.services.begin());
  request.configs_updated = {{ConfigKind::kServiceEntry, GenWorld::Host("web"), "shop"}};
  const PushContextRef second = PushContext::Create(env, first.get(), request, "2");
  EXPECT_EQ(manager(second).access_log_size(), 1);
  EXPECT_FALSE(manager(second).has_tracing());
  request.configs_updated = {{ConfigKind::kTelemetry, "any", "other"}};
  const PushContextRef third = PushContext::Create(env, second.get(), request, "3");
  EXPECT_EQ(manager(third).access_log_size(), 0);
}

TEST_F(LdsTelemetryTest, WithoutTelemetryIstiodsVariablesSayHowMuchIsTracedAndWhetherIstioHasTags) {
  world_.mesh.enable_tracing = true;
  Environment env = world_.Env();
  const auto tracing = [&] {
    PushRequest request;
    request.full = true;
    const PushContextRef push = PushContext::Create(env, nullptr, request, "1");
    Proxy proxy = world_.Connect(*push, "c1");
    for (const Resource& resource : MakeLdsGenerator()->Generate(proxy, {}, GenWorld::Request(push)).resources) {
      if (resource.name != "virtualInbound") continue;
      ListenerPb listener;
      EXPECT_TRUE(listener.ParseFromString(std::string(*resource.bytes)));
      return Find<Manager>(listener).value().tracing();
    }
    return Manager::Tracing();
  };
  EXPECT_EQ(tracing().random_sampling().value(), 1);
  EXPECT_GT(tracing().custom_tags_size(), 0);
  env.features.trace_sampling = 40;
  env.features.istio_tags = false;
  EXPECT_EQ(tracing().random_sampling().value(), 40);
  EXPECT_EQ(tracing().custom_tags_size(), 0);
}

TEST_F(LdsTelemetryTest, ATracersTagsAreSortedAmongThoseThatEveryProxyHas) {
  ExtensionProvider zipkin;
  zipkin.name = "zipkin";
  zipkin.telemetry = ExtensionProvider::Tracer{.service = GenWorld::Host("web"), .port = 80, .max_tag_length = 60};
  world_.mesh.extension_providers = {zipkin};
  config::Telemetry telemetry;
  auto& tracing = telemetry.tracing.emplace_back();
  tracing.providers = {"zipkin"};
  tracing.use_request_id_for_trace_sampling = false;
  using Tag = config::Telemetry::CustomTag;
  tracing.custom_tags = {
      {"a", {Tag::Kind::kLiteral, "v", "", ""}}, {"istio.mm", {Tag::Kind::kHeader, "", "x-h", "d"}}, {"none", {}}};
  world_.AddTelemetry(telemetry);
  Generate();
  const Manager manager = HttpOf(kOutbound);
  std::vector<std::string> tags;
  for (const auto& tag : manager.tracing().custom_tags()) tags.push_back(tag.tag());
  EXPECT_THAT(tags, ElementsAre("a", "istio.authorization.dry_run.allow_policy.name",
                                "istio.authorization.dry_run.allow_policy.result",
                                "istio.authorization.dry_run.deny_policy.name",
                                "istio.authorization.dry_run.deny_policy.result", "istio.canonical_revision",
                                "istio.canonical_service", "istio.mesh_id", "istio.mm", "istio.namespace"));
  EXPECT_EQ(manager.tracing().random_sampling().value(), 0) << "nothing said is nothing sampled";
  EXPECT_EQ(manager.tracing().max_path_tag_length().value(), 60u);
  ::envoy::config::trace::v3::ZipkinConfig config;
  ASSERT_TRUE(manager.tracing().provider().typed_config().UnpackTo(&config));
  EXPECT_EQ(config.collector_cluster(), "outbound|80||web.shop.svc.cluster.local");
}

TEST_F(LdsTelemetryTest, SkyWalkingMakesASpanOfEachAttempt) {
  ExtensionProvider walker;
  walker.name = "walker";
  walker.telemetry = ExtensionProvider::Tracer{
      .kind = ExtensionProvider::Tracer::Kind::kSkyWalking, .service = GenWorld::Host("web"), .port = 80};
  world_.mesh.extension_providers = {walker};
  config::Telemetry telemetry;
  telemetry.tracing.emplace_back().providers = {"walker"};
  world_.AddTelemetry(telemetry);
  Generate();
  const Manager manager = HttpOf(kOutbound);
  EXPECT_THAT(manager.http_filters(manager.http_filters_size() - 1).typed_config().value(), Not(IsEmpty()));
}

}  // namespace
}  // namespace wavetank::pilot
