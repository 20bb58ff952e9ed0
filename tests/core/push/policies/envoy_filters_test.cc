#include "core/push/policies/envoy_filters.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/config/yaml_config.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ApplyTo = EnvoyPatches::ApplyTo;
using Operation = EnvoyPatch::Operation;

class EnvoyFiltersTest : public ::testing::Test {
 protected:
  EnvoyFiltersTest() {
    proxy_.config_namespace = "shop";
    proxy_.metadata.istio_version = "1.18.2";
    proxy_.metadata.raw = nlohmann::json::object({{"CLUSTER_ID", "c1"}, {"N", 1}});
    proxy_.labels = {{"app", "web"}, {"version", "v1"}};
  }
  void Put(const std::string& ns, const std::string& name, const std::string& spec, int second = 0) {
    store_.Put(config::ParseYaml(config::ConfigYaml("EnvoyFilter", ns, name, spec, second)));
  }
  // A patch to clusters, with `more` of it.
  static std::string Cluster(const std::string& more = "") {
    return "configPatches: [{applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 1s}}" + more + "}]";
  }
  // "ns/name" of the patches of a kind that hold for the proxy, in order.
  std::vector<std::string> Names(ApplyTo kind = ApplyTo::kCluster) {
    filters_ = EnvoyFilters(store_.EnvoyFilters(), "istio-system", rules_);
    patches_ = filters_.For(proxy_);
    std::vector<std::string> out;
    if (patches_ == nullptr) return out;
    for (const EnvoyPatch* patch : patches_->Of(kind)) out.push_back(patch->from.ns + "/" + patch->from.name);
    return out;
  }

  EnvoyFilters::Rules rules_;
  config::ConfigStore store_;
  Proxy proxy_;
  EnvoyFilters filters_;
  std::shared_ptr<const EnvoyPatches> patches_;
};

TEST_F(EnvoyFiltersTest, ThoseOfTheRootNamespaceComeBeforeTheProxysOwn) {
  Put("shop", "a", Cluster());
  Put("istio-system", "b", Cluster());
  Put("other", "c", Cluster());
  EXPECT_THAT(Names(), ElementsAre("istio-system/b", "shop/a"));
  proxy_.config_namespace = "istio-system";
  EXPECT_THAT(Names(), ElementsAre("istio-system/b")) << "each once";
  proxy_.config_namespace = "nowhere";
  EXPECT_THAT(Names(), ElementsAre("istio-system/b"));
}

TEST_F(EnvoyFiltersTest, PriorityThenAgeThenNameOrderThem) {
  Put("shop", "late", Cluster(), 9);
  Put("shop", "b", Cluster(), 3);
  Put("shop", "a", Cluster(), 3);
  Put("shop", "first", Cluster() + "\npriority: -1", 9);
  Put("shop", "last", Cluster() + "\npriority: 1");
  EXPECT_THAT(Names(), ElementsAre("shop/first", "shop/a", "shop/b", "shop/late", "shop/last"));
}

TEST_F(EnvoyFiltersTest, AWorkloadSelectorNamesLabelsAllOfWhichAreThere) {
  Put("shop", "mine", Cluster() + "\nworkloadSelector: {labels: {app: web}}");
  Put("shop", "not-mine", Cluster() + "\nworkloadSelector: {labels: {app: web, version: v2}}");
  Put("shop", "all", Cluster() + "\nworkloadSelector: {}");
  EXPECT_THAT(Names(), ElementsAre("shop/all", "shop/mine"));
  proxy_.labels.clear();
  EXPECT_THAT(Names(), ElementsAre("shop/all"));
}

TEST_F(EnvoyFiltersTest, NoneIsToldFromNoneThatSelects) {
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_EQ(patches_, nullptr);
  Put("shop", "other", Cluster() + "\nworkloadSelector: {labels: {app: other}}");
  Names();
  EXPECT_EQ(patches_, nullptr);
}

TEST_F(EnvoyFiltersTest, PatchesMayAskForVersionsAndMetadataOfAProxy) {
  const auto asks = [](const std::string& proxy) { return Cluster(", match: {proxy: " + proxy + "}"); };
  Put("shop", "a", asks("{proxyVersion: '^1\\.18.*'}"), 1);
  Put("shop", "b", asks("{proxyVersion: '^1\\.1.*'}"), 2);
  Put("shop", "c", asks("{proxyVersion: '8\\.2$'}"), 3);
  Put("shop", "d", asks("{proxyVersion: '^1\\.17.*'}"), 4);
  Put("shop", "e", asks("{proxyVersion: '(['}"), 5);
  Put("shop", "f", asks("{metadata: {CLUSTER_ID: c1}}"), 6);
  Put("shop", "g", asks("{metadata: {CLUSTER_ID: c2}}"), 7);
  Put("shop", "h", asks("{metadata: {N: '1'}}"), 8);
  EXPECT_THAT(Names(), ElementsAre("shop/a", "shop/b", "shop/c", "shop/e", "shop/f"))
      << "an expression that is none asks for nothing";
  proxy_.metadata.istio_version.clear();
  EXPECT_THAT(Names(), ElementsAre("shop/e", "shop/f")) << "a proxy without version has none of the expressions";
}

TEST_F(EnvoyFiltersTest, WhereNothingHasAPlaceInsertingIsAdding) {
  const auto patch = [](const char* kind, const char* operation) {
    return std::string("{applyTo: ") + kind + ", patch: {operation: " + operation + ", value: {name: x}}}";
  };
  Put("shop", "a",
      "configPatches: [" + patch("LISTENER", "INSERT_BEFORE") + ", " + patch("HTTP_FILTER", "INSERT_BEFORE") + ", " +
          patch("VIRTUAL_HOST", "INSERT_FIRST") + ", " + patch("LISTENER_FILTER", "INSERT_AFTER") + "]");
  Names();
  EXPECT_EQ(patches_->Of(ApplyTo::kListener)[0]->operation, Operation::kAdd);
  EXPECT_EQ(patches_->Of(ApplyTo::kHttpFilter)[0]->operation, Operation::kInsertBefore);
  EXPECT_EQ(patches_->Of(ApplyTo::kVirtualHost)[0]->operation, Operation::kAdd);
  EXPECT_EQ(patches_->Of(ApplyTo::kListenerFilter)[0]->operation, Operation::kInsertAfter);
}

TEST_F(EnvoyFiltersTest, AValueThatCannotBeReadIsNoValueAndAPatchWithoutPatchIsNone) {
  Put("shop", "a",
      "configPatches: [{applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 1}}}, {applyTo: CLUSTER}, "
      "{applyTo: CLUSTER, patch: {operation: MERGE, value: {unknown: 1}}}]");
  Names();
  const auto& patches = patches_->Of(ApplyTo::kCluster);
  ASSERT_EQ(patches.size(), 2u);
  EXPECT_EQ(patches[0]->value, nullptr);
  EXPECT_NE(patches[1]->value, nullptr);
}

TEST_F(EnvoyFiltersTest, NamesThoseThatPatchAKind) {
  Put("shop", "b", Cluster());
  Put("istio-system", "c", Cluster());
  Put("shop", "a", "configPatches: [{applyTo: HTTP_ROUTE, patch: {operation: REMOVE}}]");
  Names();
  const auto names = [&](std::initializer_list<ApplyTo> kinds) {
    std::vector<std::string> out;
    for (const ConfigKey& key : patches_->From(kinds)) out.push_back(key.ns + "/" + key.name);
    return out;
  };
  EXPECT_THAT(names({ApplyTo::kCluster}), ElementsAre("istio-system/c", "shop/b"));
  EXPECT_THAT(names({ApplyTo::kCluster, ApplyTo::kHttpRoute}), ElementsAre("istio-system/c", "shop/a", "shop/b"));
  EXPECT_THAT(names({ApplyTo::kListener}), IsEmpty());
}

TEST_F(EnvoyFiltersTest, TargetsNameGatewaysSinceTheReleaseThatReadsThem) {
  Put("shop", "a", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: door}]\n" + Cluster());
  EXPECT_THAT(Names(), ElementsAre("shop/a")) << "no field: it holds for all";
  rules_.by_target = true;
  EXPECT_THAT(Names(), ElementsAre());
  proxy_.labels["gateway.networking.k8s.io/gateway-name"] = "door";
  EXPECT_THAT(Names(), ElementsAre("shop/a"));
  proxy_.labels["gateway.networking.k8s.io/gateway-name"] = "window";
  EXPECT_THAT(Names(), ElementsAre());
}

TEST_F(EnvoyFiltersTest, PriorityGoesBeforeTheNamespaceSinceTheReleaseThatSortsSo) {
  Put("istio-system", "late", Cluster() + "\npriority: 5");
  Put("istio-system", "root", Cluster());
  Put("shop", "own", Cluster());
  EXPECT_THAT(Names(), ElementsAre("istio-system/root", "istio-system/late", "shop/own"));
  rules_.by_priority = true;
  EXPECT_THAT(Names(), ElementsAre("istio-system/root", "shop/own", "istio-system/late"));
}

}  // namespace
}  // namespace wavetank::pilot
