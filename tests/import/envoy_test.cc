// What Envoys and istioctl print of endpoints, in each of its forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(ReadProxyState(dump, "f", refusals).proxy, "api-1.shop");
  EXPECT_EQ(ReadProxyState(dump, "f", refusals).cluster, "east");
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

}  // namespace
}  // namespace wavetank::importing
