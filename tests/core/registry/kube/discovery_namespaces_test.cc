#include "core/registry/kube/discovery_namespaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

kube::ObjectRef NamespaceWith(const std::string& name, const kube::Labels& labels) {
  return *kube::Object::FromJson(
      {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}, {"labels", labels}}}});
}

const nlohmann::json& ProductionOnly() {
  static const auto* const selectors =
      new nlohmann::json(nlohmann::json::parse(R"([{"matchLabels": {"env": "prod"}}])"));
  return *selectors;
}

TEST(DiscoveryNamespacesTest, WithoutSelectorsEveryNamespaceIsRead) {
  DiscoveryNamespaces namespaces;
  EXPECT_FALSE(namespaces.limited());
  EXPECT_TRUE(namespaces.Contains("never-seen"));
  EXPECT_TRUE(namespaces.Added(*NamespaceWith("a", {})));
}

TEST(DiscoveryNamespacesTest, NewSelectorsSayWhichNamespacesCameAndWent) {
  DiscoveryNamespaces namespaces;
  const std::vector<kube::ObjectRef> all = {NamespaceWith("a", {{"env", "prod"}}), NamespaceWith("b", {})};
  for (const kube::ObjectRef& ns : all) namespaces.Added(*ns);
  const DiscoveryNamespaces::Change narrower = namespaces.SetSelectors(ProductionOnly(), all);
  EXPECT_THAT(narrower.selected, IsEmpty());
  EXPECT_THAT(narrower.deselected, ElementsAre("b"));
  EXPECT_TRUE(namespaces.Contains("a"));
  EXPECT_FALSE(namespaces.Contains("b"));
  EXPECT_FALSE(namespaces.Contains("never-seen"));
  const DiscoveryNamespaces::Change wider = namespaces.SetSelectors(nullptr, all);
  EXPECT_THAT(wider.selected, ElementsAre("b"));
  EXPECT_THAT(wider.deselected, IsEmpty());
}

TEST(DiscoveryNamespacesTest, SelectorsAreAlternatives) {
  DiscoveryNamespaces namespaces;
  const auto selectors = nlohmann::json::parse(
      R"([{"matchLabels": {"env": "prod", "tier": "1"}},
          {"matchExpressions": [{"key": "env", "operator": "In", "values": ["test"]}]}])");
  const auto change = namespaces.SetSelectors(
      selectors, {NamespaceWith("one", {{"env", "prod"}, {"tier", "1"}}), NamespaceWith("two", {{"env", "prod"}}),
                  NamespaceWith("three", {{"env", "test"}})});
  EXPECT_THAT(change.selected, ElementsAre("one", "three"));
}

TEST(DiscoveryNamespacesTest, AnInvalidSelectorLeavesAllAsItWas) {
  DiscoveryNamespaces namespaces;
  const std::vector<kube::ObjectRef> all = {NamespaceWith("a", {{"env", "prod"}}), NamespaceWith("b", {})};
  namespaces.SetSelectors(ProductionOnly(), all);
  const auto bad =
      nlohmann::json::parse(R"([{}, {"matchExpressions": [{"key": "env", "operator": "Near", "values": ["prod"]}]}])");
  const DiscoveryNamespaces::Change change = namespaces.SetSelectors(bad, all);
  EXPECT_THAT(change.selected, IsEmpty());
  EXPECT_FALSE(namespaces.Contains("b"));
}

TEST(DiscoveryNamespacesTest, ANamespaceComesAndGoesWithItsLabels) {
  DiscoveryNamespaces namespaces;
  namespaces.SetSelectors(ProductionOnly(), {});
  EXPECT_FALSE(namespaces.Added(*NamespaceWith("a", {})));
  EXPECT_THAT(namespaces.Updated(*NamespaceWith("a", {{"env", "prod"}})).selected, ElementsAre("a"));
  EXPECT_TRUE(namespaces.Contains("a"));
  EXPECT_THAT(namespaces.Updated(*NamespaceWith("a", {{"env", "prod"}, {"x", "y"}})).selected, IsEmpty());
  EXPECT_THAT(namespaces.Updated(*NamespaceWith("a", {})).deselected, ElementsAre("a"));
  namespaces.Added(*NamespaceWith("b", {{"env", "prod"}}));
  namespaces.Deleted(*NamespaceWith("b", {{"env", "prod"}}));
  EXPECT_FALSE(namespaces.Contains("b"));
}

}  // namespace
}  // namespace wavetank::pilot
