#include "capacity/recorded/fleet_of_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "capacity/fleet/manifests.h"
#include "capacity/recorded/fit_endpoints.h"
#include "core/base/status.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "tests/replay/temp_folder.h"

namespace wavetank::capacity {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPage[] = R"(
name: Shop
seed: 11
duration: 20m
clusters: {count: 2, namespaces: 3, nodes: 4, zones: 2}
services: {perCluster: 6, shared: 50%, endpoints: {range: {least: 1, most: 4}}}
proxies: {perCluster: 12, gateways: 1}
configuration: {virtualServices: 50%, destinationRules: 50%}
)";

Fleet Parsed(const std::string& text) {
  const auto fleet = ParseFleet("fleet.yaml", text);
  EXPECT_TRUE(fleet.ok()) << fleet.status();
  return fleet.ok() ? *fleet : Fleet();
}

// The log of a run of the page's scenario, with its control planes in the namespace `system`.
std::string LogOf(const std::string& name, const Fleet& fleet, const std::string& system = "istio-system") {
  const std::string folder = testing::TempDir() + "/recorded-" + name, log = folder + ".wtlog";
  EXPECT_TRUE(WriteScenario(fleet, folder).ok());
  for (const char* file : {"/cluster1.yaml", "/cluster2.yaml"}) {
    const std::string text = absl::StrReplaceAll(ReadAll(folder + file), {{"istio-system", system}});
    WriteAll(folder + file, text);
  }
  const auto loaded = scenario::LoadScenario(folder);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  scenario::RunOptions options;
  options.log = log;
  const auto result = scenario::Run(*loaded, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return log;
}

RecordedFleet Like(const std::string& log) {
  const auto read = FleetOfLog(log);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : RecordedFleet();
}

TEST(FleetOfLog, HasTheShapesOfTheMesh) {
  const Fleet fleet = Parsed(std::string(kPage) + "churn: {configEdits: {every: 2m}}\n");
  const Fleet like = Like(LogOf("shapes", fleet)).fleet;
  EXPECT_EQ(like.clusters, 2);
  EXPECT_FALSE(like.one_network);
  EXPECT_EQ(like.namespaces, 3);
  EXPECT_EQ(like.nodes, 4);
  EXPECT_EQ(like.zones, 2);
  EXPECT_EQ(like.services, 6);
  EXPECT_EQ(like.shared_ppm, 500'000);
  EXPECT_EQ(like.gateways, 1);
  // A Deployment gets sidecars as a whole, and what is left are clients.
  EXPECT_EQ(like.proxies, 12);
  EXPECT_EQ(like.scope, 0);
  EXPECT_EQ(like.istiod.replicas, 1);
  EXPECT_EQ(like.endpoints.kind, EndpointsSpec::Kind::kRange);
  EXPECT_NEAR(static_cast<double>(TotalEndpoints(like)), static_cast<double>(TotalEndpoints(fleet)), 6);
}

TEST(FleetOfLog, CountsNoServiceOfAControlPlaneWhereverItIsInstalled) {
  const Fleet like =
      Like(LogOf("elsewhere", Parsed(std::string(kPage) + "churn: {configEdits: {every: 2m}}\n"), "mesh-control"))
          .fleet;
  EXPECT_EQ(like.services, 6);
  EXPECT_EQ(like.namespaces, 3);
}

TEST(FleetOfLog, SeesWhatASidecarLetsItsProxiesSee) {
  const Fleet fleet = Parsed(std::string(kPage) + "churn: {configEdits: {every: 2m}}\n");
  Fleet scoped = fleet;
  scoped.scope = 3;
  const Fleet like = Like(LogOf("scoped", scoped)).fleet;
  EXPECT_GE(like.scope, 2);
  EXPECT_LE(like.scope, 5);
}

// Each kind alone, so that no other is taken for it.
void ExpectRate(const std::string& name, const std::string& churn, Duration ChurnSpec::*rate, Duration every) {
  SCOPED_TRACE(churn);
  const ChurnSpec like = Like(LogOf(name, Parsed(kPage + churn))).fleet.churn;
  EXPECT_NEAR(static_cast<double>((like.*rate).count()), static_cast<double>(every.count()),
              0.35 * static_cast<double>(every.count()));
  for (Duration ChurnSpec::*other :
       {&ChurnSpec::deploys, &ChurnSpec::autoscaling, &ChurnSpec::node_loss, &ChurnSpec::config_edits,
        &ChurnSpec::secret_rotation, &ChurnSpec::istiod_restarts}) {
    if (other != rate) {
      EXPECT_EQ((like.*other).count(), 0);
    }
  }
}

TEST(FleetOfLog, SeesHowLongPodsTakeToStart) {
  const ChurnSpec like =
      Like(LogOf("starts", Parsed(std::string(kPage) + "churn: {deploys: {every: 2m, podStart: 8s}}\n"))).fleet.churn;
  EXPECT_NEAR(static_cast<double>(like.pod_start.count()), 8e9, 0.2e9);
}

TEST(FleetOfLog, TellsDeploysFromScaling) {
  ExpectRate("deploys", "churn: {deploys: {every: 1m}}\n", &ChurnSpec::deploys, 1min);
  ExpectRate("scaling", "churn: {autoscaling: {every: 1m, swing: 50%}}\n", &ChurnSpec::autoscaling, 1min);
}

TEST(FleetOfLog, TellsEditsSecretsAndIstiodsDeathsApart) {
  ExpectRate("edits", "churn: {configEdits: {every: 1m}}\n", &ChurnSpec::config_edits, 1min);
  ExpectRate("secrets", "churn: {secretRotation: {every: 2m}}\n", &ChurnSpec::secret_rotation, 2min);
  ExpectRate("istiods", "churn: {istiodRestarts: {every: 2m}}\n", &ChurnSpec::istiod_restarts, 2min);
}

TEST(FleetOfLog, TakesTheUnreadyPodsOfALostNodeForNoFlapping) {
  const ChurnSpec like =
      Like(LogOf("nodes", Parsed(std::string(kPage) + "churn: {nodeLoss: {every: 8m}}\n"))).fleet.churn;
  EXPECT_GT(like.node_loss, 4min);
  EXPECT_EQ(like.flapping, 0);
}

TEST(FleetOfLog, CountsPodsThatFlap) {
  const ChurnSpec like =
      Like(LogOf("flapping", Parsed(std::string(kPage) + "churn: {flapping: {pods: 2, every: 30s}}\n"))).fleet.churn;
  EXPECT_EQ(like.flapping, 2);
  // From ready to unready and back are two turns, of which one counts as a loss of readiness.
  EXPECT_GE(like.flapping_every, 25s);
  EXPECT_LE(like.flapping_every, 65s);
  EXPECT_EQ(like.deploys, 0s);
}

TEST(FleetOfLog, SaysWhatNoFleetCanSayAndNothingOfWhatIsNotThere) {
  const RecordedFleet like = Like(LogOf("notes", Parsed(std::string(kPage) + "churn: {configEdits: {every: 5m}}\n")));
  EXPECT_THAT(like.notes, Not(Contains(HasSubstr("traffic"))));
  EXPECT_THAT(like.notes, Not(Contains(HasSubstr("no istiod"))));
}

TEST(FleetOfLog, ThatIsNoneNamesTheFile) {
  const auto none = FleetOfLog("/nowhere/run.wtlog");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(Message(none.status())), HasSubstr("/nowhere/run.wtlog"));
}

TEST(FitEndpoints, FindsTheKindThatDrewThem) {
  Fleet fleet = Parsed(kPage);
  fleet.services = 200;
  fleet.endpoints = {};
  fleet.endpoints.fixed = 7;
  EXPECT_EQ(FitEndpoints(DrawEndpoints(fleet, 0)).kind, EndpointsSpec::Kind::kFixed);
  EXPECT_EQ(FitEndpoints(DrawEndpoints(fleet, 0)).fixed, 7);
  fleet.endpoints.kind = EndpointsSpec::Kind::kRange;
  fleet.endpoints.least = 5;
  fleet.endpoints.most = 45;
  EXPECT_EQ(FitEndpoints(DrawEndpoints(fleet, 0)).kind, EndpointsSpec::Kind::kRange);
  EXPECT_EQ(FitEndpoints(DrawEndpoints(fleet, 0)).least, 5);
  fleet.endpoints.kind = EndpointsSpec::Kind::kZipf;
  fleet.endpoints.most = 400;
  fleet.endpoints.exponent = 0.8;
  const EndpointsSpec zipf = FitEndpoints(DrawEndpoints(fleet, 0));
  EXPECT_EQ(zipf.kind, EndpointsSpec::Kind::kZipf);
  EXPECT_EQ(zipf.most, 400);
  EXPECT_NEAR(zipf.exponent, 0.8, 0.051);
}

// A page's Services are each cluster's: of the ranks over all of them, twice as many endpoints came of a log as it had.
TEST(FitEndpoints, RanksServicesWithinEachOfItsClusters) {
  Fleet fleet = Parsed(kPage);
  fleet.clusters = 4;
  fleet.services = 6;
  fleet.endpoints = {.kind = EndpointsSpec::Kind::kZipf, .most = 8, .exponent = 1};
  std::vector<int64_t> all;
  for (int64_t cluster = 0; cluster < fleet.clusters; ++cluster) {
    for (const int64_t n : DrawEndpoints(fleet, cluster)) all.push_back(n);
  }
  const int64_t before = TotalEndpoints(fleet);
  fleet.endpoints = FitEndpoints(all, 4);
  EXPECT_EQ(fleet.endpoints.kind, EndpointsSpec::Kind::kZipf);
  EXPECT_EQ(fleet.endpoints.most, 8);
  EXPECT_NEAR(fleet.endpoints.exponent, 0.95, 0.051) << "which all draw the same";
  EXPECT_EQ(TotalEndpoints(fleet), before);
  // One that was scaled up in one cluster makes none of the others larger.
  *std::max_element(all.begin(), all.end()) = 11;
  fleet.endpoints = FitEndpoints(all, 4);
  EXPECT_NEAR(static_cast<double>(TotalEndpoints(fleet)), static_cast<double>(before + 3), 8);
}

TEST(FitEndpoints, OfNothingAndOfOneService) {
  EXPECT_EQ(FitEndpoints({}).kind, EndpointsSpec::Kind::kFixed);
  EXPECT_EQ(FitEndpoints({3}).fixed, 3);
}

}  // namespace
}  // namespace wavetank::capacity
