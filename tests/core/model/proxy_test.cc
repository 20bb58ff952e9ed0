#include "core/model/proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "core/model/push_request.h"
#include "sim/kernel/kernel.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ServiceNode, IsReadFromItsIdAndMetadata) {
  const auto proxy =
      ParseServiceNode("sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", json{{"CLUSTER_ID", "cluster1"},
                                                                                  {"NAMESPACE", "shop"},
                                                                                  {"INSTANCE_IPS", "10.0.0.1,fd00::1"},
                                                                                  {"LABELS", {{"app", "web"}}},
                                                                                  {"DNS_CAPTURE", "true"},
                                                                                  {"REQUESTED_NETWORK_VIEW", "n1,n2"}});
  ASSERT_TRUE(proxy.ok()) << proxy.status();
  EXPECT_EQ(proxy->id, "web-1.shop");
  EXPECT_EQ(proxy->config_namespace, "shop");
  EXPECT_EQ(proxy->cluster(), ClusterId("cluster1"));
  EXPECT_THAT(proxy->ip_addresses, ElementsAre("10.0.0.1", "fd00::1"));
  EXPECT_TRUE(proxy->metadata.dns_capture);
  EXPECT_EQ(proxy->metadata.labels.at("app"), "web");
  EXPECT_TRUE(proxy->labels.empty()) << "before SetWorkloadLabels";
  EXPECT_TRUE(proxy->IsVisible(NetworkId("n2")));
  EXPECT_TRUE(proxy->IsVisible(NetworkId()));
  EXPECT_FALSE(proxy->IsVisible(NetworkId("n3")));
}

TEST(ServiceNode, TakesTheNamespaceOfItsDomainAndTheAddressOfItsIdWhenMetadataSaysNothing) {
  const auto proxy = ParseServiceNode("router~10.0.0.1~gw.istio-system~istio-system.svc.cluster.local", json());
  ASSERT_TRUE(proxy.ok()) << proxy.status();
  EXPECT_TRUE(proxy->IsRouter());
  EXPECT_EQ(proxy->config_namespace, "istio-system");
  EXPECT_THAT(proxy->ip_addresses, ElementsAre("10.0.0.1"));
}

TEST(ServiceNode, ThatCannotBeReadIsRefusedWithTheReason) {
  const auto error = [](const char* id, json metadata) {
    const auto proxy = ParseServiceNode(id, metadata);
    return proxy.ok() ? std::string() : std::string(Message(proxy.status()));
  };
  EXPECT_THAT(error("sidecar~10.0.0.1~x", json()), HasSubstr("<type>~<ip>"));
  EXPECT_THAT(error("ztunnel~10.0.0.1~x~y", json()), HasSubstr("ztunnel"));
  EXPECT_THAT(error("sidecar~nonsense~x~y", json()), HasSubstr("IP address"));
  EXPECT_THAT(error("sidecar~10.0.0.1~x~y", json{{"LABELS", "app=web"}}), HasSubstr("LABELS"));
  EXPECT_THAT(error("sidecar~10.0.0.1~x~y", json{{"DNS_CAPTURE", "perhaps"}}), HasSubstr("DNS_CAPTURE"));
}

TEST(Proxy, BindsNoPrivilegedPortWithoutPrivilegeAndNoPortOfTheAgent) {
  const auto proxy =
      ParseServiceNode("sidecar~10.0.0.1~x~y", json{{"UNPRIVILEGED_POD", "true"}, {"ENVOY_STATUS_PORT", 15021}});
  ASSERT_TRUE(proxy.ok());
  EXPECT_FALSE(proxy->CanBindToPort(true, 80));
  EXPECT_FALSE(proxy->CanBindToPort(true, 15021));
  EXPECT_TRUE(proxy->CanBindToPort(true, 8080));
  EXPECT_TRUE(proxy->CanBindToPort(false, 80));
}

// A socket's port is 0, and so is in istiod the port of an agent that tells none (istiod: Proxy.CanBindToPort).
TEST(Proxy, BindsASocketOnlyIfTheAgentTellsBothItsPorts) {
  const std::string id = "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local";
  for (const auto& [metadata, binds] : {std::pair(json::object(), false),
                                        {json{{"ENVOY_STATUS_PORT", 15021}}, false},
                                        {json{{"ENVOY_STATUS_PORT", 15021}, {"ENVOY_PROMETHEUS_PORT", 15090}}, true}}) {
    const auto proxy = ParseServiceNode(id, metadata);
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    EXPECT_EQ(proxy->CanBindToPort(true, 0), binds) << metadata;
    EXPECT_TRUE(proxy->CanBindToPort(true, 8080));
    EXPECT_TRUE(proxy->CanBindToPort(false, 0));
  }
}

TEST(PushRequest, MergedWithOneWithoutKeysConcernsEverything) {
  sim::Kernel kernel(1);
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  PushRequest request;
  request.configs_updated = {{ConfigKind::kServiceEntry, "a", "ns"}};
  request.reasons = Reason(TriggerReason::kEndpoint);
  PushRequest other;
  other.full = true;
  other.configs_updated = {{ConfigKind::kGateway, "g", "ns"}};
  other.reasons = Reason(TriggerReason::kConfig);
  request.Merge(other, host);
  EXPECT_TRUE(request.full);
  EXPECT_EQ(request.configs_updated.size(), 2u);
  EXPECT_TRUE(request.HasConfigsOfKind(ConfigKind::kGateway));
  EXPECT_THAT(ReasonNames(request.reasons), ElementsAre("config", "endpoint"));
  request.Merge(PushRequest{.full = true}, host);
  EXPECT_TRUE(request.configs_updated.empty());
}

}  // namespace
}  // namespace wavetank::pilot
