#include "core/config/store/store.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/config/yaml_config.h"

namespace wavetank::config {
namespace {

using ::testing::ElementsAre;

AnyConfigRef Rule(std::string_view ns, std::string_view name, int second = 0, std::string_view spec = "host: a") {
  return ParseYaml(ConfigYaml("DestinationRule", ns, name, spec, second));
}

std::vector<std::string> Names(const std::vector<DestinationRuleRef>& rules) {
  std::vector<std::string> out;
  for (const DestinationRuleRef& rule : rules) out.push_back(rule->meta.ns + "/" + rule->meta.name);
  return out;
}

TEST(ConfigStoreTest, SortsByCreationThenNameAndNamespace) {
  ConfigStore store;
  store.Put(Rule("b", "young", 9));
  store.Put(Rule("b", "x"));
  store.Put(Rule("a", "x"));
  store.Put(Rule("z", "a"));
  EXPECT_THAT(Names(store.DestinationRules()), ElementsAre("z/a", "a/x", "b/x", "b/young"));
}

TEST(ConfigStoreTest, TiesGoByNameAndNamespaceWithADotBetweenOrByTheNameFirst) {
  ConfigStore store;
  store.Put(Rule("z", "web"));
  store.Put(Rule("a", "web-canary"));
  EXPECT_THAT(Names(store.DestinationRules()), ElementsAre("a/web-canary", "z/web"));
  store.SetTie(ConfigStore::Tie::kName);
  EXPECT_THAT(Names(store.DestinationRules()), ElementsAre("z/web", "a/web-canary"));
}

TEST(ConfigStoreTest, HandlersOfTheKindHearAddUpdateAndDelete) {
  ConfigStore store;
  std::vector<std::string> log;
  store.AddHandler(Kind::kDestinationRule, [&](ConfigEvent event, const AnyConfigRef* old, const AnyConfigRef& now) {
    log.push_back(std::string(event == ConfigEvent::kAdd      ? "+"
                              : event == ConfigEvent::kUpdate ? "~"
                                                              : "-") +
                  MetaOf(now).name + (old != nullptr ? "*" : ""));
  });
  store.Put(Rule("ns", "r"));
  store.Put(Rule("ns", "r"));
  store.Put(ParseYaml(ConfigYaml("Gateway", "ns", "g", "")));
  store.Delete(Kind::kDestinationRule, "r", "ns");
  store.Delete(Kind::kDestinationRule, "r", "ns");
  EXPECT_THAT(log, ElementsAre("+r", "~r*", "-r"));
  EXPECT_TRUE(store.DestinationRules().empty());
  EXPECT_EQ(store.Gateways().size(), 1u);
}

TEST(NeedsPushTest, OnlySpecAndIstiosOwnLabelsCount) {
  EXPECT_FALSE(NeedsPush(Rule("ns", "r"), Rule("ns", "r", 3)));
  EXPECT_TRUE(NeedsPush(Rule("ns", "r"), Rule("ns", "r", 0, "host: b")));
  auto labelled = std::make_shared<TypedConfig<DestinationRule>>(*std::get<DestinationRuleRef>(Rule("ns", "r")));
  labelled->meta.labels["team"] = "x";
  EXPECT_FALSE(NeedsPush(Rule("ns", "r"), DestinationRuleRef(labelled)));
  labelled->meta.annotations["istio.io/note"] = "x";
  EXPECT_TRUE(NeedsPush(Rule("ns", "r"), DestinationRuleRef(labelled)));
  EXPECT_TRUE(NeedsPush(DestinationRuleRef(labelled), Rule("ns", "r")));
}

}  // namespace
}  // namespace wavetank::config
