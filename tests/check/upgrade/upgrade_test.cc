#include "check/upgrade/upgrade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace wavetank::check {
namespace {

using nlohmann::ordered_json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

MeshSource MainMesh() {
  MeshSource out;
  out.scenario = WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network";
  return out;
}

// The upgrade of the main mesh from 1.18 to 1.30, once for all that look at it.
const ordered_json& Report() {
  static const auto* const report = [] {
    UpgradeOptions options;
    options.to = "istio-1.30";
    options.orders.clusters = {"cluster1", "cluster2"};
    options.orders.gateways = "first";
    options.processes = 2;
    absl::StatusOr<ordered_json> made = RehearseUpgrade(MainMesh(), options);
    EXPECT_TRUE(made.ok()) << made.status();
    return new ordered_json(made.ok() ? *made : ordered_json());
  }();
  return *report;
}

const ordered_json& Order(const std::string& method) {
  for (const ordered_json& order : Report()["orders"]) {
    if (order["method"] == method) return order;
  }
  static const auto* const none = new ordered_json();
  return *none;
}

TEST(Upgrade, TheCanaryOfTheMainMeshIsTheOrderThatIsNamedSinceNothingIsRefused) {
  EXPECT_EQ(Report()["orders"][Report()["best"].get<size_t>()]["method"], "canary");
  EXPECT_EQ(Order("canary")["refused"], 0);
  EXPECT_EQ(Order("canary")["stuck"], "");
  EXPECT_EQ(Order("canary")["steps"].size(), 8U);
  EXPECT_GT(Order("canary")["sent"].get<int64_t>(), 5000);
}

// Connections through a gateway that is replaced are cut, with what is under way on them.
TEST(Upgrade, OfACanaryRequestsAreLostAtReplacedGatewaysAlone) {
  EXPECT_LE(Order("canary")["failed"].get<int64_t>(), 4);
  for (const ordered_json& step : Order("canary")["steps"]) {
    for (const ordered_json& flow : step["flows"]) {
      if (flow["failed"] == 0) continue;
      EXPECT_EQ(step["part"], "gateways");
      EXPECT_THAT(flow["reasons"][0]["why"].get<std::string>(), HasSubstr(":15443"));
    }
  }
  EXPECT_EQ(LosesNothing(Report()), Order("canary")["failed"] == 0);
}

TEST(Upgrade, InPlaceOldProxiesRefuseWhatTheNewIstiodSends) {
  ASSERT_GT(Order("in-place")["refused"].get<int64_t>(), 0);
  const ordered_json& row = Order("in-place")["steps"][0]["refused"][0];
  EXPECT_EQ(row["proxy"], "1.18.2");
  EXPECT_EQ(row["istiod"], "istio-1.30");
  EXPECT_EQ(row["type"], "LDS");
}

TEST(Upgrade, NewProxiesOnAnOldIstiodNeverGetReadyAndTheOrderEndsThere) {
  EXPECT_THAT(Order("proxies-first")["stuck"].get<std::string>(), HasSubstr("istio-eastwestgateway"));
  EXPECT_LT(Order("proxies-first")["steps"].size(), 8U);
  bool told = false;
  for (const ordered_json& skew : Report()["skews"]) {
    told = told || (skew["proxy"] == "1.30.3" && skew["istiod"] == "istio-1.18" && !skew["refused"].empty());
  }
  EXPECT_TRUE(told);
}

// Its callers ask a port that the Service has in the other cluster alone.
TEST(Upgrade, RequestsThatFailedBeforeTheFirstStepAreNoneOfTheUpgrades) {
  MeshSource mesh;
  mesh.scenario = WAVETANK_SOURCE_DIR "/scenarios/incidents/A54-ports-that-differ";
  UpgradeOptions options;
  options.to = "istio-1.30";
  options.orders.methods = {"in-place"};
  options.orders.clusters = {"cluster1", "cluster2"};
  options.orders.gateways = "first";
  options.attribute = false;
  const absl::StatusOr<ordered_json> report = RehearseUpgrade(mesh, options);
  ASSERT_TRUE(report.ok()) << report.status();
  const ordered_json& order = (*report)["orders"][0];
  EXPECT_EQ(order["before"][0]["failed"], order["before"][0]["sent"]);
  EXPECT_EQ(order["failed"], 0);
  EXPECT_EQ(order["steps"][0]["flows"][0]["failedAsBefore"], order["steps"][0]["flows"][0]["sent"]);
  EXPECT_THAT(UpgradeText(*report), HasSubstr("failed as they did before the first step"));
}

TEST(Upgrade, EveryDifferenceOfAProxysConfigurationHasAChangeBehindIt) {
  EXPECT_EQ(Report()["behaviours"]["unexplained"].size(), 0U) << Report()["behaviours"]["unexplained"].dump(1);
  std::map<std::string, ordered_json> changes;
  for (const ordered_json& change : Report()["behaviours"]["changes"]) changes[change["change"]] = change;
  ASSERT_TRUE(changes.contains("peer-metadata-filter"));
  EXPECT_TRUE(changes["peer-metadata-filter"]["resources"].contains("lds"));
  EXPECT_FALSE(changes["peer-metadata-filter"]["resources"].contains("cds"));
  ASSERT_TRUE(changes.contains("no-retries-of-503"));
  EXPECT_TRUE(changes["no-retries-of-503"]["resources"].contains("rds"));
  // No ServiceEntry is there.
  std::vector<std::string> silent;
  for (const ordered_json& name : Report()["behaviours"]["withoutEffect"]) silent.push_back(name);
  EXPECT_THAT(silent, Contains("entry-endpoints-named"));
}

TEST(Upgrade, AStepNamesTheProxiesThatItMovedAndWhatBecameOthersOfTheirs) {
  const ordered_json& workloads = Order("canary")["steps"][2];
  ASSERT_EQ(workloads["part"], "workloads");
  std::vector<std::string> groups;
  for (const ordered_json& group : workloads["proxies"]) {
    groups.push_back(group["group"]);
    EXPECT_EQ(group["releases"][1][0], "1.30.3");
    EXPECT_EQ(group["istiods"][1][0], "istio-1.30");
    EXPECT_FALSE(group["changes"].empty());
    EXPECT_EQ(group["others"], 0) << group["otherNames"].dump(1);
  }
  EXPECT_THAT(groups, ElementsAre("helloworld.sample@cluster1", "sleep.sample@cluster1"));
}

TEST(Upgrade, TheTextNamesOrderSkewAndBehaviours) {
  const std::string text = UpgradeText(Report());
  RecordProperty("text", text);  // --gtest_output=json: to look at
  EXPECT_THAT(text, HasSubstr("istio-1.18 to istio-1.30: 3 orders"));
  EXPECT_THAT(text,
              HasSubstr(": canary, gateways first, cluster1 then cluster2\n1. istiod of revision 1-30-3 in cluster1"));
  EXPECT_THAT(text, HasSubstr("proxies of 1.18.2 on istiods of istio-1.30: BREAKS"));
  EXPECT_THAT(text, HasSubstr("delimited-stat-names"));
  // Refusals of the orders in place, with their step.
  EXPECT_THAT(text, HasSubstr("\nWhat other orders lose\nin-place, gateways first, cluster1 then cluster2\n   1. "
                              "istiod of cluster1, in place\n"));
}

// The main mesh with gateways that istiod deploys for Gateways of the Gateway API, whose pods have no label `app`.
const ordered_json& GatewayApiReport() {
  static const auto* const report = [] {
    MeshSource mesh;
    mesh.scenario = WAVETANK_SOURCE_DIR "/scenarios/gateway-api";
    UpgradeOptions options;
    options.from = "istio-1.18";
    options.to = "istio-1.30";
    options.orders.methods = {"canary", "proxies-first"};
    options.orders.clusters = {"cluster1", "cluster2"};
    options.orders.gateways = "first";
    options.attribute = false;
    options.processes = 2;
    absl::StatusOr<ordered_json> made = RehearseUpgrade(mesh, options);
    EXPECT_TRUE(made.ok()) << made.status();
    return new ordered_json(made.ok() ? *made : ordered_json());
  }();
  return *report;
}

TEST(Upgrade, PodsOfADeployedGatewayAreOneGroupHoweverTheyAreNamed) {
  const ordered_json& gateways = GatewayApiReport()["orders"][0]["steps"][1];
  EXPECT_EQ(gateways["part"], "gateways");
  ASSERT_EQ(gateways["proxies"].size(), 1U) << gateways.dump(1);
  EXPECT_EQ(gateways["proxies"][0]["group"], "istio-eastwestgateway-istio.istio-system@cluster1");
  EXPECT_EQ(gateways["proxies"][0]["releases"][1][0], "1.30.3");
  EXPECT_EQ(gateways["proxies"][0]["istiods"][1][0], "istio-1.30");
}

TEST(Upgrade, WhatAnIstiodSentThatAStepTakesAwayIsNotSaidOfTheNextOne) {
  std::map<std::string, bool> refused;  // whether proxies of 1.30.3 refused something, by the istiod
  for (const ordered_json& skew : GatewayApiReport()["skews"]) {
    if (skew["proxy"] == "1.30.3") refused[skew["istiod"]] = !skew["refused"].empty();
  }
  EXPECT_EQ(refused, (std::map<std::string, bool>{{"istio-1.18", true}, {"istio-1.30", false}}));
}

std::string Refusal(UpgradeOptions options) {
  const absl::StatusOr<ordered_json> report = RehearseUpgrade(MainMesh(), options);
  return report.ok() ? "" : std::string(Message(report.status()));
}

TEST(Upgrade, WhatDoesNotFitIsRefusedWithTheRemedy) {
  UpgradeOptions options;
  options.to = "istio-1.18";
  EXPECT_THAT(Refusal(options), HasSubstr("is istio-1.18 already"));
  options.to = "istio-4";
  EXPECT_THAT(Refusal(options), HasSubstr("istio-4"));
  options.to = "istio-1.30";
  options.orders.methods = {"rolling"};
  EXPECT_THAT(Refusal(options), HasSubstr("one of canary, in-place, proxies-first"));
  options.orders.methods.clear();
  options.orders.clusters = {"cluster1"};
  EXPECT_THAT(Refusal(options), HasSubstr("cluster1,cluster2"));
  options.orders.clusters.clear();
  options.orders.gateways = "middle";
  EXPECT_THAT(Refusal(options), HasSubstr("'first' or 'last'"));
}

TEST(UpgradeOrders, RemoteClustersFollowTheirPrimariesAndHaveNoCanary) {
  sim::WorldCluster primary, remote;
  primary.name = primary.control_plane = "b";
  remote.name = "a";
  remote.control_plane = "b";
  std::vector<std::string> notes;
  const auto orders = OrdersOf({remote, primary}, {}, &notes);
  ASSERT_TRUE(orders.ok()) << orders.status();
  for (const UpgradeOrder& order : *orders) {
    EXPECT_NE(order.method, UpgradeMethod::kCanary);
    EXPECT_THAT(order.clusters, ElementsAre("b", "a"));
  }
  EXPECT_THAT(notes, ElementsAre(HasSubstr("no canary was tried")));
  EXPECT_FALSE(OrdersOf({remote, primary}, {.methods = {"canary"}, .gateways = {}, .clusters = {}}, &notes).ok());
}

}  // namespace
}  // namespace wavetank::check
