#include "core/agent/bootstrap.h"

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::agent {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

class EnvoyBootstrapTest : public ::testing::Test {
 protected:
  EnvoyBootstrapTest() {
    proxy.node_id = "sidecar~10.0.0.1~p.ns~ns.svc.cluster.local";
    proxy.node_cluster = "app.ns";
    proxy.metadata = {{"INSTANCE_IPS", "10.0.0.1,10.0.0.2"}};
    proxy.proxy_config = {{"configPath", "./etc/istio/proxy"}, {"proxyAdminPort", 15000}, {"statusPort", 15020}};
  }
  Json Make(const EnvoyBootstrapOptions& options = {}) {
    auto made = MakeEnvoyBootstrap(proxy, options);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : Json();
  }
  static const Json* Cluster(const Json& bootstrap, const std::string& name) {
    for (const Json& cluster : bootstrap["static_resources"]["clusters"]) {
      if (cluster["name"] == name) return &cluster;
    }
    return nullptr;
  }
  static std::vector<std::string> Patterns(const Json& bootstrap, const char* kind) {
    std::vector<std::string> out;
    for (const Json& pattern : bootstrap["stats_config"]["stats_matcher"]["inclusion_list"]["patterns"]) {
      if (!pattern.contains(kind)) continue;
      out.push_back(pattern[kind].is_object() ? pattern[kind]["regex"].get<std::string>()
                                              : pattern[kind].get<std::string>());
    }
    return out;
  }
  static std::string PipeOf(const Json& cluster) {
    return cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]["pipe"]["path"];
  }

  pilot::ProxyBootstrap proxy;
};

TEST_F(EnvoyBootstrapTest, BothServicesAreAtTheAgentsSockets) {
  const Json made = Make();
  EXPECT_EQ(PipeOf(*Cluster(made, "xds-grpc")), "./etc/istio/proxy/XDS");
  EXPECT_EQ(PipeOf(*Cluster(made, "sds-grpc")), "./var/run/secrets/workload-spiffe-uds/socket");
}

TEST_F(EnvoyBootstrapTest, AnAnnotationReplacesWhatTheProxysConfigurationKeepsOfStatistics) {
  proxy.proxy_config["proxyStatsMatcher"] = {{"inclusionPrefixes", {"a"}}, {"inclusionRegexps", {"b.*"}}};
  proxy.metadata["ANNOTATIONS"] = {{"sidecar.istio.io/statsInclusionPrefixes", "http.{pod_ip}_,c"}};
  const Json made = Make();
  EXPECT_THAT(Patterns(made, "prefix"),
              ::testing::ElementsAre("reporter=", "http.10.0.0.1_", "http.10.0.0.2_", "c", "cluster_manager",
                                     "listener_manager", "server", "cluster.xds-grpc", "wasm", "component", "istio"));
  EXPECT_THAT(Patterns(made, "safe_regex"), ::testing::ElementsAre("b.*", R"(vhost\.*\.route\.*)"));
}

TEST_F(EnvoyBootstrapTest, WaitingForConnectionsNeedsTheirStatistic) {
  EnvoyBootstrapOptions options;
  options.exit_on_zero_active_connections = true;
  EXPECT_THAT(Patterns(Make(options), "suffix"), ::testing::Contains("downstream_cx_active"));
  EXPECT_THAT(Patterns(Make(), "suffix"), ::testing::Not(::testing::Contains("downstream_cx_active")));
}

TEST_F(EnvoyBootstrapTest, RuntimeValuesAreAddedAndAnEmptyOneTakesADefaultAway) {
  proxy.proxy_config["runtimeValues"] = {{"re2.max_program_size.error_level", ""}, {"my.flag", "1"}};
  const Json flags = Make()["layered_runtime"]["layers"][0]["static_layer"];
  EXPECT_FALSE(flags.contains("re2.max_program_size.error_level"));
  EXPECT_EQ(flags["my.flag"], "1");
}

TEST_F(EnvoyBootstrapTest, ATracerHasItsClusterAndItsTls) {
  proxy.proxy_config["tracing"] = {
      {"zipkin", {{"address", "zipkin.tracing:9411"}}},
      {"tlsSettings",
       {{"mode", "MUTUAL"}, {"clientCertificate", "/c"}, {"privateKey", "/k"}, {"caCertificates", "/r"}}}};
  const Json made = Make();
  const Json& cluster = *Cluster(made, "zipkin");
  EXPECT_EQ(cluster["type"], "STRICT_DNS");
  const Json& context = cluster["transport_socket"]["typed_config"]["common_tls_context"];
  EXPECT_EQ(context["tls_certificate_sds_secret_configs"][0]["name"], "file-cert:/c~/k");
  EXPECT_EQ(context["combined_validation_context"]["validation_context_sds_secret_config"]["name"], "file-root:/r");
  EXPECT_FALSE(context.contains("alpn_protocols"));
  EXPECT_EQ(made["tracing"]["http"]["name"], "envoy.tracers.zipkin");
}

TEST_F(EnvoyBootstrapTest, TheHostsAddressStandsForItself) {
  proxy.proxy_config["tracing"] = {{"datadog", {{"address", "$(HOST_IP):8126"}}}};
  EnvoyBootstrapOptions options;
  options.host_ip = "192.168.0.7";
  const Json made = Make(options);
  EXPECT_EQ((*Cluster(made, "datadog_agent"))["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
                                             ["address"]["socket_address"]["address"],
            "192.168.0.7");
  EXPECT_EQ(made["tracing"]["http"]["typed_config"]["service_name"], "app.ns");
}

TEST_F(EnvoyBootstrapTest, WithIpv6AloneItListensAndLooksThere) {
  proxy.metadata["INSTANCE_IPS"] = "fd00::1";
  const Json made = Make();
  EXPECT_EQ(made["admin"]["address"]["socket_address"]["address"], "::1");
  EXPECT_EQ(made["static_resources"]["listeners"][0]["address"]["socket_address"]["address"], "::");
}

// istiod: pkg/bootstrap/config.go; tools/packaging/common/envoy_bootstrap.json of 1.20 and later.
TEST_F(EnvoyBootstrapTest, WithBothFamiliesItListensAtBothWildcardsIfItIsDualStack) {
  proxy.metadata["INSTANCE_IPS"] = "10.0.0.1,fd00::1";
  proxy.both_wildcards = true;
  const auto ready = [&] { return Make()["static_resources"]["listeners"][1]; };
  EXPECT_FALSE(ready().contains("additionalAddresses"));
  proxy.dual_stack = true;
  EXPECT_EQ(ready()["address"]["socket_address"]["address"], "0.0.0.0");
  EXPECT_EQ(ready()["additionalAddresses"][0]["address"]["socket_address"]["address"], "::");
  EXPECT_EQ(ready()["additionalAddresses"][0]["address"]["socket_address"]["port_value"], 15021);
  proxy.both_wildcards = false;
  EXPECT_FALSE(ready().contains("additionalAddresses"));
}

TEST_F(EnvoyBootstrapTest, WhatCannotBeReadIsRefused) {
  proxy.proxy_config["tracing"] = {{"zipkin", {{"address", "nowhere"}}}};
  EXPECT_THAT(std::string(Message(MakeEnvoyBootstrap(proxy, {}).status())),
              HasSubstr("unable to parse zipkin address \"nowhere\""));
  proxy.proxy_config["tracing"] = {{"stackdriver", {{"debug", true}}}};
  EXPECT_THAT(std::string(Message(MakeEnvoyBootstrap(proxy, {}).status())), HasSubstr("missing GCP Project"));
}

TEST_F(EnvoyBootstrapTest, AWaypointIsToldOfWorkloadsByDeltaStreams) {
  proxy.node_id = "waypoint~10.0.0.1~p.ns~ns.svc.cluster.local";
  const Json made = Make();
  EXPECT_EQ(made["dynamic_resources"]["ads_config"]["api_type"], "DELTA_GRPC");
  EXPECT_EQ(made["bootstrap_extensions"][0]["name"], "metadata_discovery");
}

}  // namespace
}  // namespace wavetank::agent
