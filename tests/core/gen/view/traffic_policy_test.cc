#include "core/gen/view/traffic_policy.h"

#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

config::DestinationRule Rule() {
  config::DestinationRule rule;
  auto& top = rule.traffic_policy.emplace();
  top.load_balancer.emplace().simple = config::LoadBalancerSettings::Simple::kRandom;
  top.outlier_detection.emplace();
  config::PortTrafficPolicy port;
  port.port = 90;
  port.tls.emplace();
  top.port_level_settings.push_back(port);
  config::Subset subset;
  subset.name = "v1";
  subset.traffic_policy.emplace().load_balancer.emplace().simple = config::LoadBalancerSettings::Simple::kRoundRobin;
  rule.subsets.push_back(subset);
  subset.name = "plain";
  subset.traffic_policy.reset();
  rule.subsets.push_back(subset);
  return rule;
}

TEST(TrafficPolicy, SubsetOverridesPartByPart) {
  const auto rule = Rule();
  const EffectivePolicy policy = PolicyFor(&rule, "v1", 80);
  EXPECT_EQ(SimpleLbOf(policy.load_balancer), config::LoadBalancerSettings::Simple::kRoundRobin);
  EXPECT_NE(policy.outlier_detection, nullptr);
  EXPECT_EQ(policy.tls, nullptr);
}

TEST(TrafficPolicy, PortInheritsNothing) {
  const auto rule = Rule();
  const EffectivePolicy policy = PolicyFor(&rule, "plain", 90);
  EXPECT_NE(policy.tls, nullptr);
  EXPECT_EQ(policy.load_balancer, nullptr);
  EXPECT_EQ(policy.outlier_detection, nullptr);
}

TEST(TrafficPolicy, SubsetOverridesWhatThePortSays) {
  const auto rule = Rule();
  const EffectivePolicy policy = PolicyFor(&rule, "v1", 90);
  EXPECT_NE(policy.tls, nullptr);
  EXPECT_EQ(SimpleLbOf(policy.load_balancer), config::LoadBalancerSettings::Simple::kRoundRobin);
}

TEST(TrafficPolicy, UnknownSubsetHasTheRulesPolicy) {
  const auto rule = Rule();
  EXPECT_EQ(SimpleLbOf(PolicyFor(&rule, "v9", 80).load_balancer), config::LoadBalancerSettings::Simple::kRandom);
  EXPECT_EQ(PolicyFor(nullptr, "v1", 80).load_balancer, nullptr);
}

TEST(TrafficPolicy, SettingsOfAPortLeaveProxyProtocolAndRetryBudgetAsTheyAre) {
  config::DestinationRule rule;
  rule.traffic_policy.emplace().proxy_protocol = config::ProxyProtocolVersion::kV2;
  rule.traffic_policy->retry_budget.emplace().percent = 5;
  config::Subset& subset = rule.subsets.emplace_back();
  subset.name = "v1";
  subset.traffic_policy.emplace().port_level_settings.emplace_back().port = 80;
  const EffectivePolicy of_port = PolicyFor(&rule, "v1", 80);
  ASSERT_NE(of_port.proxy_protocol, nullptr);
  ASSERT_NE(of_port.retry_budget, nullptr);
  EXPECT_EQ(of_port.retry_budget->percent, 5);
  rule.traffic_policy->port_level_settings.emplace_back().port = 80;
  EXPECT_EQ(PolicyFor(&rule, "", 80).proxy_protocol, nullptr) << "of the rule's own ports they are no setting";
}

}  // namespace
}  // namespace wavetank::pilot
