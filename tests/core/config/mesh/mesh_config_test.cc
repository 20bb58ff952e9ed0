#include "core/config/mesh/mesh_config.h"

#include "core/config/mesh/mesh_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::config {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MeshConfigTest, EmptyDocumentIsTheDefault) {
  const auto mesh = ApplyMeshConfigDefaults("");
  ASSERT_TRUE(mesh.ok());
  EXPECT_EQ(**mesh, *DefaultMeshConfig());
  EXPECT_EQ((*mesh)->locality_lb_setting->enabled, true);
}

TEST(MeshConfigTest, FieldsOverrideAndMessagesReplaceButDefaultConfigMerges) {
  const auto mesh = ApplyMeshConfigDefaults(R"(
trustDomain: td
trustDomainAliases: [b, a, b]
connectTimeout: 3s
localityLbSetting:
  failover: [{from: a, to: b}]
defaultConfig:
  discoveryAddress: istiod.other.svc:15012
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
serviceSettings:
- settings: {clusterLocal: true}
  hosts: ["*.ns.svc.cluster.local"]
)");
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  EXPECT_THAT((*mesh)->trust_domain_aliases, ElementsAre("a", "b"));
  EXPECT_EQ((*mesh)->connect_timeout, Duration(3s));
  EXPECT_FALSE((*mesh)->locality_lb_setting->enabled) << "a message is replaced as a whole";
  EXPECT_EQ((*mesh)->discovery_address, "istiod.other.svc:15012");
  EXPECT_EQ((*mesh)->tracing_zipkin_address, "zipkin.istio-system:9411") << "defaultConfig merges";
  EXPECT_EQ((*mesh)->outbound_traffic_policy, OutboundTrafficPolicy::Mode::kRegistryOnly);
  EXPECT_TRUE((*mesh)->service_settings[0].cluster_local);
}

TEST(MeshConfigTest, AFieldThatNothingReadsStillMakesADifference) {
  EXPECT_NE(**ApplyMeshConfigDefaults("somethingNew: 1"), *DefaultMeshConfig());
}

TEST(MeshConfigTest, SaysWhatIsWrong) {
  const auto wrong = [](std::string_view yaml) {
    return std::string(ApplyMeshConfigDefaults(yaml).status().message());
  };
  EXPECT_THAT(wrong("connectTimeout: soon"), HasSubstr("mesh.connectTimeout: expected a duration"));
  EXPECT_THAT(wrong("connectTimeout: 1us"), HasSubstr("at least 1ms"));
  EXPECT_THAT(wrong("proxyListenPort: 70000"), HasSubstr("mesh.proxyListenPort: expected a port"));
  EXPECT_THAT(wrong("- a"), HasSubstr("expected a mapping"));
  EXPECT_THAT(wrong("a: [b"), HasSubstr("not valid YAML"));
}

TEST(MeshConfigTest, AnInboundPortThatIsNoneIsTakenAsIstiodDoes) {
  for (const int port : {0, -1, 70000}) {
    const auto mesh = ApplyMeshConfigDefaults("proxyInboundListenPort: " + std::to_string(port));
    ASSERT_TRUE(mesh.ok()) << mesh.status();
    EXPECT_EQ((*mesh)->proxy_inbound_listen_port, port);
  }
}

TEST(MeshConfigTest, WhatIstiodRefusesIsRefused) {
  for (const char* bad : {"connectTimeout: 31s", "connectTimeout: 1.5ms", "protocolDetectionTimeout: 1.5ms",
                          "trustDomain: ''", "trustDomain: td_x.y", "trustDomainAliases: [ok, '']",
                          "meshMTLS: {ecdhCurves: [P-256]}", "serviceSettings: [{hosts: ['*.*.shop']}]",
                          "defaultConfig: {drainDuration: 1.5s}", "defaultConfig: {discoveryAddress: nowhere}",
                          "defaultConfig: {tracing: {zipkin: {address: ''}}}", "defaultConfig: {proxyAdminPort: 0}",
                          "defaultConfig: {binaryPath: ''}", "defaultConfig: {envoyAccessLogService: {address: a}}"}) {
    EXPECT_FALSE(ApplyMeshConfigDefaults(bad).ok()) << bad;
  }
  for (const char* good :
       {"connectTimeout: 30s", "protocolDetectionTimeout: 0.015s", "trustDomain: td.1", "trustDomainAliases: [old.td.]",
        "tlsDefaults: {ecdhCurves: [P-256]}", "serviceSettings: [{hosts: ['*', '*.shop', '*-x.shop', a.b.]}]",
        "defaultConfig: {tracing: {sampling: 5}}", "defaultConfig: {discoveryAddress: '[::1]:15012'}"}) {
    EXPECT_TRUE(ApplyMeshConfigDefaults(good).ok()) << good << ": " << ApplyMeshConfigDefaults(good).status();
  }
}

TEST(MeshConfigTest, LocalitySettingsThatContradictThemselvesAreRefused) {
  const auto accepted = [](const std::string& setting) {
    return ApplyMeshConfigDefaults("localityLbSetting: " + setting).ok();
  };
  EXPECT_TRUE(
      accepted("{distribute: [{from: a/*, to: {a/*: 60, b/*: 40}}, {from: b/c/d, to: {a/b/c: 50, a/b/d: 50}}]}"));
  EXPECT_FALSE(accepted("{distribute: [{from: a/*, to: {a/*: 60, b/*: 30}}]}")) << "sums to 90";
  EXPECT_FALSE(accepted("{distribute: [{from: a/*, to: {a/*: 100, b/*: 0}}]}")) << "a weight of 0";
  EXPECT_FALSE(accepted("{distribute: [{from: a/*/c, to: {a/*: 100}}]}")) << "a star in the middle";
  EXPECT_FALSE(accepted("{distribute: [{from: a/, to: {a/*: 100}}]}")) << "an empty zone";
  EXPECT_FALSE(accepted("{distribute: [{from: a/*, to: {a/*: 100}}, {from: a/b, to: {a/*: 100}}]}")) << "overlap";
  EXPECT_FALSE(accepted("{distribute: [{from: a, to: {b/c: 50, b/c/d: 50}}]}")) << "overlap among targets";
  EXPECT_FALSE(accepted("{distribute: [{from: a, to: {a: 100}}], failover: [{from: a, to: b}]}"));
  EXPECT_TRUE(accepted("{failover: [{from: a, to: b}], failoverPriority: [topology.kubernetes.io/region]}"));
  EXPECT_FALSE(accepted("{failover: [{from: a, to: a}]}"));
  EXPECT_FALSE(accepted("{failover: [{from: a/b, to: c}]}"));
  EXPECT_FALSE(accepted("{failover: [{from: '*', to: c}]}"));
}

TEST(MeshConfigTest, AProviderWithoutANameIsPrintedBesideTheOthers) {
  const auto mesh = ApplyMeshConfigDefaults("extensionProviders: [{prometheus: {}}, {name: b, prometheus: {}}]");
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  EXPECT_EQ(MeshConfigJson(**mesh)["extensionProviders"].size(), 5u) << "beside three of the defaults";
}

}  // namespace
}  // namespace wavetank::config
