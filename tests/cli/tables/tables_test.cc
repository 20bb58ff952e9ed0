// istioctl's tables of a config_dump written here by hand, in either spelling of its fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/tables/envoy_dump.h"
#include "cli/tables/proxy_tables.h"
#include "cli/tables/status_table.h"
#include "cli/tables/yaml_text.h"

namespace wavetank::cli::tables {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDump[] = R"({"configs": [
 {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "dynamic_active_clusters": [
  {"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "outbound|8080|v2|tea.kitchen.svc.cluster.local",
    "type": "EDS", "metadata": {"filter_metadata": {"istio":
      {"config": "/apis/networking.istio.io/v1alpha3/namespaces/kitchen/destination-rule/tea"}}}}},
  {"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "outbound|8080||tea.kitchen.svc.cluster.local",
    "type": "EDS"}},
  {"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "BlackHoleCluster", "type": "STATIC"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump", "dynamic_endpoint_configs": [
  {"endpoint_config": {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
    "cluster_name": "outbound|8080||tea.kitchen.svc.cluster.local", "endpoints": [{"lb_endpoints": [
     {"endpoint": {"address": {"socket_address": {"address": "10.9.0.7", "port_value": 80}}}, "health_status": "UNHEALTHY"},
     {"endpoint": {"address": {"socket_address": {"address": "10.9.0.3", "port_value": 80}}}}]}]}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamic_listeners": [{"name": "0.0.0.0_8080", "active_state": {"listener":
   {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "0.0.0.0_8080",
    "address": {"socket_address": {"address": "0.0.0.0", "port_value": 8080}},
    "filter_chains": [{"filter_chain_match": {"transport_protocol": "raw_buffer", "application_protocols": ["http/1.1", "h2c"]},
      "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "rds": {"route_config_name": "8080"}}}]}],
    "default_filter_chain": {"filters": [{"name": "envoy.filters.network.tcp_proxy", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "cluster": "PassthroughCluster"}}]}}}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "dynamic_route_configs": [{"route_config":
   {"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": "8080", "virtual_hosts": [
    {"name": "tea.kitchen.svc.cluster.local:8080",
     "domains": ["tea.kitchen.svc.cluster.local", "tea.kitchen.svc.cluster.local:8080", "tea", "tea.kitchen.svc", "tea.kitchen", "10.8.0.1"],
     "routes": [{"match": {"prefix": "/green"}, "route": {"cluster": "outbound|8080||tea.kitchen.svc.cluster.local"}},
                {"match": {"prefix": "/"}, "route": {"cluster": "PassthroughCluster"}}]}]}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.SecretsConfigDump", "dynamic_active_secrets": [
   {"name": "default", "version_info": "uninitialized", "secret": {"name": "default"}}]}]})";

EnvoyDump Dump() { return *EnvoyDump::Read(kDump, "dump"); }

TEST(Tables, ClustersAreSortedByHostAndNameTheirDestinationRule) {
  EXPECT_EQ(*ClusterTable(Dump(), {}, Output::kShort),
            "SERVICE FQDN                      PORT     SUBSET     DIRECTION     TYPE       DESTINATION RULE\n"
            "BlackHoleCluster                  -        -          -             STATIC     \n"
            "tea.kitchen.svc.cluster.local     8080     -          outbound      EDS        \n"
            "tea.kitchen.svc.cluster.local     8080     v2         outbound      EDS        tea.kitchen\n");
  EXPECT_THAT(*ClusterTable(Dump(), {.subset = "v2"}, Output::kShort), Not(HasSubstr("BlackHole")));
  EXPECT_THAT(*ClusterTable(Dump(), {.port = 80}, Output::kShort), Not(HasSubstr("tea")));
  EXPECT_THAT(*ClusterTable(Dump(), {.direction = "inbound"}, Output::kShort), Not(HasSubstr("tea")));
}

TEST(Tables, EndpointsAreSortedByAddressAndFiltered) {
  EXPECT_EQ(*EndpointTable(Dump(), {}, Output::kShort),
            "ENDPOINT        STATUS        OUTLIER CHECK     CLUSTER\n"
            "10.9.0.3:80     HEALTHY       OK                outbound|8080||tea.kitchen.svc.cluster.local\n"
            "10.9.0.7:80     UNHEALTHY     OK                outbound|8080||tea.kitchen.svc.cluster.local\n");
  EXPECT_THAT(*EndpointTable(Dump(), {.status = "unhealthy"}, Output::kShort), Not(HasSubstr("10.9.0.3")));
  EXPECT_THAT(*EndpointTable(Dump(), {.address = "10.9.0.3"}, Output::kShort), Not(HasSubstr("10.9.0.7")));
}

TEST(Tables, TheHostsOfClustersTellOfFailedOutlierChecks) {
  const auto hosts = EnvoyDump::Read(R"({"cluster_statuses": [{"name": "outbound|1||a.b", "host_statuses": [
      {"address": {"socket_address": {"address": "10.0.0.1", "port_value": 1}},
       "health_status": {"eds_health_status": "HEALTHY", "failed_outlier_check": true}}]}]})",
                                     "clusters");
  EXPECT_THAT(*EndpointTable(*hosts, {}, Output::kShort),
              HasSubstr("10.0.0.1:1     HEALTHY     FAILED            outbound|1||a.b"));
}

TEST(Tables, ListenersTellMatchAndDestinationOfEachChain) {
  EXPECT_EQ(*ListenerTable(Dump(), {}, Output::kShort),
            "ADDRESS PORT MATCH                                DESTINATION\n"
            "0.0.0.0 8080 Trans: raw_buffer; App: http/1.1,h2c Route: 8080\n"
            "0.0.0.0 8080 ALL                                  PassthroughCluster\n");
  EXPECT_EQ(*ListenerTable(Dump(), {.verbose = false}, Output::kShort), "ADDRESS PORT TYPE\n0.0.0.0 8080 HTTP+TCP\n");
  EXPECT_THAT(*ListenerTable(Dump(), {.port = 1}, Output::kShort), Not(HasSubstr("8080")));
}

TEST(Tables, RoutesShowTheShortestDomainsAndNoPassthrough) {
  EXPECT_EQ(
      *RouteTable(Dump(), {}, Output::kShort),
      "NAME     VHOST NAME                             DOMAINS                          MATCH       VIRTUAL SERVICE\n"
      "8080     tea.kitchen.svc.cluster.local:8080     tea, tea.kitchen + 1 more...     /green*     \n");
  EXPECT_EQ(*RouteTable(Dump(), {.name = "9"}, Output::kShort),
            "NAME     VHOST NAME     DOMAINS     MATCH     VIRTUAL SERVICE\n");
}

TEST(Tables, ASecretWithoutACertificateIsNotValid) {
  EXPECT_THAT(*SecretTable(Dump(), Time{}, Output::kShort), HasSubstr("default           "));
  EXPECT_THAT(*SecretTable(Dump(), Time{}, Output::kShort), HasSubstr("UNINITIALIZED     false"));
}

TEST(Tables, DocumentsAreInLowerCamelCaseWhateverTheDumpsSpelling) {
  const std::string json = *ClusterTable(Dump(), {.subset = "v2"}, Output::kJson);
  EXPECT_THAT(json, HasSubstr("\"filterMetadata\""));
  EXPECT_THAT(json, Not(HasSubstr("filter_metadata")));
  EXPECT_THAT(*ClusterTable(Dump(), {.subset = "v2"}, Output::kYaml), HasSubstr("name: outbound|8080|v2|tea"));
  const auto camel = EnvoyDump::Read(
      R"({"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
          "dynamicActiveClusters": [{"cluster": {"name": "outbound|1||x.y", "type": "EDS"}}]}]})",
      "dump");
  EXPECT_THAT(*ClusterTable(*camel, {}, Output::kShort), HasSubstr("x.y"));
}

// golang/protobuf: jsonpb/encode.go. What istioctl 1.18.2 printed of the same dump.
TEST(Tables, DocumentsHaveTheirFieldsInTheOrderOfTheirTypes) {
  EXPECT_EQ(*ClusterTable(Dump(), {.subset = "v2"}, Output::kJson), R"([
    {
        "name": "outbound|8080|v2|tea.kitchen.svc.cluster.local",
        "type": "EDS",
        "metadata": {
            "filterMetadata": {
                "istio": {
                    "config": "/apis/networking.istio.io/v1alpha3/namespaces/kitchen/destination-rule/tea"
                }
            }
        }
    }
]
)");
  const auto dump = EnvoyDump::Read(
      R"({"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "dynamic_route_configs": [
          {"route_config": {"name": "a<b&c", "virtual_hosts": [{"name": "h", "domains": ["*"], "routes": [
            {"decorator": {"operation": "o"}, "match": {"prefix": "/"}, "direct_response": {"status": 404}}]}]}}]}]})",
      "dump");
  EXPECT_THAT(*RouteTable(*dump, {}, Output::kJson), HasSubstr("a\\u003cb\\u0026c"));
  const std::string text = *RouteTable(*dump, {}, Output::kJson);
  EXPECT_LT(text.find("\"match\""), text.find("\"directResponse\""));
  EXPECT_LT(text.find("\"directResponse\""), text.find("\"decorator\""));
}

TEST(Tables, ABootstrapInShortIsItsVersions) {
  const auto dump = EnvoyDump::Read(
      R"({"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"node": {
          "metadata": {"ISTIO_VERSION": "1.18.2"}, "user_agent_build_version": {
            "version": {"major_number": 1, "minor_number": 26, "patch": 4},
            "metadata": {"build.type": "RELEASE", "revision.status": "Clean"}}}}}]})",
      "dump");
  EXPECT_EQ(*BootstrapText(*dump, Output::kShort), "Istio Version: 1.18.2\nEnvoy Version: 1.26.4/Clean/RELEASE\n");
}

// istioctl: pkg/writer/envoy/configdump/route.go, retrieveSortedRouteSlice(): a name that is no number is equal to all.
TEST(Tables, RoutesOfFewStandAsGosInsertionLeavesThem) {
  std::string routes;
  for (const char* name : {"80", "host:15021", "5000", "inbound", "443"})
    routes += std::string(routes.empty() ? "" : ",") + R"({"route_config": {"name": ")" + name + "\"}}";
  const auto dump = EnvoyDump::Read(
      R"({"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "dynamic_route_configs": [)" +
          routes + "]}]}",
      "dump");
  EXPECT_EQ(*RouteTable(*dump, {.verbose = false}, Output::kShort),
            "NAME           VIRTUAL HOSTS\n80             0\nhost:15021     0\n5000           0\ninbound        0\n"
            "443            0\n");
}

TEST(Tables, WhatIsNoDumpIsRefusedWithARemedy) {
  EXPECT_THAT(std::string(EnvoyDump::Read("{", "f").status().message()), HasSubstr("f: no JSON"));
  EXPECT_THAT(std::string(EnvoyDump::Read("{}", "f").status().message()), HasSubstr("no config_dump"));
  const auto empty = EnvoyDump::Read(R"({"configs": [1, null, {"@type": 5}]})", "f");
  EXPECT_EQ(ClusterTable(*empty, {}, Output::kShort).status().message(), "no clusters found");
  EXPECT_EQ(ListenerTable(*empty, {}, Output::kShort).status().message(), "no listeners found");
  EXPECT_FALSE(EndpointTable(*empty, {}, Output::kShort).ok());
  EXPECT_FALSE(SecretTable(*empty, Time{}, Output::kShort).ok());
  EXPECT_FALSE(BootstrapText(*empty, Output::kJson).ok());
}

// istioctl: pkg/writer/envoy/configdump/ecds.go: by type, then by name.
TEST(Tables, ExtensionConfigurationsAreSortedByTypeAndName) {
  constexpr char kExtensions[] = R"({"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.EcdsConfigDump",
    "ecds_filters": [
     {"ecds_filter": {"@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "name": "kitchen.b",
       "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"}}},
     {"ecds_filter": {"@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "name": "kitchen.a",
       "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm"}}}]}]})";
  const auto dump = EnvoyDump::Read(kExtensions, "dump");
  ASSERT_TRUE(dump.ok());
  EXPECT_EQ(*ExtensionTable(*dump, Output::kShort),
            "ECDS NAME     TYPE\n"
            "kitchen.a     envoy.extensions.filters.http.wasm.v3.Wasm\n"
            "kitchen.b     envoy.extensions.filters.http.wasm.v3.Wasm\n");
  EXPECT_TRUE(ExtensionTable(*dump, Output::kJson)->starts_with("{\n    \"ecdsFilters\": ["));
  EXPECT_EQ(ExtensionTable(*EnvoyDump::Read(R"({"configs": []})", "dump"), Output::kShort).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Tables, ProxyStatusComparesWhatWasSentWithWhatWasAcked) {
  const nlohmann::json syncz = nlohmann::json::parse(
      R"([{"proxy": "b.x", "cluster_id": "c2", "istio_version": "1.18.2", "cluster_sent": "n1", "cluster_acked": "n1",
           "listener_sent": "n2", "listener_acked": "n1", "endpoint_sent": "n3"},
          {"proxy": "a.x", "cluster_id": "c1", "istio_version": "1.18.2"}])");
  EXPECT_EQ(StatusTable({{"istiod-1", syncz}}, ""),
            "NAME     CLUSTER     CDS          LDS          EDS                            RDS          ECDS         "
            "ISTIOD       VERSION\n"
            "a.x      c1          NOT SENT     NOT SENT     NOT SENT                       NOT SENT     NOT SENT     "
            "istiod-1     1.18.2\n"
            "b.x      c2          SYNCED       STALE        STALE (Never Acknowledged)     NOT SENT     NOT SENT     "
            "istiod-1     1.18.2\n");
  EXPECT_THAT(StatusTable({{"istiod-1", syncz}}, "a."), Not(HasSubstr("b.x")));
}

TEST(YamlText, NumbersInKeysCountAsSuchAndLettersComeLast) {
  EXPECT_EQ(YamlText({{"a10", 1}, {"a9", 2}, {"[1->?]", 3}, {"[?->0]", 4}, {"[#2]", 5}}),
            "'[#2]': 5\n'[?->0]': 4\n'[1->?]': 3\na9: 2\na10: 1\n");
}

// go-yaml: v2/resolve.go, v2/emitterc.go: what is another type is quoted twice, what is no plain word once.
TEST(YamlText, QuotesNoMoreThanGoDoes) {
  for (const char* text : {"127.0.0.1", "1.2.3", "a: b", "fd00::1", "2026-11-30T22:50:19Z/6", "=x", "1h", "-x", "?x"})
    EXPECT_EQ(YamlText(text), std::string(text) == "a: b" ? "'a: b'\n" : std::string(text) + "\n");
  for (const char* text : {"", "80", "0x1f", "1e3", ".5", "12:30:45", "2026-11-30", "2026-11-30T22:50:19Z", "no", "~"})
    EXPECT_EQ(YamlText(text), "\"" + std::string(text) + "\"\n");
  for (const char* text : {"*", "@type", "[x]", "-", "a #b", "%x"})
    EXPECT_EQ(YamlText(text), "'" + std::string(text) + "'\n");
}

TEST(YamlText, QuotesWhatWouldBeReadAsSomethingElse) {
  EXPECT_EQ(
      YamlText({{"a", "true"}, {"b", "1.5"}, {"c", "plain text"}, {"d", nullptr}, {"e", {1, "x"}}, {"f", "a\nb\n"}}),
      "a: \"true\"\nb: \"1.5\"\nc: plain text\nd: null\ne:\n- 1\n- x\nf: |\n  a\n  b\n");
  EXPECT_EQ(YamlText({{{"a", 1}, {"b", {{"c", nlohmann::json::array()}}}}, nlohmann::json::object()}),
            "- a: 1\n  b:\n    c: []\n- {}\n");
}

}  // namespace
}  // namespace wavetank::cli::tables
