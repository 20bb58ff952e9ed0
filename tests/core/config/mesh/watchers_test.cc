#include "core/config/mesh/mesh_watcher.h"
#include "core/registry/crd_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"
#include "tests/core/config/yaml_config.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class RecordingUpdater final : public pilot::XdsUpdater {
 public:
  void EdsUpdate(const pilot::ShardKey&, std::string_view, std::string_view, pilot::EndpointList) override {}
  void EdsCacheUpdate(const pilot::ShardKey&, std::string_view, std::string_view, pilot::EndpointList) override {}
  void SvcUpdate(const pilot::ShardKey&, std::string_view, std::string_view, pilot::Event) override {}
  void ConfigUpdate(pilot::PushRequest request) override {
    EXPECT_TRUE(request.full);
    for (const pilot::ConfigKey& key : request.configs_updated) {
      updates.push_back(std::string(ConfigKindName(key.kind)) + "/" + key.ns + "/" + key.name);
    }
  }
  void ProxyUpdate(const pilot::ClusterId&, std::string_view) override {}
  void RemoveShard(const pilot::ShardKey&) override {}
  std::vector<std::string> updates;
};

class WatchersTest : public ::testing::Test {
 protected:
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }
  void Put(const std::string& yaml) { client.Put(kube::ParseYaml(yaml, "test.yaml").value()); }
  void PutMesh(nlohmann::json data) {
    client.Put({{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"metadata", {{"name", "istio"}, {"namespace", "istio-system"}}},
                {"data", std::move(data)}});
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  ConfigStore store;
  RecordingUpdater updater;
};

TEST_F(WatchersTest, WhatIsThereAtTheStartIsInTheStoreOnceSynced) {
  Put(ConfigYaml("DestinationRule", "ns", "dr", "host: a"));
  Put(ConfigYaml("ServiceEntry", "ns", "se", "hosts: [a]"));
  CrdClient crds(client, host, store, updater, {});
  bool synced = false;
  crds.OnSynced([&] { synced = true; });
  crds.Start();
  EXPECT_FALSE(crds.HasSynced());
  Run(1s);
  EXPECT_TRUE(synced && crds.HasSynced());
  EXPECT_EQ(store.DestinationRules().size(), 1u);
  EXPECT_EQ(store.ServiceEntries().size(), 1u);
  EXPECT_THAT(updater.updates, ElementsAre("DestinationRule/ns/dr")) << "ServiceEntries are their registry's to push";
}

TEST_F(WatchersTest, ChangesOfSpecPushAndChangesOfStatusDoNot) {
  CrdClient crds(client, host, store, updater, {});
  crds.Start();
  Run(1s);
  Put(ConfigYaml("Gateway", "ns", "gw", "selector: {a: b}"));
  Run(1s);
  Put(ConfigYaml("Gateway", "ns", "gw", "selector: {a: b}") + "status: {x: 1}\n");
  Run(1s);
  EXPECT_THAT(updater.updates, ElementsAre("Gateway/ns/gw"));
  Put(ConfigYaml("Gateway", "ns", "gw", "selector: {a: c}"));
  Run(1s);
  client.Remove(kube::kinds::kGateway, "ns", "gw");
  Run(1s);
  EXPECT_THAT(updater.updates, ElementsAre("Gateway/ns/gw", "Gateway/ns/gw", "Gateway/ns/gw"));
  EXPECT_THAT(store.Gateways(), IsEmpty());
}

TEST_F(WatchersTest, AKindThatNobodyReadsPushesUnderItsOwnName) {
  CrdClient crds(client, host, store, updater, {});
  crds.Start();
  Run(1s);
  Put("apiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: t, namespace: ns}\n");
  Put("apiVersion: extensions.istio.io/v1alpha1\nkind: WasmPlugin\nmetadata: {name: p, namespace: ns}\n");
  Run(1s);
  EXPECT_THAT(updater.updates, UnorderedElementsAre("ProxyConfig/ns/t", "WasmPlugin/ns/p"));
  EXPECT_EQ(crds.Raw(pilot::ConfigKind::kProxyConfig).size(), 1u);
  EXPECT_EQ(store.WasmPlugins().size(), 1u);
}

TEST_F(WatchersTest, AnObjectOfAnotherRevisionDoesNotExist) {
  CrdClient crds(client, host, store, updater, {.revision = "canary"});
  crds.Start();
  Run(1s);
  const auto with_revision = [](const std::string& revision) {
    std::string yaml = ConfigYaml("Sidecar", "ns", "sc", "");
    return yaml.replace(yaml.find("  name:"), 0, "  labels: {istio.io/rev: " + revision + "}\n");
  };
  Put(with_revision("stable"));
  Run(1s);
  EXPECT_THAT(updater.updates, IsEmpty());
  Put(with_revision("canary"));
  Run(1s);
  EXPECT_EQ(store.Sidecars().size(), 1u);
  Put(with_revision("stable"));
  Run(1s);
  EXPECT_EQ(store.Sidecars().size(), 0u);
  EXPECT_THAT(updater.updates, ElementsAre("Sidecar/ns/sc", "Sidecar/ns/sc"));
}

TEST_F(WatchersTest, AnUnreadableObjectLeavesItsLastStateAndIsNamed) {
  CrdClient crds(client, host, store, updater, {});
  crds.Start();
  Run(1s);
  Put(ConfigYaml("DestinationRule", "ns", "dr", "host: a"));
  Run(1s);
  Put(ConfigYaml("DestinationRule", "ns", "dr", "host: [a]"));
  Run(1s);
  EXPECT_EQ(store.DestinationRules()[0]->spec.host, "a");
  EXPECT_TRUE(crds.unreadable().contains("DestinationRule/ns/dr"));
  Put(ConfigYaml("DestinationRule", "ns", "dr", "host: b"));
  Run(1s);
  EXPECT_THAT(crds.unreadable(), IsEmpty());
}

TEST_F(WatchersTest, MeshConfigFollowsTheConfigMap) {
  MeshWatcher watcher(client, host, "istio-system");
  std::vector<std::string> log;
  watcher.AddMeshHandler([&] { log.push_back("mesh " + watcher.mesh()->trust_domain); });
  watcher.AddNetworksHandler([&] { log.push_back("networks"); });
  watcher.Start();
  Run(1s);
  EXPECT_TRUE(watcher.HasSynced());
  EXPECT_THAT(log, IsEmpty());
  PutMesh({{"mesh", "trustDomain: td"}, {"meshNetworks", "networks: {}"}});
  Run(1s);
  EXPECT_THAT(log, ElementsAre("networks", "mesh td"));
  client.Remove(kube::kinds::kConfigMap, "istio-system", "istio");
  Run(1s);
  EXPECT_EQ(watcher.mesh()->trust_domain, "cluster.local");
  EXPECT_NE(watcher.networks(), nullptr);
}

// istiod: meshwatcher/collection.go; a real 1.30.3 had the ranges of a deleted ConfigMap no more.
TEST_F(WatchersTest, MeshNetworksGoWithTheirKeyWhereTheReleaseLetsThem) {
  MeshWatcher watcher(client, host, "istio-system");
  watcher.LetNetworksGo();
  int told = 0;
  watcher.AddNetworksHandler([&] { ++told; });
  watcher.Start();
  PutMesh({{"mesh", ""}, {"meshNetworks", "networks: {}"}});
  Run(1s);
  ASSERT_NE(watcher.networks(), nullptr);
  PutMesh({{"mesh", ""}});
  Run(1s);
  EXPECT_EQ(watcher.networks(), nullptr);
  EXPECT_EQ(told, 2);
}

// So did a real 1.30.3; 1.18.2 refuses the ConfigMap.
TEST_F(WatchersTest, BadMeshNetworksLeaveTheMeshConfigAloneWhereTheReleaseReadsThemApart) {
  const auto domain = [&](bool apart) {
    MeshWatcher watcher(client, host, "istio-system");
    if (apart) watcher.LetNetworksGo();
    watcher.Start();
    PutMesh({{"mesh", "trustDomain: td"}, {"meshNetworks", "networks: {n: {endpoints: [{fromCidr: junk}]}}"}});
    Run(1s);
    EXPECT_EQ(watcher.networks(), nullptr);
    EXPECT_FALSE(watcher.status().ok());
    return watcher.mesh()->trust_domain;
  };
  EXPECT_EQ(domain(false), "cluster.local");
  EXPECT_EQ(domain(true), "td");
}

// As a recorded istiod 1.18.2 prints them, empty messages over three lines included.
TEST_F(WatchersTest, WhatIsReadIsLoggedAsIstiodPrintsIt) {
  MeshWatcher watcher(client, host, "istio-system");
  std::vector<std::string> lines;
  watcher.log = [&](const LogLine& line) { lines.push_back(line.text); };
  watcher.Start();
  Run(1s);
  EXPECT_THAT(lines, IsEmpty()) << "nothing is said of a ConfigMap that is not there";
  const std::string networks =
      "networks: {n2: {endpoints: [{fromRegistry: c2}], gateways: [{address: 192.0.2.1, port: 443}]}}";
  PutMesh({{"mesh", "trustDomain: td"}, {"meshNetworks", networks}});
  Run(1s);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "Loaded MeshNetworks config from Kubernetes API server.");
  EXPECT_EQ(lines[1], R"(mesh networks configuration updated to: {
    "networks": {
        "n2": {
            "endpoints": [
                {
                    "fromRegistry": "c2"
                }
            ],
            "gateways": [
                {
                    "address": "192.0.2.1",
                    "port": 443
                }
            ]
        }
    }
})");
  EXPECT_EQ(lines[2], "Loaded MeshConfig config from Kubernetes API server.");
  EXPECT_THAT(lines[3], ::testing::StartsWith("mesh configuration updated to: {\n    \"proxyListenPort\": 15001,"));
  EXPECT_THAT(lines[3], ::testing::HasSubstr("\n    \"trustDomain\": \"td\",\n"));
  EXPECT_THAT(lines[3], ::testing::EndsWith("\n    \"defaultProviders\": {\n\n    }\n}"));
  lines.clear();
  PutMesh({{"mesh", "trustDomain: td"}, {"meshNetworks", networks}, {"more", "x"}});
  Run(1s);
  EXPECT_THAT(lines, ElementsAre("Loaded MeshNetworks config from Kubernetes API server.",
                                 "Loaded MeshConfig config from Kubernetes API server.",
                                 ::testing::StartsWith("mesh configuration updated to: ")))
      << "1.18.2 takes no mesh config for equal to one that it printed";
}

TEST_F(WatchersTest, ABadMeshConfigKeepsTheLastGoodOne) {
  PutMesh({{"mesh", "trustDomain: td"}});
  MeshWatcher watcher(client, host, "istio-system");
  watcher.Start();
  Run(1s);
  PutMesh({{"mesh", "trustDomain: [td]"}});
  Run(1s);
  EXPECT_EQ(watcher.mesh()->trust_domain, "td");
  EXPECT_FALSE(watcher.status().ok());
  PutMesh({{"meshNetworks", "networks: {n: {gateways: [{address: 1.2.3.4}]}}"}, {"mesh", "trustDomain: other"}});
  Run(1s);
  EXPECT_EQ(watcher.mesh()->trust_domain, "td") << "bad networks keep the mesh config too";
}

// SHARED_MESH_CONFIG.
TEST_F(WatchersTest, ASharedMeshConfigHoldsWhereTheOwnOneSaysNothing) {
  const auto put_shared = [this](const std::string& mesh) {
    client.Put({{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"metadata", {{"name", "shared"}, {"namespace", "istio-system"}}},
                {"data", {{"mesh", mesh}}}});
  };
  put_shared(
      "trustDomain: user.example\naccessLogFile: /dev/null\ntrustDomainAliases: [a]\n"
      "extensionProviders: [{name: z, zipkin: {service: z.sys, port: 1}}, {name: 'y', zipkin: {service: y.sys, port: "
      "1}}]\n");
  PutMesh({{"mesh",
            "trust_domain: own.example\ntrustDomainAliases: [b]\nextensionProviders: [{name: z, zipkin: {service: "
            "other.sys, port: 1}}]\n"}});
  MeshWatcher watcher(client, host, "istio-system");
  watcher.Share(client, "istio-system", "shared");
  bool synced = false;
  watcher.OnSynced([&] { synced = true; });
  watcher.Start();
  Run(1s);
  EXPECT_TRUE(synced && watcher.HasSynced());
  EXPECT_EQ(watcher.mesh()->trust_domain, "own.example");
  EXPECT_EQ(watcher.mesh()->access_log_file, "/dev/null");
  EXPECT_THAT(watcher.mesh()->trust_domain_aliases, ElementsAre("a", "b"));
  put_shared("trustDomain: [no text]\naccessLogFile: /dev/stdout\n");
  Run(1s);
  EXPECT_EQ(watcher.mesh()->access_log_file, "") << "a shared one that cannot be read is ignored as a whole";
  EXPECT_THAT(std::string(watcher.status().message()), testing::HasSubstr("user config invalid, ignoring it"));
  EXPECT_EQ(watcher.mesh()->trust_domain, "own.example");
}

}  // namespace
}  // namespace wavetank::config
