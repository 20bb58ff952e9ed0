// Filters whose configuration comes by ECDS, over ADS. Envoy: source/common/filter/config_discovery_impl.cc
#include <string>

#include "envoy/config/core/v3/extension.pb.h"
#include "envoy/extensions/filters/http/lua/v3/lua.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/envoy/mesh.h"

namespace wavetank::envoysim::lab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kFilter[] = "sample.stats";
constexpr char kWasm[] = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";

constexpr char kLua[] = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua";

std::string Extension(const std::string& type_url) {
  envoy::config::core::v3::TypedExtensionConfig config;
  config.set_name(kFilter);
  config.mutable_typed_config()->set_type_url(type_url);
  return config.SerializeAsString();
}

// Answers get this header.
std::string Adds(const std::string& key) {
  envoy::extensions::filters::http::lua::v3::Lua lua;
  lua.mutable_default_source_code()->set_inline_string("function envoy_on_response(handle) handle:headers():add('" +
                                                       key + "', '1') end");
  envoy::config::core::v3::TypedExtensionConfig config;
  config.set_name(kFilter);
  config.mutable_typed_config()->PackFrom(lua);
  return config.SerializeAsString();
}

class ExtensionDiscovery : public ::testing::Test {
 protected:
  // As istiod asks for a WasmPlugin (pilot/pkg/networking/core/v1alpha3/extension/wasmplugin.go): for good, unless
  // `timeout` says otherwise.
  void WithFilter(const std::string& timeout = "0s", const std::string& type = kWasm) {
    const std::string filter = std::string(R"({"name": ")") + kFilter +
                               R"(", "config_discovery": {"config_source": {"ads": {}, "resource_api_version": "V3",
                                   "initial_fetch_timeout": ")" +
                               timeout + R"("}, "type_urls": [")" + type + R"("]}},)";
    const std::string hosts =
        std::string(
            R"([{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": ")") +
        std::string(kHelloCluster) + R"("}}]}])";
    mesh.sleep->ads->world[XdsType::kLds]["0.0.0.0_5000"] =
        HttpListenerWith("0.0.0.0_5000", "0.0.0.0:5000", hosts, filter);
  }
  void Give(const std::string& type_url) { mesh.sleep->ads->world[XdsType::kEcds][kFilter] = Extension(type_url); }
  // Without the fixture's own claim that all are live.
  void Begin() {
    for (auto& [name, proxy] : mesh.lab.proxies) {
      proxy->ads->automatic = true;
      proxy->envoy->Start();
    }
    mesh.lab.RunFor(500ms);
  }
  std::vector<std::string> Asked() const {
    std::vector<std::string> out;
    for (const AdsScript::Message& message : mesh.sleep->ads->log) {
      if (message.type == XdsType::kEcds && message.nonce.empty()) out = message.names;
    }
    return out;
  }
  std::string Error() const {
    std::string out;
    for (const AdsScript::Message& message : mesh.sleep->ads->log) {
      if (message.type == XdsType::kEcds && !message.error.empty()) out = message.error;
    }
    return out;
  }

  Mesh mesh;
};

TEST_F(ExtensionDiscovery, NobodyAsksWhereNoListenerHasSuchAFilter) {
  mesh.Start();
  EXPECT_THAT(Asked(), IsEmpty());
}

TEST_F(ExtensionDiscovery, IsAskedForByTheFiltersName) {
  WithFilter();
  Give(kWasm);
  mesh.Start();
  EXPECT_THAT(Asked(), ElementsAre(kFilter));
  EXPECT_EQ(mesh.Ask().record.code, 200);
}

TEST_F(ExtensionDiscovery, AListenerWarmsUntilItHasCome) {
  WithFilter();
  Begin();
  EXPECT_FALSE(mesh.sleep->envoy->live());
  Give(kWasm);
  mesh.sleep->ads->Push(XdsType::kEcds);
  mesh.lab.RunFor(100ms);
  EXPECT_TRUE(mesh.sleep->envoy->live());
}

TEST_F(ExtensionDiscovery, AListenerGoesOnWhenItsPatienceIsOver) {
  WithFilter("2s");
  Begin();
  EXPECT_FALSE(mesh.sleep->envoy->live());
  mesh.lab.RunFor(2s);
  EXPECT_TRUE(mesh.sleep->envoy->live());
}

// Measured (tests/oracles/envoy/cases/ecds.json): a refusal ends the waiting, too.
TEST_F(ExtensionDiscovery, AConfigurationOfAnotherTypeIsRejectedAndRequestsGet500) {
  WithFilter();
  Give(kLua);
  Begin();
  EXPECT_TRUE(mesh.sleep->envoy->live());
  EXPECT_EQ(Error(),
            "Error: filter config has type URL envoy.extensions.filters.http.lua.v3.Lua but expect "
            "envoy.extensions.filters.http.wasm.v3.Wasm.");
  const auto answered = mesh.Ask();
  EXPECT_EQ(answered.record.code, 500);
  EXPECT_EQ(answered.record.flags, ResponseFlags{kNoFilterConfigFound});
}

TEST_F(ExtensionDiscovery, WhatComesRunsInItsPlaceAndWhatComesLaterForLaterRequests) {
  WithFilter("0s", kLua);
  mesh.sleep->ads->world[XdsType::kEcds][kFilter] = Adds("x-one");
  mesh.Start();
  EXPECT_THAT(std::string(mesh.Ask().record.headers), HasSubstr("x-one: 1"));
  mesh.sleep->ads->world[XdsType::kEcds][kFilter] = Adds("x-two");
  mesh.sleep->ads->Push(XdsType::kEcds);
  mesh.lab.RunFor(100ms);
  EXPECT_THAT(std::string(mesh.Ask().record.headers), AllOf(HasSubstr("x-two: 1"), Not(HasSubstr("x-one"))));
}

}  // namespace
}  // namespace wavetank::envoysim::lab
