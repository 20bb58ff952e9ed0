#include "core/gen/eds/locality.h"

#include "core/model/labels.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;

const std::string kAddress = "10.0.0.1";

LoadAssignment Localities(const std::vector<std::pair<std::string_view, uint32_t>>& weights) {
  LoadAssignment out;
  out.shapes.emplace_back();
  for (const auto& [locality, weight] : weights) {
    LocalityLbEndpoints group;
    group.locality = locality;
    group.weight = weight;
    group.endpoints.push_back({&kAddress, 80, weight, 0, 1});
    out.localities.push_back(group);
  }
  return out;
}

std::vector<uint32_t> Priorities(const LoadAssignment& a) {
  std::vector<uint32_t> out;
  for (const auto& group : a.localities) out.push_back(group.priority);
  return out;
}

std::vector<uint32_t> Weights(const LoadAssignment& a) {
  std::vector<uint32_t> out;
  for (const auto& group : a.localities) out.push_back(group.weight.value_or(0));
  return out;
}

TEST(Locality, RuleMatchesByPartWithWildcards) {
  const LocalityParts here = SplitLocality("us/east/a");
  EXPECT_TRUE(LocalityMatches(here, "us/east/a"));
  EXPECT_TRUE(LocalityMatches(here, "us/east/*"));
  EXPECT_TRUE(LocalityMatches(here, "us"));
  EXPECT_TRUE(LocalityMatches(here, "*"));
  EXPECT_FALSE(LocalityMatches(here, "us/west"));
  EXPECT_FALSE(LocalityMatches(here, ""));
}

TEST(Locality, RuleOverridesMeshAndMayEnableWhatMeshDisabled) {
  config::LocalityLbSetting mesh, rule;
  EXPECT_EQ(EffectiveLocalityLb(&mesh, nullptr), &mesh);
  EXPECT_EQ(EffectiveLocalityLb(nullptr, nullptr), nullptr);
  mesh.enabled = false;
  EXPECT_EQ(EffectiveLocalityLb(&mesh, nullptr), nullptr);
  EXPECT_EQ(EffectiveLocalityLb(&mesh, &rule), &rule);
  rule.enabled = false;
  mesh.enabled = true;
  EXPECT_EQ(EffectiveLocalityLb(&mesh, &rule), nullptr);
}

TEST(Locality, WhatAServicePrefersCountsUnlessARuleSaysOtherwise) {
  config::LocalityLbSetting mesh, rule;
  mesh.enabled = false;
  Service service;
  EXPECT_EQ(EffectiveLocalityLb(&mesh, nullptr, service).setting, nullptr);
  service.attributes.traffic_distribution = TrafficDistribution::kPreferSameZone;
  const ServiceLocalityLb zone = EffectiveLocalityLb(&mesh, nullptr, service);
  ASSERT_NE(zone.setting, nullptr) << "the mesh's setting does not matter";
  EXPECT_TRUE(zone.fails_over);
  EXPECT_EQ(zone.setting->failover_priority.size(), 3u);
  EXPECT_EQ(zone.setting->failover_priority.back(), kZoneLabel);
  service.attributes.traffic_distribution = TrafficDistribution::kPreferSameNode;
  EXPECT_EQ(EffectiveLocalityLb(&mesh, nullptr, service).setting->failover_priority.back(), kHostnameLabel);
  EXPECT_EQ(EffectiveLocalityLb(&mesh, &rule, service).setting, &rule);
  EXPECT_FALSE(EffectiveLocalityLb(&mesh, &rule, service).fails_over);
}

TEST(Locality, FailoverNeedsOutlierDetection) {
  const config::LocalityLbSetting setting;
  LoadAssignment a = Localities({{"us/e/a", 1}, {"us/e/b", 1}, {"us/w", 1}, {"eu", 1}});
  ApplyLocalityLb(setting, false, SplitLocality("us/e/a"), {}, true, a);
  EXPECT_THAT(Priorities(a), ElementsAre(0, 0, 0, 0));
  ApplyLocalityLb(setting, true, SplitLocality("us/e/a"), {}, true, a);
  EXPECT_THAT(Priorities(a), ElementsAre(0, 1, 2, 3));
}

TEST(Locality, PrioritiesHaveNoGaps) {
  LoadAssignment a = Localities({{"eu", 1}, {"us/w", 1}});
  ApplyLocalityLb({}, true, SplitLocality("us/e/a"), {}, true, a);
  EXPECT_THAT(Priorities(a), ElementsAre(1, 0));
}

TEST(Locality, FailoverRuleKeepsOtherRegionsForLast) {
  config::LocalityLbSetting setting;
  setting.failover.push_back({"us", "eu"});
  LoadAssignment a = Localities({{"asia", 1}, {"eu", 1}, {"us", 1}});
  ApplyLocalityLb(setting, true, SplitLocality("us"), {}, true, a);
  EXPECT_THAT(Priorities(a), ElementsAre(2, 1, 0));
}

TEST(Locality, DistributeSharesByWeightRoundsUpAndEmptiesTheRest) {
  config::LocalityLbSetting setting;
  setting.distribute.push_back({"us/*", {{"us/e/*", 70}, {"eu", 30}}});
  LoadAssignment a = Localities({{"asia", 5}, {"eu", 4}, {"us/e/a", 1}, {"us/e/b", 2}});
  ApplyLocalityLb(setting, false, SplitLocality("us/e/a"), {}, true, a);
  EXPECT_THAT(Weights(a), ElementsAre(5, 30, 24, 47));
  EXPECT_TRUE(a.localities[0].endpoints.empty());
  EXPECT_FALSE(a.localities[1].endpoints.empty());
}

TEST(Locality, DistributeForOtherLocalitiesChangesNothing) {
  config::LocalityLbSetting setting;
  setting.distribute.push_back({"eu", {{"eu", 100}}});
  LoadAssignment a = Localities({{"us", 3}});
  ApplyLocalityLb(setting, true, SplitLocality("us"), {}, true, a);
  EXPECT_THAT(Weights(a), ElementsAre(3));
  EXPECT_EQ(a.localities[0].endpoints.size(), 1u);
}

TEST(Locality, FailoverPrioritySplitsALocalityByLabels) {
  const Labels near = {{"zone", "1"}, {"rack", "x"}}, rack_differs = {{"zone", "1"}, {"rack", "y"}},
               far = {{"zone", "2"}};
  config::LocalityLbSetting setting;
  setting.failover_priority = {"zone", "rack=x"};
  LoadAssignment a;
  for (const Labels* labels : {&far, &near, &rack_differs}) a.shapes.push_back({"", labels});
  LocalityLbEndpoints group;
  group.locality = "us";
  for (uint32_t shape = 0; shape < 3; ++shape) group.endpoints.push_back({&kAddress, 80, shape + 1, shape, 1});
  a.localities.push_back(group);
  ApplyLocalityLb(setting, true, SplitLocality("us"), {{"zone", "1"}, {"rack", "ignored"}}, true, a);
  EXPECT_THAT(Priorities(a), ElementsAre(0, 1, 2));
  EXPECT_THAT(Weights(a), ElementsAre(2, 3, 1));
  EXPECT_EQ(a.localities[0].endpoints[0].shape, 1u);
}

TEST(Locality, FailoverPriorityNeedsProxyLabelsAndEndpointLabels) {
  config::LocalityLbSetting setting;
  setting.failover_priority = {"zone"};
  LoadAssignment a = Localities({{"eu", 1}, {"us", 1}});
  ApplyLocalityLb(setting, true, SplitLocality("us"), {}, true, a);
  EXPECT_THAT(Priorities(a), ElementsAre(0, 0));
  ApplyLocalityLb(setting, true, SplitLocality("us"), {{"zone", "1"}}, false, a);
  EXPECT_THAT(Priorities(a), ElementsAre(0, 0));
}

}  // namespace
}  // namespace wavetank::pilot
