#include "core/profile/changes.h"
#include "tests/core/push/mesh_fixture.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DestinationRulesTest : public MeshTest {
 protected:
  // Names of the subsets of each rule for `service`, as clients of `ns` see them.
  std::vector<std::vector<std::string>> Subsets(const std::string& ns, const Service& service) {
    std::vector<std::vector<std::string>> out;
    for (const ConsolidatedDestRuleRef& rule : Push()->DestinationRules(ns, service)) {
      std::vector<std::string>& names = out.emplace_back();
      for (const config::Subset& subset : rule->rule->spec.subsets) names.push_back(subset.name);
    }
    return out;
  }
  using Lists = std::vector<std::vector<std::string>>;
};

TEST_F(DestinationRulesTest, RulesOfOneHostAreMergedWithTheOldestPolicy) {
  const auto service = AddService("a", "ns");
  Put("DestinationRule", "ns", "young", R"(host: a.ns.svc.cluster.local
trafficPolicy: {loadBalancer: {simple: RANDOM}}
subsets: [{name: v1, labels: {x: young}}, {name: v2}])",
      2);
  Put("DestinationRule", "ns", "old", R"(host: a
trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}
subsets: [{name: v1, labels: {x: old}}])",
      1);
  const auto rules = Push()->DestinationRules("client", *service);
  ASSERT_EQ(rules.size(), 1u);
  const config::DestinationRule& spec = rules[0]->rule->spec;
  EXPECT_EQ(rules[0]->rule->meta.name, "old");
  EXPECT_EQ(spec.host, "a.ns.svc.cluster.local");
  EXPECT_EQ(spec.traffic_policy->load_balancer->simple, config::LoadBalancerSettings::Simple::kRoundRobin);
  ASSERT_EQ(spec.subsets.size(), 2u);
  EXPECT_EQ(spec.subsets[0].labels.at("x"), "old");
  EXPECT_THAT(rules[0]->from, ElementsAre(ConfigKey{ConfigKind::kDestinationRule, "old", "ns"},
                                          ConfigKey{ConfigKind::kDestinationRule, "young", "ns"}));
}

TEST_F(DestinationRulesTest, ClientsNamespaceBeatsServicesNamespaceBeatsRoot) {
  const auto service = AddService("a", "ns");
  Put("DestinationRule", "client", "r", "host: a.ns.svc.cluster.local\nsubsets: [{name: client}]");
  Put("DestinationRule", "ns", "r", "host: a\nsubsets: [{name: service}]");
  Put("DestinationRule", "istio-system", "r", "host: \"*.cluster.local\"\nsubsets: [{name: root}]");
  EXPECT_EQ(Subsets("client", *service), Lists({{"client"}}));
  EXPECT_EQ(Subsets("other", *service), Lists({{"service"}}));
  configs.Delete(config::Kind::kDestinationRule, "r", "ns");
  EXPECT_EQ(Subsets("other", *service), Lists({{"root"}}));
}

TEST_F(DestinationRulesTest, ClientsInTheRootNamespaceSeeTheServicesRuleBeforeTheExportedRootOne) {
  const auto service = AddService("a", "ns");
  Put("DestinationRule", "ns", "r", "host: a\nsubsets: [{name: service}]");
  Put("DestinationRule", "istio-system", "r", "host: \"*.local\"\nsubsets: [{name: root}]");
  EXPECT_EQ(Subsets("istio-system", *service), Lists({{"service"}}));
  Put("DestinationRule", "istio-system", "r", "host: \"*.local\"\nsubsets: [{name: root}]\nexportTo: [\".\"]");
  EXPECT_EQ(Subsets("istio-system", *service), Lists({{"root"}}));
}

TEST_F(DestinationRulesTest, ExportToKeepsOthersOut) {
  const auto service = AddService("a", "ns");
  Put("DestinationRule", "ns", "r", "host: a\nsubsets: [{name: s}]\nexportTo: [\".\"]");
  EXPECT_EQ(Subsets("ns", *service), Lists({{"s"}}));
  EXPECT_THAT(Subsets("client", *service), IsEmpty());
  Put("DestinationRule", "ns", "r", "host: a\nsubsets: [{name: s}]\nexportTo: [client]");
  EXPECT_EQ(Subsets("client", *service), Lists({{"s"}}));
  EXPECT_THAT(Subsets("other", *service), IsEmpty());
}

TEST_F(DestinationRulesTest, MergedRulesShareTheExportOfTheFirstThatHasOne) {
  const auto service = AddService("a", "ns");
  Put("DestinationRule", "ns", "a", "host: a\nsubsets: [{name: open}]");
  Put("DestinationRule", "ns", "b", "host: a\nsubsets: [{name: closed}]\nexportTo: [client]", 1);
  EXPECT_EQ(Subsets("client", *service), Lists({{"open", "closed"}}));
  EXPECT_THAT(Subsets("other", *service), IsEmpty()) << "an older rule's silence is overruled";
}

TEST_F(DestinationRulesTest, ARuleForWorkloadsStaysAloneAndIsMergedIntoTheOther) {
  const auto service = AddService("a", "ns");
  Put("DestinationRule", "ns", "all", "host: a\nsubsets: [{name: all}]");
  Put("DestinationRule", "ns", "some", "host: a\nworkloadSelector: {matchLabels: {app: c}}\nsubsets: [{name: some}]",
      1);
  EXPECT_EQ(Subsets("ns", *service), Lists({{"all", "some"}, {"some"}}));
  EXPECT_EQ(Subsets("client", *service), Lists({{"all"}})) << "rules for workloads hold in their namespace only";

  Proxy chosen = Sidecar("ns", {{"app", "c"}}), other = Sidecar("ns", {{"app", "d"}});
  const PushContextRef push = Push();
  SetSidecarScope(chosen, *push);
  SetSidecarScope(other, *push);
  const auto name = [&](const Proxy& proxy, TrafficDirection direction) {
    return proxy.sidecar_scope->DestinationRule(direction, proxy, service->hostname)->rule->meta.name;
  };
  EXPECT_EQ(name(chosen, TrafficDirection::kOutbound), "some");
  EXPECT_EQ(name(other, TrafficDirection::kOutbound), "all");
  EXPECT_EQ(name(chosen, TrafficDirection::kInbound), "all");
}

TEST_F(DestinationRulesTest, RulesForDifferentWorkloadsAreNotMerged) {
  const auto service = AddService("a", "ns");
  for (const char* app : {"c", "d"}) {
    Put("DestinationRule", "ns", app,
        std::string("host: a\nsubsets: [{name: ") + app + "}]\nworkloadSelector: {matchLabels: {app: " + app + "}}");
  }
  EXPECT_EQ(Subsets("ns", *service), Lists({{"c"}, {"d"}}));
}

TEST_F(DestinationRulesTest, MostSpecificHostWins) {
  const auto service = AddService("a", "ns");
  Put("DestinationRule", "client", "wide", "host: \"*\"\nsubsets: [{name: wide}]");
  Put("DestinationRule", "client", "narrow", "host: \"*.ns.svc.cluster.local\"\nsubsets: [{name: narrow}]");
  EXPECT_EQ(Subsets("client", *service), Lists({{"narrow"}}));
}

TEST_F(DestinationRulesTest, RulesOfOneHostAreMergedByWhomTheyAreExportedToByProfile) {
  const auto service = AddService("a", "x");
  const auto rule = [](const char* subset, const char* to) {
    return std::string("host: a.x.svc.cluster.local\nsubsets: [{name: ") + subset + "}]\nexportTo: " + to;
  };
  Put("DestinationRule", "x", "first", rule("first", "['y']"), 1);
  Put("DestinationRule", "x", "second", rule("second", "[z]"), 2);
  Put("DestinationRule", "x", "third", rule("third", "['y', z]"), 3);
  const auto subsets = [&](const char* client) {
    std::vector<std::string> out;
    for (const ConsolidatedDestRuleRef& found : Push()->DestinationRules(client, *service)) {
      for (const config::Subset& subset : found->rule->spec.subsets) out.push_back(subset.name);
    }
    return out;
  };
  EXPECT_THAT(subsets("y"), ElementsAre("first", "second", "third"));
  EXPECT_THAT(subsets("z"), IsEmpty());
  Profile profile;
  profile.Set(Change::kRulesMergedByExport);
  env.profile = &profile;
  EXPECT_THAT(subsets("y"), ElementsAre("first", "third"));
  EXPECT_THAT(subsets("z"), ElementsAre("second", "third"));
  EXPECT_THAT(subsets("w"), IsEmpty());
}

TEST_F(DestinationRulesTest, RulesWithASelectorComeFirstByProfile) {
  const auto service = AddService("a", "x");
  Put("DestinationRule", "x", "all", "host: a.x.svc.cluster.local", 1);
  Put("DestinationRule", "x", "some", "{host: a.x.svc.cluster.local, workloadSelector: {matchLabels: {app: b}}}", 2);
  const auto first = [&] { return Push()->DestinationRules("x", *service)[0]->rule->meta.name; };
  EXPECT_EQ(first(), "all");
  Profile profile;
  profile.Set(Change::kSelectorsFirst);
  env.profile = &profile;
  EXPECT_EQ(first(), "some");
}

}  // namespace
}  // namespace wavetank::pilot
