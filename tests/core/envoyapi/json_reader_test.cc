#include "core/envoyapi/json_reader.h"

#include <string>

#include "core/envoyapi/descriptors.h"
#include "core/envoyapi/merge.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/listener/v3/listener_components.pb.h"
#include "envoy/config/route/v3/route_components.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Cluster = ::envoy::config::cluster::v3::Cluster;
using Filter = ::envoy::config::listener::v3::Filter;
using Route = ::envoy::config::route::v3::Route;

template <typename T>
T Read(const char* json) {
  T out;
  const absl::Status status = ReadEnvoyJson(nlohmann::json::parse(json), out);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}
template <typename T>
std::string WrongWith(const char* json) {
  T out;
  return std::string(ReadEnvoyJson(nlohmann::json::parse(json), out).message());
}

TEST(EnvoyJsonTest, NamesAreThoseOfTheApiOrInLowerCamelCase) {
  const auto cluster = Read<Cluster>(R"({"connect_timeout": "1.5s", "lbPolicy": "RANDOM", "nobodyKnows": [1]})");
  EXPECT_EQ(cluster.connect_timeout().seconds(), 1);
  EXPECT_EQ(cluster.connect_timeout().nanos(), 500'000'000);
  EXPECT_EQ(cluster.lb_policy(), Cluster::RANDOM);
}

TEST(EnvoyJsonTest, DurationsAreGosNumbersMayBeQuotedAndWrappersArePlain) {
  const auto cluster = Read<Cluster>(R"({"connect_timeout": "1h0m2s", "per_connection_buffer_limit_bytes": "1000",
      "lb_policy": 3, "outlier_detection": {"consecutive_5xx": 3.0}, "dns_refresh_rate": null})");
  EXPECT_EQ(cluster.connect_timeout().seconds(), 3602);
  EXPECT_EQ(cluster.per_connection_buffer_limit_bytes().value(), 1000u);
  EXPECT_EQ(cluster.lb_policy(), Cluster::RANDOM);
  EXPECT_EQ(cluster.outlier_detection().consecutive_5xx().value(), 3u);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  EXPECT_FALSE(cluster.has_dns_refresh_rate());
#pragma GCC diagnostic pop
}

TEST(EnvoyJsonTest, OfAOneofTheFieldThatTheApiDeclaresLastWins) {
  const auto route = Read<Route>(R"({"direct_response": {"status": 200}, "redirect": {}, "route": {"cluster": "c"}})");
  EXPECT_EQ(route.action_case(), Route::kDirectResponse);
}

TEST(EnvoyJsonTest, StructsKeepWhatJsonCanSay) {
  const auto cluster =
      Read<Cluster>(R"({"metadata": {"filter_metadata": {"x": {"n": null, "l": [true, 1.5, "t", {}]}}}})");
  const auto& x = cluster.metadata().filter_metadata().at("x").fields();
  EXPECT_EQ(x.at("n").kind_case(), google::protobuf::Value::kNullValue);
  ASSERT_EQ(x.at("l").list_value().values_size(), 4);
  EXPECT_EQ(x.at("l").list_value().values(1).number_value(), 1.5);
}

TEST(EnvoyJsonTest, AnAnyMayBeOfATypeThatNoCodeHereKnows) {
  const auto filter = Read<Filter>(R"({"name": "f", "typed_config": {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua", "inline_code": "x"}})");
  const auto lua = NewEnvoyMessage(filter.typed_config().type_url());
  ASSERT_NE(lua, nullptr);
  ASSERT_TRUE(lua->ParseFromString(filter.typed_config().value()));
  EXPECT_THAT(lua->ShortDebugString(), HasSubstr("inline_code: \"x\""));
  // Also one of Envoy's former API, of Istio's own, and a wrapper, whose content is its value.
  for (const char* type :
       {"envoy.config.filter.http.buffer.v2.Buffer", "istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig",
        "google.protobuf.StringValue"}) {
    EXPECT_NE(NewEnvoyMessage(type), nullptr) << type;
  }
  const auto wrapped = Read<Filter>(R"({"typed_config": {"@type": "x/google.protobuf.StringValue", "value": "text"}})");
  EXPECT_EQ(wrapped.typed_config().value(), "\x0a\x04text");
}

TEST(EnvoyJsonTest, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(WrongWith<Cluster>(R"({"connect_timeout": 5})"), "connect_timeout: expected a duration");
  EXPECT_EQ(WrongWith<Cluster>(R"({"lb_policy": "BEST"})"),
            "lb_policy: no value of envoy.config.cluster.v3.Cluster.LbPolicy");
  EXPECT_EQ(WrongWith<Cluster>(R"({"health_checks": [{"timeout": "x"}]})"),
            "health_checks[0].timeout: expected a duration");
  EXPECT_EQ(WrongWith<Cluster>(R"({"outlier_detection": {"consecutive_5xx": 1.5}})"),
            "outlier_detection.consecutive_5xx: expected a number");
  EXPECT_EQ(WrongWith<Filter>(R"({"typed_config": {"@type": "x/no.Such"}})"),
            "typed_config: no type x/no.Such is known");
  EXPECT_EQ(WrongWith<Filter>(R"({"typed_config": {}})"), "typed_config: @type is missing");
  EXPECT_EQ(WrongWith<Filter>(R"({"name": 1})"), "name: expected text");
  EXPECT_EQ(WrongWith<Filter>(R"([])"), "value: expected a mapping");
}

TEST(EnvoyMergeTest, ListsGrowMessagesMergeAndDurationsAreReplaced) {
  auto cluster = Read<Cluster>(R"({"name": "c", "connect_timeout": "1.5s", "health_checks": [{"timeout": "1s"}],
      "circuit_breakers": {"thresholds": [{"max_retries": 1}]}, "common_lb_config": {"update_merge_window": "0.5s"},
      "metadata": {"filter_metadata": {"a": {"x": 1}, "b": {"y": 1}}}})");
  MergeEnvoyMessage(Read<Cluster>(R"({"connect_timeout": "5s", "health_checks": [{"timeout": "2s"}],
      "common_lb_config": {"update_merge_window": "3s", "close_connections_on_host_set_change": true},
      "metadata": {"filter_metadata": {"a": {"z": 1}}}})"),
                    cluster);
  EXPECT_EQ(cluster.name(), "c");
  EXPECT_EQ(cluster.connect_timeout().seconds(), 5);
  EXPECT_EQ(cluster.connect_timeout().nanos(), 0) << "not 5.5 s";
  EXPECT_EQ(cluster.common_lb_config().update_merge_window().nanos(), 0);
  EXPECT_TRUE(cluster.common_lb_config().close_connections_on_host_set_change());
  EXPECT_EQ(cluster.health_checks_size(), 2);
  EXPECT_EQ(cluster.circuit_breakers().thresholds_size(), 1);
  const auto& metadata = cluster.metadata().filter_metadata();
  EXPECT_EQ(metadata.size(), 2u);
  EXPECT_FALSE(metadata.at("a").fields().contains("x")) << "an entry is replaced";
}

TEST(EnvoyMergeTest, AnysMergeByTheirTypeOrNotAtAll) {
  const auto any = [](const char* json) { return Read<Filter>(json).typed_config(); };
  auto into = any(R"({"typed_config": {"@type": "x/envoy.extensions.filters.http.lua.v3.Lua", "inline_code": "x",
      "stat_prefix": "s"}})");
  const auto from =
      any(R"({"typed_config": {"@type": "x/envoy.extensions.filters.http.lua.v3.Lua", "inline_code": "y"}})");
  EXPECT_EQ(MergeAny(from, into), MergeResult::kMerged);
  const auto lua = NewEnvoyMessage(into.type_url());
  ASSERT_TRUE(lua->ParseFromString(into.value()));
  EXPECT_THAT(lua->ShortDebugString(), HasSubstr("\"y\""));
  EXPECT_THAT(lua->ShortDebugString(), HasSubstr("stat_prefix: \"s\""));

  const auto other = any(R"({"typed_config": {"@type": "x/envoy.extensions.filters.http.buffer.v3.Buffer"}})");
  const std::string before = into.SerializeAsString();
  EXPECT_EQ(MergeAny(other, into), MergeResult::kDifferentTypes);
  google::protobuf::Any unknown;
  unknown.set_type_url("x/no.Such");
  EXPECT_EQ(MergeAny(unknown, into), MergeResult::kUnreadable);
  EXPECT_EQ(into.SerializeAsString(), before);
}

}  // namespace
}  // namespace wavetank::pilot
