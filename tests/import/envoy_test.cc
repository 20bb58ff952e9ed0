// What Envoys and istioctl print of endpoints, in each of its forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/envoy/proxy_files.h"
#include "import/envoy/proxy_state.h"

namespace wavetank::importing {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kWeb = "outbound|80||web.shop.svc.cluster.local";

TEST(ProxyState, EveryFormSaysTheSame) {
  const std::string dump = R"({"configs":[{"@type":"type.googleapis.com/envoy.admin.v3.BootstrapConfigDump",
    "bootstrap":{"node":{"id":"sidecar~10.1.0.9~api-1.shop~shop.svc.cluster.local","metadata":{"CLUSTER_ID":"east"}}}},
    {"@type":"type.googleapis.com/envoy.admin.v3.EndpointsConfigDump","dynamic_endpoint_configs":[{"endpoint_config":
    {"cluster_name":"outbound|80||web.shop.svc.cluster.local","endpoints":[{"lb_endpoints":[{"endpoint":{"address":
    {"socket_address":{"address":"10.1.0.7","port_value":8080}}}}]}]}}]}]})";
  const std::string statuses = R"([{"name":"outbound|80||web.shop.svc.cluster.local","hostStatuses":[{"address":
    {"socketAddress":{"address":"10.1.0.7","portValue":8080}}}]}])";
  const std::string text =
      "outbound|80||web.shop.svc.cluster.local::default_priority::max_connections::1024\n"
      "outbound|80||web.shop.svc.cluster.local::10.1.0.7:8080::cx_active::0\n";
  const std::string table =
      "ENDPOINT            STATUS      OUTLIER CHECK     CLUSTER\n"
      "10.1.0.7:8080       HEALTHY     OK                outbound|80||web.shop.svc.cluster.local\n";
  for (const std::string& one : {dump, statuses, "{\"cluster_statuses\":" + statuses + "}", text, table}) {
    Refusals refusals;
    const ProxyState state = ReadProxyState(one, "f", refusals);
    EXPECT_THAT(state.endpoints, ElementsAre(Pair(kWeb, ElementsAre("10.1.0.7:8080")))) << one;
    EXPECT_TRUE(refusals.empty()) << one;
    EXPECT_NE(state.form, "");
  }
  Refusals refusals;
  EXPECT_EQ(ReadProxyState(text + "outbound|80||web.shop.svc.cluster.local::10.1.0.7:8080::weight::3\n", "f", refusals)
                .weights.at(kWeb)
                .at("10.1.0.7:8080"),
            3);
  EXPECT_EQ(ReadProxyState(dump, "f", refusals).proxy, "api-1.shop");
  EXPECT_EQ(ReadProxyState(dump, "f", refusals).cluster, "east");
}

// istioctl: pkg/writer/envoy/configdump. What stands in every bootstrap has no name here.
TEST(ProxyState, ClustersListenersAndRoutesAreNamedInEveryForm) {
  const auto names = [](const std::string& text) {
    Refusals refusals;
    const ProxyState state = ReadProxyState(text, "f", refusals);
    EXPECT_TRUE(refusals.empty()) << text;
    EXPECT_THAT(state.endpoints, IsEmpty()) << text;
    return state.names;
  };
  const HeldNames clusters = {{kClusterNames, {"inbound|8080||", "outbound|80|v1|web.shop.svc.cluster.local", kWeb}}};
  EXPECT_EQ(names("SERVICE FQDN                   PORT     SUBSET     DIRECTION     TYPE             DESTINATION RULE\n"
                  "                               8080     -          inbound       ORIGINAL_DST     \n"
                  "BlackHoleCluster               -        -          -             STATIC           \n"
                  "agent                          -        -          -             STATIC           \n"
                  "web.shop.svc.cluster.local     80       -          outbound      EDS              web.shop\n"
                  "web.shop.svc.cluster.local     80       v1         outbound      EDS              web.shop\n"),
            clusters);
  EXPECT_EQ(names(R"([{"name":"inbound|8080||","type":"ORIGINAL_DST","connectTimeout":"10s"},
    {"name":"outbound|80||web.shop.svc.cluster.local","type":"EDS","edsClusterConfig":{}},
    {"name":"outbound|80|v1|web.shop.svc.cluster.local","type":"EDS"},{"name":"agent","type":"STATIC"}])"),
            clusters);
  const HeldNames listeners = {{kListenerNames, {"0.0.0.0:15001", "0.0.0.0:15006", "10.96.0.7:443"}}};
  EXPECT_EQ(names("ADDRESS       PORT  MATCH                    DESTINATION\n"
                  "10.96.0.7     443   ALL                      Cluster: outbound|443||kubernetes.default\n"
                  "0.0.0.0       15001 ALL                      PassthroughCluster\n"
                  "0.0.0.0       15006 Addr: *:15006            Non-HTTP/Non-TCP\n"
                  "0.0.0.0       15006 Trans: tls; Addr: 0.0.0.0/0 InboundPassthroughClusterIpv4\n"
                  "0.0.0.0       15021 ALL                      Inline Route: /healthz/ready*\n"),
            listeners);
  // Since 1.19 with a listener's further addresses behind its own.
  EXPECT_EQ(names("ADDRESSES         PORT  MATCH                    DESTINATION\n"
                  "10.96.0.7,fd00::7 443   ALL                      Cluster: outbound|443||kubernetes.default\n"
                  "0.0.0.0           15001 ALL                      PassthroughCluster\n"
                  "0.0.0.0           15006 Addr: *:15006            Non-HTTP/Non-TCP\n"),
            listeners);
  EXPECT_EQ(names(R"([{"name":"virtualOutbound","address":{"socketAddress":{"address":"0.0.0.0","portValue":15001}}},
    {"name":"virtualInbound","address":{"socketAddress":{"address":"0.0.0.0","portValue":15006}}},
    {"name":"10.96.0.7_443","address":{"socketAddress":{"address":"10.96.0.7","portValue":443}}}])"),
            listeners);
  const HeldNames routes = {{kRouteNames, {"80", "web.shop.svc.cluster.local:80"}}};
  EXPECT_EQ(
      names("NAME                              VHOST NAME                  DOMAINS     MATCH     VIRTUAL SERVICE\n"
            "80                                web.shop:80                 web         /*        web.shop\n"
            "web.shop.svc.cluster.local:80     web.shop:80                 *           /*        \n"
            "                                  backend                     *           /stats*   \n"
            "inbound|8080||                    inbound|http|80             *           /*        \n"),
      routes);
  EXPECT_EQ(names(R"([{"name":"80","virtualHosts":[]},{"virtualHosts":[]},{"name":"inbound|8080||","virtualHosts":[]},
    {"name":"web.shop.svc.cluster.local:80","virtualHosts":[]}])"),
            routes);
  Refusals refusals;
  const HeldNames all =
      ReadProxyState(R"({"configs":[{"@type":"x/envoy.admin.v3.ClustersConfigDump","dynamic_active_clusters":[
    {"cluster":{"name":"outbound|80||web.shop.svc.cluster.local"}}],"static_clusters":[{"cluster":{"name":"agent"}}]},
    {"@type":"x/envoy.admin.v3.ListenersConfigDump","dynamic_listeners":[{"name":"0.0.0.0_80","active_state":{}},
    {"name":"0.0.0.0_81","warming_state":{}}]},
    {"@type":"x/envoy.admin.v3.RoutesConfigDump","dynamic_route_configs":[{"route_config":{"name":"80"}}]}]})",
                     "f", refusals)
          .names;
  EXPECT_EQ(all, (HeldNames{{kClusterNames, {kWeb}}, {kListenerNames, {"0.0.0.0:80"}}, {kRouteNames, {"80"}}}));
}

TEST(ProxyState, WhatIsNoneIsCounted) {
  for (const char* bad :
       {"", "{", "{}", "[1, {\"name\": 7}, {\"name\": \"x\", \"host_statuses\": 3}]", "what is this\n",
        R"({"configs": 3})", R"({"configs": [{"@type": "x.EndpointsConfigDump", "dynamic_endpoint_configs": [7]}]})"}) {
    Refusals refusals;
    const ProxyState state = ReadProxyState(bad, "f", refusals);
    for (const auto& [name, endpoints] : state.endpoints) EXPECT_THAT(endpoints, IsEmpty());
    EXPECT_TRUE(!refusals.empty() || state.form == "clusters") << bad;
  }
}

TEST(ProxyFile, IsKnownByItsHeadAndNoLogIs) {
  EXPECT_EQ(
      KindOfProxyFile("x.txt", "NAME       CLUSTER  CDS     LDS     EDS     RDS     ECDS      ISTIOD    VERSION\n"),
      ProxyFile::kStatus);
  EXPECT_EQ(KindOfProxyFile("x.txt", "NAME       CLUSTER  ISTIOD    VERSION  SUBSCRIBED TYPES\n"), ProxyFile::kStatus);
  EXPECT_EQ(KindOfProxyFile("x.txt", "ADDRESSES  PORT  MATCH  DESTINATION\n"), ProxyFile::kHeld);
  EXPECT_EQ(KindOfProxyFile("x.json", R"([{"name":"a","connectTimeout":"10s"}])"), ProxyFile::kHeld);
  // `kubectl logs --prefix` of an istiod that prints its mesh configuration.
  EXPECT_EQ(KindOfProxyFile("istiod.log",
                            "[pod/istiod-1/discovery] 2024-05-06T07:08:09.000000Z\tinfo\tmesh configuration: {\n"
                            "[pod/istiod-1/discovery]     \"connectTimeout\": \"10s\",\n"),
            ProxyFile::kNone);
}

}  // namespace
}  // namespace wavetank::importing
