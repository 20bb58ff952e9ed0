#include "core/gen/extensions/wasm_filters.h"

#include "core/base/json_text.h"
#include "core/gen/extensions/ecds.h"
#include "core/gen/lds/lds.h"
#include "core/profile/changes.h"
#include "envoy/config/core/v3/extension.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/filters/http/wasm/v3/wasm.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/wrappers.pb.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Plugin = config::WasmPlugin;
using Manager = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;

class SomeSecrets final : public PullSecrets {
 public:
  bool Knows(const std::string& cluster) const override { return cluster == "c1"; }
  std::optional<std::string> DockerCredential(const std::string&, std::string_view ns,
                                              std::string_view name) const override {
    if (ns == "shop" && name == "pull") return "{}";
    return std::nullopt;
  }
};

class WasmFiltersTest : public ::testing::Test {
 protected:
  static Plugin At(Plugin::Phase phase, std::optional<int64_t> priority = std::nullopt) {
    Plugin out;
    out.url = "oci://registry.example/plugin:1";
    out.phase = phase;
    out.priority = priority;
    return out;
  }
  Proxy Connect(NodeType type = NodeType::kSidecarProxy) {
    push_ = world_.Push();
    return world_.Connect(*push_, "c1", type, {{"app", "web"}});
  }
  // Names of filters of all phases in their order.
  std::vector<std::string> Names(ListenerClass listener_class, int port = 80) {
    const Proxy proxy = Connect();
    WasmFilters filters(proxy, *push_);
    const int set = filters.SetFor(listener_class, port);
    Manager manager;
    for (const auto phase :
         {Plugin::Phase::kAuthn, Plugin::Phase::kAuthz, Plugin::Phase::kStats, Plugin::Phase::kUnspecified}) {
      EXPECT_TRUE(manager.MergeFromString(filters.Of(set, phase)));
    }
    std::vector<std::string> out;
    for (const auto& filter : manager.http_filters()) out.push_back(filter.name());
    return out;
  }
  GeneratedResources Extensions(const std::vector<std::string>& names, const std::set<ConfigKey>& updated = {},
                                const std::string& identity = "spiffe://cluster.local/ns/shop/sa/web",
                                const std::string& cluster = "c1") {
    Proxy proxy = Connect();
    proxy.metadata.cluster_id = ClusterId(cluster);
    proxy.verified_identity = identity;
    proxy.metadata.istio_version = version_;
    PushRequest request = world_.Request(push_);
    request.configs_updated = updated;
    return MakeEcdsGenerator(&secrets_)->Generate(proxy, {.type = XdsType::kEcds, .resource_names = names}, request);
  }
  // The environment of the only extension's machine.
  static std::map<std::string, std::string> Environment(const GeneratedResources& out) {
    const auto values = Read(out).config().vm_config().environment_variables().key_values();
    return {values.begin(), values.end()};
  }
  static ::envoy::extensions::filters::http::wasm::v3::Wasm Read(const GeneratedResources& out) {
    ::envoy::config::core::v3::TypedExtensionConfig extension;
    ::envoy::extensions::filters::http::wasm::v3::Wasm wasm;
    EXPECT_EQ(out.resources.size(), 1u);
    EXPECT_TRUE(extension.ParseFromString(std::string(*out.resources[0].bytes)));
    EXPECT_EQ(extension.name(), out.resources[0].name);
    EXPECT_TRUE(extension.typed_config().UnpackTo(&wasm));
    return wasm;
  }

  // By reflection, as today's Envoy API calls it deprecated.
  static bool FailsOpen(const ::envoy::extensions::filters::http::wasm::v3::Wasm& wasm) {
    const auto& config = wasm.config();
    return config.GetReflection()->GetBool(config, config.GetDescriptor()->FindFieldByName("fail_open"));
  }

  GenWorld world_;
  PushContextRef push_;
  SomeSecrets secrets_;
  std::string version_;  // of the proxy
};

TEST_F(WasmFiltersTest, HigherPriorityComesFirstAndNoneLast) {
  world_.AddWasmPlugin(At(Plugin::Phase::kAuthn), "none");
  world_.AddWasmPlugin(At(Plugin::Phase::kAuthn, -5), "low");
  world_.AddWasmPlugin(At(Plugin::Phase::kAuthn, 10), "high");
  world_.AddWasmPlugin(At(Plugin::Phase::kAuthn, 10), "root", "istio-system");
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound),
              ElementsAre("istio-system.root", "shop.high", "shop.low", "shop.none"));
}

TEST_F(WasmFiltersTest, OthersNamespacesAndWorkloadsHaveTheirOwn) {
  world_.AddWasmPlugin(At(Plugin::Phase::kStats), "theirs", "bank");
  Plugin elsewhere = At(Plugin::Phase::kStats);
  elsewhere.selector = Labels{{"app", "other"}};
  world_.AddWasmPlugin(elsewhere, "elsewhere");
  Plugin here = At(Plugin::Phase::kStats);
  here.selector = Labels{{"app", "web"}};
  world_.AddWasmPlugin(here, "here");
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound), ElementsAre("shop.here"));
}

TEST_F(WasmFiltersTest, MatchesChooseListenersByModeAndPort) {
  Plugin server = At(Plugin::Phase::kUnspecified);
  server.match = {{Plugin::Mode::kServer, {80, 81}}};
  world_.AddWasmPlugin(server, "server");
  Plugin client = At(Plugin::Phase::kUnspecified);
  client.match = {{Plugin::Mode::kClient, {}}, {Plugin::Mode::kServer, {9}}};
  world_.AddWasmPlugin(client, "client");
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound, 80), ElementsAre("shop.server"));
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound, 82), IsEmpty());
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound, 9), ElementsAre("shop.client"));
  EXPECT_THAT(Names(ListenerClass::kSidecarOutbound, 80), ElementsAre("shop.client"));
  EXPECT_THAT(Names(ListenerClass::kGateway, 80), ElementsAre("shop.client"));
}

TEST_F(WasmFiltersTest, PluginWhoseUrlIsNoneIsNotThere) {
  Plugin broken = At(Plugin::Phase::kAuthn);
  broken.url = "10.0.0.1:5000/plugin";
  world_.AddWasmPlugin(broken);
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound), IsEmpty());
  EXPECT_THAT(Extensions({"shop.plugin"}).resources, IsEmpty());
}

TEST_F(WasmFiltersTest, StockEnvoyGetsNone) {
  world_.profile.Set(Change::kUpstreamEnvoy);
  world_.AddWasmPlugin(At(Plugin::Phase::kAuthn));
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound), IsEmpty());
}

TEST_F(WasmFiltersTest, ListenersHaveThePluginsOfTheirPorts) {
  world_.AddService("web");
  Plugin plugin = At(Plugin::Phase::kAuthz);
  plugin.match = {{Plugin::Mode::kClient, {80}}};
  world_.AddWasmPlugin(plugin);
  world_.AddService("other", "shop", {"http", 81, Protocol::kHttp});
  const Proxy proxy = Connect();
  const GeneratedResources out = MakeLdsGenerator()->Generate(proxy, {.type = XdsType::kLds}, world_.Request(push_));
  std::map<std::string, std::string> first;  // filter, by listener
  for (const Resource& resource : out.resources) {
    ::envoy::config::listener::v3::Listener listener;
    ASSERT_TRUE(listener.ParseFromString(std::string(*resource.bytes)));
    for (const auto& chain : listener.filter_chains()) {
      Manager manager;
      if (!chain.filters(0).typed_config().UnpackTo(&manager)) continue;
      first[listener.name()] = manager.http_filters(1).name();
    }
  }
  EXPECT_THAT(first, Contains(Pair("0.0.0.0_80", "shop.plugin")));
  EXPECT_THAT(first, Contains(Pair("0.0.0.0_81", Not("shop.plugin"))));
}

TEST_F(WasmFiltersTest, ConfigurationNamesModuleAndItsEnvironment) {
  Plugin plugin = At(Plugin::Phase::kUnspecified);
  plugin.plugin_name = "root-id";
  plugin.plugin_config = ParseJson(R"({"a":1})");
  plugin.sha256 = "abc";
  plugin.image_pull_policy = Plugin::PullPolicy::kAlways;
  plugin.env = {{"OWN", "1", false}, {"HOST_S", "", true}};
  world_.AddWasmPlugin(plugin);
  const GeneratedResources out = Extensions({"shop.plugin"});
  const auto config = Read(out).config();
  EXPECT_EQ(config.name(), "shop.plugin");
  EXPECT_EQ(config.root_id(), "root-id");
  google::protobuf::StringValue text;
  ASSERT_TRUE(config.configuration().UnpackTo(&text));
  EXPECT_EQ(text.value(), R"({"a":1})");
  const auto& remote = config.vm_config().code().remote();
  EXPECT_EQ(remote.http_uri().uri(), "oci://registry.example/plugin:1");
  EXPECT_EQ(remote.sha256(), "abc");
  EXPECT_THAT(config.vm_config().environment_variables().host_env_keys(), ElementsAre("HOST_S"));
  EXPECT_THAT(Environment(out),
              UnorderedElementsAre(Pair("ISTIO_META_WASM_IMAGE_PULL_POLICY", "Always"),
                                   Pair("ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION", "7"), Pair("OWN", "1")));
}

TEST_F(WasmFiltersTest, NamesAreThoseOfTheRelease) {
  world_.AddWasmPlugin(At(Plugin::Phase::kAuthn));
  world_.profile.Set(Change::kWasmNamesPrefixed);
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound), ElementsAre("extenstions.istio.io/wasmplugin/shop.plugin"));
  world_.profile.Set(Change::kWasmNamesSpelt);
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound), ElementsAre("extensions.istio.io/wasmplugin/shop.plugin"));
  EXPECT_EQ(Read(Extensions({"extensions.istio.io/wasmplugin/shop.plugin"})).config().name(), "shop.plugin");
  world_.profile.Set(Change::kTrafficExtensions);
  const std::string name = "extensions.istio.io/trafficextension/shop.plugin~istio-translated-wasmplugin";
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound), ElementsAre(name));
  EXPECT_EQ(Read(Extensions({name})).config().name(), "shop.plugin~istio-translated-wasmplugin");
  EXPECT_THAT(Extensions({"shop.plugin"}).resources, IsEmpty());
}

TEST_F(WasmFiltersTest, OfOnePriorityTheWorkloadsNamespaceComesFirstSinceTheReleaseThatSaysSo) {
  world_.AddWasmPlugin(At(Plugin::Phase::kAuthn), "own");
  world_.AddWasmPlugin(At(Plugin::Phase::kAuthn), "root", "istio-system");
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound), ElementsAre("istio-system.root", "shop.own"));
  world_.profile.Set(Change::kOwnWasmFirst);
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound), ElementsAre("shop.own", "istio-system.root"));
}

TEST_F(WasmFiltersTest, ModuleThatFailsOpenIsToldSoSinceTheReleaseThatTellsIt) {
  Plugin open = At(Plugin::Phase::kAuthn);
  open.fail_strategy = Plugin::FailStrategy::kOpen;
  world_.AddWasmPlugin(open);
  EXPECT_FALSE(FailsOpen(Read(Extensions({"shop.plugin"})))) << "1.18 says nothing";
  world_.profile.Set(Change::kWasmFailOpen);
  EXPECT_TRUE(FailsOpen(Read(Extensions({"shop.plugin"}))));
  world_.AddWasmPlugin(At(Plugin::Phase::kAuthn));
  EXPECT_FALSE(FailsOpen(Read(Extensions({"shop.plugin"})))) << "it closes by itself";
}

TEST_F(WasmFiltersTest, WhatAFailureDoesIsAPolicyForProxiesThatHaveIt) {
  namespace wasm = ::envoy::extensions::wasm::v3;
  using Strategy = Plugin::FailStrategy;
  world_.profile.Set(Change::kWasmFailOpen);
  world_.profile.Set(Change::kWasmFailurePolicy);
  for (const auto& [strategy, policy] :
       {std::pair(Strategy::kOpen, wasm::FAIL_OPEN), std::pair(Strategy::kClose, wasm::FAIL_CLOSED),
        std::pair(Strategy::kReload, wasm::FAIL_RELOAD)}) {
    Plugin plugin = At(Plugin::Phase::kAuthn);
    plugin.fail_strategy = strategy;
    world_.AddWasmPlugin(plugin);
    version_ = "1.25.0";
    const auto newer = Read(Extensions({"shop.plugin"}));
    EXPECT_EQ(newer.config().failure_policy(), policy);
    EXPECT_FALSE(FailsOpen(newer));
    version_ = "1.24.6";
    const auto older = Read(Extensions({"shop.plugin"}));
    EXPECT_EQ(older.config().failure_policy(), wasm::UNSPECIFIED);
    EXPECT_EQ(FailsOpen(older), strategy == Strategy::kOpen);
  }
}

TEST_F(WasmFiltersTest, PluginOfConnectionsStandsBeforeWhatEndsThem) {
  using Chain = ::envoy::config::listener::v3::Listener;
  world_.AddService("web");
  world_.AddService("db", "shop", {"tcp", 5432, Protocol::kTcp})->default_address = "240.0.0.2";
  Plugin plugin = At(Plugin::Phase::kAuthz);
  plugin.network = true;
  world_.AddWasmPlugin(plugin);
  const auto first = [&](const std::string& listener) {
    const Proxy proxy = Connect();
    for (const Resource& resource :
         MakeLdsGenerator()->Generate(proxy, {.type = XdsType::kLds}, world_.Request(push_)).resources) {
      Chain read;
      if (resource.name != listener || !read.ParseFromString(std::string(*resource.bytes))) continue;
      return read.filter_chains(0).filters(0).name();
    }
    return std::string("no listener");
  };
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound), ElementsAre("shop.plugin")) << "1.18 knows no types";
  world_.profile.Set(Change::kNetworkWasm);
  EXPECT_THAT(Names(ListenerClass::kSidecarInbound), IsEmpty());
  EXPECT_EQ(first("0.0.0.0_80"), "shop.plugin");
  EXPECT_EQ(first("240.0.0.2_5432"), "shop.plugin");
  const GeneratedResources out = Extensions({"shop.plugin"});
  ASSERT_EQ(out.resources.size(), 1u);
  ::envoy::config::core::v3::TypedExtensionConfig extension;
  ASSERT_TRUE(extension.ParseFromString(std::string(*out.resources[0].bytes)));
  EXPECT_EQ(extension.typed_config().type_url(), "type.googleapis.com/envoy.extensions.filters.network.wasm.v3.Wasm");
}

TEST_F(WasmFiltersTest, ModuleMayBeAFileOfTheProxys) {
  Plugin plugin = At(Plugin::Phase::kUnspecified);
  plugin.url = "file:///opt/plugin.wasm";
  world_.AddWasmPlugin(plugin);
  EXPECT_EQ(Read(Extensions({"shop.plugin"})).config().vm_config().code().local().filename(), "/opt/plugin.wasm");
}

TEST_F(WasmFiltersTest, CredentialGoesToAuthenticatedProxiesOnly) {
  const auto credential = [&](const std::string& name, const std::string& identity = "spiffe://x/ns/shop/sa/web") {
    Plugin plugin = At(Plugin::Phase::kUnspecified);
    plugin.image_pull_secret = name;
    world_.AddWasmPlugin(plugin);
    const auto environment = Environment(Extensions({"shop.plugin"}, {}, identity));
    const auto it = environment.find("ISTIO_META_WASM_IMAGE_PULL_SECRET");
    return it == environment.end() ? "none" : it->second;
  };
  EXPECT_EQ(credential("pull"), "{}");
  EXPECT_EQ(credential("kubernetes://bank/pull"), "{}") << "always of the plugin's namespace";
  EXPECT_EQ(credential("pull", ""), "");
  EXPECT_EQ(credential("missing"), "");
  EXPECT_EQ(credential("kubernetes-gateway://shop/pull"), "");
  EXPECT_EQ(credential("builtin://"), "none");
  EXPECT_EQ(credential(""), "none");
}

TEST_F(WasmFiltersTest, OnlySecretsThatPluginsNameCauseAnAnswer) {
  Plugin plugin = At(Plugin::Phase::kUnspecified);
  plugin.image_pull_secret = "pull";
  world_.AddWasmPlugin(plugin);
  EXPECT_TRUE(Extensions({"shop.plugin"}, {{ConfigKind::kSecret, "pull", "shop"}}).send);
  EXPECT_FALSE(Extensions({"shop.plugin"}, {{ConfigKind::kSecret, "pull", "bank"}}).send);
  EXPECT_FALSE(Extensions({"shop.other"}, {{ConfigKind::kSecret, "pull", "shop"}}).send);
  EXPECT_FALSE(Extensions({"shop.plugin"}, {{ConfigKind::kServiceEntry, "web", "shop"}}).send);
  EXPECT_TRUE(Extensions({"shop.plugin"}, {{ConfigKind::kWasmPlugin, "plugin", "shop"}}).send);
  EXPECT_FALSE(Extensions({"shop.plugin"}, {}, "spiffe://x/ns/shop/sa/web", "unknown").send) << "no such cluster";
}

}  // namespace
}  // namespace wavetank::pilot
