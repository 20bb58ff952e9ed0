// Statuses that istiod writes into configurations: how many proxies have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/json_access.h"
#include "core/istiod/distribution_reporter.h"
#include "sim/istiod_process.h"
#include "sim/mending/installation.h"
#include "sim/world_site.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class ConfigStatusWorld : public TwoClusterWorld {
 protected:
  void Begin(const json& env) {
    absl::StatusOr<std::unique_ptr<World>> world = World::Create(TwoClusters(false));
    ASSERT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
    Do("cacerts", {{"cluster", "cluster1"}, {"root", "root"}});
    Do("install", {{"cluster", "cluster1"}});
    json patch = world_->cluster("cluster1").api().Get("Deployment", {kSystemNamespace, "istiod"})->body;
    patch["spec"]["template"]["spec"]["containers"][0]["env"] = env;
    Do("apply", {{"cluster", "cluster1"}, {"object", patch}});
    world_->RunUntilSettled(world_->Now() + 3min);
    for (const char* file : {"sample", "sleep", "helloworld-service"}) Apply("cluster1", file);
    world_->RunUntilSettled(world_->Now() + 1min);
  }
  void Run(Duration duration) { world_->RunUntil(world_->Now() + duration); }
  void Route(int timeout_seconds) {
    Do("apply", {{"cluster", "cluster1"},
                 {"object",
                  {{"apiVersion", "networking.istio.io/v1alpha3"},
                   {"kind", "VirtualService"},
                   {"metadata", {{"name", "route"}, {"namespace", "sample"}}},
                   {"spec",
                    {{"hosts", {"helloworld"}},
                     {"http",
                      {{{"timeout", std::to_string(timeout_seconds) + "s"},
                        {"route", {{{"destination", {{"host", "helloworld"}}}}}}}}}}}}}});
  }
  json Condition() {
    const kube::ObjectRef object = world_->cluster("cluster1").api().Get("VirtualService", {"sample", "route"});
    for (const json& condition : Items(At(object->body, {"status", "conditions"}))) {
      if (Text(condition, "type") == "Reconciled") return condition;
    }
    return {};
  }
  kube::ObjectRef Report() {
    for (const kube::ObjectRef& map : world_->cluster("cluster1").api().List("ConfigMap", "istio-system")) {
      if (map->meta.labels.contains("internal.istio.io/distribution-report")) return map;
    }
    return nullptr;
  }
};

const json kTracking = {{{"name", "CLUSTER_ID"}, {"value", "cluster1"}},
                        {{"name", "PILOT_ENABLE_STATUS"}, {"value", "true"}},
                        {{"name", "PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING"}, {"value", "true"}}};

TEST_F(ConfigStatusWorld, AConfigurationThatAllProxiesHaveIsReconciled) {
  Begin(kTracking);
  Route(5);
  Run(5s);
  EXPECT_EQ(Text(Condition(), "status"), "True");
  // The proxy of sleep: clusters, listeners, routes and endpoints.
  EXPECT_EQ(Text(Condition(), "message"), "4/4 proxies up to date.");
  const kube::ObjectRef object = world_->cluster("cluster1").api().Get("VirtualService", {"sample", "route"});
  EXPECT_EQ(Text(At(object->body, "status"), "observedGeneration"), std::to_string(object->meta.generation));
}

TEST_F(ConfigStatusWorld, EachIstiodReportsIntoAConfigMapOfItsPod) {
  Begin(kTracking);
  Route(5);
  Run(5s);
  const kube::ObjectRef report = Report();
  ASSERT_NE(report, nullptr);
  EXPECT_THAT(report->meta.name, EndsWith("-distribution"));
  EXPECT_THAT(report->body["data"]["distribution-report"].get<std::string>(),
              HasSubstr("networking.istio.io/v1alpha3/virtualservices/sample/route/1: 4\n"));
}

TEST_F(ConfigStatusWorld, AnotherGenerationIsCountedAnew) {
  Begin(kTracking);
  Route(5);
  Run(5s);
  Route(6);
  Run(5s);
  const kube::ObjectRef object = world_->cluster("cluster1").api().Get("VirtualService", {"sample", "route"});
  EXPECT_EQ(object->meta.generation, 2);
  EXPECT_EQ(Text(At(object->body, "status"), "observedGeneration"), "2");
}

TEST_F(ConfigStatusWorld, WithoutTheVariableNothingIsWritten) {
  Begin(json::array());
  Route(5);
  Run(5s);
  EXPECT_TRUE(Condition().is_null());
  EXPECT_EQ(Report(), nullptr);
}

TEST(DistributionReport, IsReadAsItWasWritten) {
  pilot::DistributionReport report;
  report.reporter = "istiod-1";
  report.data_planes = 8;
  report.in_progress = {{"networking.istio.io/v1alpha3/gateways/a/b/3", 5}};
  const std::string yaml = pilot::ReportYaml(report);
  EXPECT_EQ(yaml,
            "dataPlaneCount: 8\ninProgressResources:\n  networking.istio.io/v1alpha3/gateways/a/b/3: 5\n"
            "reporter: istiod-1\n");
  const auto again = pilot::ParseReport(yaml);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->in_progress, report.in_progress);
  EXPECT_EQ(again->data_planes, 8);
  EXPECT_FALSE(pilot::ParseReport("- no\n").ok());
}

}  // namespace
}  // namespace wavetank::sim
