#include "capacity/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "capacity/fleet/churn.h"
#include "capacity/fleet/day.h"
#include "capacity/fleet/fleet_text.h"
#include "capacity/fleet/manifests.h"
#include "capacity/fleet/scale.h"
#include "capacity/fleet/service_graph.h"
#include "core/base/status.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "sim/world.h"

namespace wavetank::capacity {
namespace {

using ::testing::HasSubstr;

constexpr char kPage[] = R"(
name: Test
seed: 7
duration: 2m
clusters: {count: 2, namespaces: 3, nodes: 2}
services: {perCluster: 6, shared: 50%, endpoints: {range: {least: 1, most: 4}}}
proxies: {perCluster: 10, gateways: 1}
configuration: {sidecarScope: 3, virtualServices: 50%, destinationRules: 50%, authorizationPolicies: 50%}
churn:
  deploys: {every: 20s}
  configEdits: {every: 30s}
)";

Fleet Parsed(const std::string& text) {
  const auto fleet = ParseFleet("fleet.yaml", text);
  EXPECT_TRUE(fleet.ok()) << fleet.status();
  return fleet.ok() ? *fleet : Fleet();
}

std::string Why(const std::string& text) {
  const auto fleet = ParseFleet("fleet.yaml", text);
  return fleet.ok() ? "" : std::string(Message(fleet.status()));
}

std::string With(const std::string& line, const std::string& instead) {
  std::string text = kPage;
  const size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return text.replace(at, text.find('\n', at) - at, instead);
}

TEST(Fleet, IsReadFromAPage) {
  const Fleet fleet = Parsed(kPage);
  EXPECT_EQ(fleet.clusters, 2);
  EXPECT_EQ(fleet.services, 6);
  EXPECT_EQ(fleet.churn.deploys, 20s);
  const MeshSize mesh = SizeOf(fleet);
  EXPECT_EQ(mesh.services, 3 + 2 * 3);
  EXPECT_EQ(mesh.proxies, 11);
  EXPECT_EQ(mesh.scope, 3);
}

TEST(Fleet, OfTheRepositoryCanBe) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WAVETANK_SOURCE_DIR "/capacity/fleets")) {
    if (entry.path().extension() != ".yaml") continue;
    ++found;
    const auto fleet = LoadFleet(entry.path().string());
    EXPECT_TRUE(fleet.ok()) << fleet.status();
  }
  EXPECT_GE(found, 3);
}

TEST(Fleet, ThatCannotBeIsRefusedWithPlaceAndRemedy) {
  EXPECT_THAT(Why(With("services:", "services: {perCluster: 300, endpoints: {fixed: 1000}}")),
              HasSubstr("has 300002 pods, and addresses for 65534"));
  EXPECT_THAT(Why(With("clusters:", "clusters: {count: 2, nodes: 0}")), HasSubstr("fleet.yaml:5"));
  EXPECT_THAT(Why(With("clusters:", "clusters: {count: 2, nodes: 2, zones: 3}")), HasSubstr("3 zones have 2 nodes"));
  EXPECT_THAT(Why(With("  deploys:", "  deploys: {every: -20s}")), HasSubstr("fleet.yaml:10"));
  EXPECT_THAT(Why(With("  deploys:", "  deploys: {every: 0s}")), HasSubstr("too often"));
  EXPECT_THAT(Why(With("  deploys:", "  deploy: {every: 20s}")), HasSubstr("deploys"));
  EXPECT_THAT(Why(With("services:", "services: {perCluster: 6, endpoints: {range: {least: 5, most: 4}}}")),
              HasSubstr("less than least"));
  EXPECT_THAT(Why(With("services:", "services: {perCluster: 6, endpoints: {fixed: 1, range: {least: 1, most: 4}}}")),
              HasSubstr("fleet.yaml:6"));
  EXPECT_THAT(Why(With("name:", "name: Test\nistiod: {cpu: two}")), HasSubstr("'two' is no cpu"));
  EXPECT_THAT(Why(With("name:", "name: Test\nistiod: {memory: 4 bytes}")), HasSubstr("is no memory"));
  EXPECT_THAT(Why(With("churn:", "traffic: {entries: 7}\nchurn:")), HasSubstr("7 of 6 services"));
  EXPECT_THAT(Why(With("proxies:", "proxies: {perCluster: 0}\ntraffic: {entries: 1}")),
              HasSubstr("nobody has a sidecar to send it"));
  EXPECT_THAT(Why(With("clusters:", "clusters: {count: 1}\nextra: 1")), HasSubstr("extra"));
  EXPECT_THAT(Why("name: x\n"), HasSubstr("clusters"));
  EXPECT_THAT(Why("[1, 2]"), HasSubstr("fleet.yaml:1"));
}

TEST(Fleet, HasASchemaOfAllItsFields) {
  const std::string schema = FleetSchema().dump();
  for (const char* field : {"\"perCluster\"", "\"flapping\"", "\"sidecarScope\"", "\"zipf\"", "\"debounceMax\""}) {
    EXPECT_THAT(schema, HasSubstr(field));
  }
}

TEST(Fleet, DrawsTheSameEndpointsWhateverElseChanges) {
  const Fleet fleet = Parsed(kPage);
  Fleet other = fleet;
  other.proxies = 500;
  other.churn.config_edits = 1s;
  other.clusters = 5;
  EXPECT_EQ(DrawEndpoints(fleet, 1), DrawEndpoints(other, 1));
  EXPECT_NE(DrawEndpoints(fleet, 0), DrawEndpoints(fleet, 1));
  other.seed = 8;
  EXPECT_NE(DrawEndpoints(fleet, 1), DrawEndpoints(other, 1));
}

TEST(Fleet, HasFewLargeServicesByZipf) {
  Fleet fleet = Parsed(kPage);
  fleet.services = 100;
  fleet.endpoints.kind = EndpointsSpec::Kind::kZipf;
  fleet.endpoints.most = 200;
  const std::vector<int64_t> drawn = DrawEndpoints(fleet, 0);
  EXPECT_EQ(drawn[0], 200);
  EXPECT_EQ(drawn[1], 100);
  EXPECT_EQ(drawn[99], 2);
}

std::map<Change, std::vector<Duration>> ByKind(const std::vector<ChangeEvent>& events) {
  std::map<Change, std::vector<Duration>> out;
  for (const ChangeEvent& event : events) out[event.change].push_back(event.at);
  return out;
}

TEST(Churn, OfOneKindLeavesTheOthersAsTheyAre) {
  Fleet fleet = Parsed(kPage);
  const auto before = Churn(fleet);
  fleet.churn.deploys = 2s;
  const auto after = Churn(fleet);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(ByKind(*before)[Change::kService], ByKind(*after)[Change::kService]);
  EXPECT_GT(ByKind(*after)[Change::kEndpoints].size(), 3 * ByKind(*before)[Change::kEndpoints].size());
}

TEST(Churn, ComesAsOftenAsThePageSays) {
  Fleet fleet = Parsed(kPage);
  fleet.duration = 10h;
  fleet.churn = {};
  fleet.churn.config_edits = 10s;
  const auto events = Churn(fleet);
  ASSERT_TRUE(events.ok());
  EXPECT_NEAR(static_cast<double>(events->size()), 3600, 240);  // four standard deviations
  EXPECT_TRUE(std::is_sorted(events->begin(), events->end(), [](const auto& a, const auto& b) { return a.at < b.at; }));
  const auto faster = Churn(fleet, 0, 2);
  ASSERT_TRUE(faster.ok());
  EXPECT_NEAR(static_cast<double>(faster->size()), 7200, 340);
}

Fleet OfADay() {
  Fleet fleet = Parsed(With("  deploys:", "  autoscaling: {day: {curve: [0%, 100%]}}"));
  fleet.churn.config_edits = {};
  fleet.clusters = 1;
  fleet.services = 1;
  fleet.endpoints = {.fixed = 11};
  fleet.duration = 24h;
  return fleet;
}

// Up from one pod to eleven until noon, and down again.
TEST(Churn, FollowsTheDaysCurve) {
  const Fleet fleet = OfADay();
  const auto events = Churn(fleet);
  ASSERT_TRUE(events.ok());
  ASSERT_EQ(events->size(), 20u);
  EXPECT_EQ(LoadAt(fleet.churn, 6h), 500'000);
  EXPECT_EQ(PodsAt(fleet.churn, 11, 12h), 11);
  EXPECT_LT((*events)[9].at, 12h);
  EXPECT_GT((*events)[10].at, 12h);
}

TEST(Churn, OfADayBeginsAtItsTimeOfDay) {
  Fleet fleet = OfADay();
  fleet.duration = 12h;
  fleet.churn.day_begins = 12h;
  EXPECT_EQ(LoadAt(fleet.churn, Duration::zero()), 1'000'000);
  EXPECT_EQ(Churn(fleet)->size(), 10u);
}

TEST(Synth, ScalesByTheDaysCurve) {
  Fleet fleet = OfADay();
  EXPECT_THAT(ClusterManifests(fleet, 0), HasSubstr("{name: c1-0, namespace: ns-0}\nspec:\n  replicas: 1\n"));
  EXPECT_THAT(ScenarioText(fleet), HasSubstr("scale: {cluster: cluster1, deployment: ns-0/c1-0, replicas: 11}"));
  const Fleet again = Parsed(FleetText(fleet, {}));
  EXPECT_EQ(again.churn.day_ppm, fleet.churn.day_ppm);
}

TEST(Fleet, WithADayThatCannotBeIsRefusedWithPlaceAndRemedy) {
  const auto why = [](const std::string& day) { return Why(With("  deploys:", "  autoscaling: {" + day + "}")); };
  EXPECT_THAT(why("day: {curve: [120%, 0%]}"), HasSubstr("'120%' is no share"));
  EXPECT_THAT(why("day: {curve: [20%]}"), HasSubstr("has 1 shares; write 2 to 1440"));
  EXPECT_THAT(why("day: {curve: [20%, 30%], begins: 25h}"), HasSubstr("is no time of day"));
  EXPECT_THAT(why("every: 30s, day: {curve: [20%, 30%]}"), HasSubstr("both of every and day"));
  EXPECT_THAT(why("swing: 10%"), HasSubstr("or neither"));
}

TEST(Churn, ThatIsTooMuchIsRefused) {
  Fleet fleet = Parsed(kPage);
  fleet.duration = 48h;
  fleet.churn.config_edits = 1ms;
  const auto events = Churn(fleet);
  EXPECT_EQ(events.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(events.status())), HasSubstr("let the churn be slower"));
}

TEST(Synth, WritesAScenarioThatRuns) {
  const std::string folder = testing::TempDir() + "/synth";
  Fleet fleet = Parsed(kPage);
  ASSERT_TRUE(WriteScenario(fleet, folder).ok());
  const auto loaded = scenario::LoadScenario(folder);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_GT(loaded->steps.size(), 5u);
  scenario::RunOptions options;
  options.until_step = 3;
  size_t proxies = 0;
  options.on_end = [&](sim::World& world) { proxies = world.Pods().size(); };
  const auto result = scenario::Run(*loaded, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(proxies, 2u * 11u);
  EXPECT_EQ(ScenarioText(fleet), ScenarioText(Parsed(kPage)));
  EXPECT_EQ(ClusterManifests(fleet, 1), ClusterManifests(Parsed(kPage), 1));
}

constexpr const char* kTraffic = "traffic: {entries: 2, rate: 20/s, calls: 2, depth: 2, latency: 4ms}\nchurn:";

TEST(ServiceGraph, HasLayersAndNoCircle) {
  Fleet fleet = Parsed(With("churn:", kTraffic));
  fleet.services = 40;
  fleet.traffic = {.entries = 4, .calls = 3, .depth = 3};
  const ServiceGraph graph = DrawServiceGraph(fleet);
  std::set<int64_t> layer(graph.entries.begin(), graph.entries.end()), seen = layer;
  EXPECT_EQ(layer.size(), 4U);
  for (int depth = 0; depth < 3; ++depth) {
    std::set<int64_t> below;
    for (const int64_t caller : layer) {
      ASSERT_TRUE(graph.calls.contains(caller));
      const std::set<int64_t> calls(graph.calls.at(caller).begin(), graph.calls.at(caller).end());
      EXPECT_EQ(calls.size(), 3U);
      below.insert(calls.begin(), calls.end());
    }
    for (const int64_t service : below) EXPECT_TRUE(seen.insert(service).second) << service;
    layer = below;
  }
  for (const int64_t last : layer) EXPECT_FALSE(graph.calls.contains(last));
}

TEST(ServiceGraph, IsTheSameWhateverElseChanges) {
  Fleet fleet = Parsed(With("churn:", kTraffic));
  const ServiceGraph graph = DrawServiceGraph(fleet);
  EXPECT_FALSE(graph.calls.empty());
  fleet.churn.node_loss = 1h;
  fleet.clusters = 5;
  fleet.scope = 0;
  EXPECT_EQ(DrawServiceGraph(fleet).calls, graph.calls);
}

TEST(Synth, SendsRequestsThroughTheServiceGraph) {
  const std::string folder = testing::TempDir() + "/graph";
  Fleet fleet = Parsed(With("churn:", kTraffic));
  fleet.duration = 10s;
  fleet.churn = {};
  ASSERT_TRUE(WriteScenario(fleet, folder).ok());
  auto loaded = scenario::LoadScenario(folder);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto result = scenario::Run(*loaded, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const scenario::StepResult& sent = result->steps.back();
  EXPECT_EQ(sent.name, "throughout");
  ASSERT_EQ(sent.traffic.size(), 4U) << "two entries in each of two clusters";
  for (const scenario::TrafficResult& flow : sent.traffic) {
    EXPECT_GT(flow.sent, 100) << flow.flow;
    EXPECT_EQ(flow.failed, 0) << flow.flow << ": " << (flow.failures.empty() ? "" : flow.failures[0].cause);
  }
  EXPECT_FALSE(sent.calls.empty());
}

// Such pods have no identity: a policy of namespaces alone answered all they ask with 403.
TEST(Synth, PoliciesLetPodsWithoutSidecarsCallWhatTheyCall) {
  Fleet fleet = Parsed(With("churn:", kTraffic));
  fleet.authorization_policies_ppm = 1'000'000;
  fleet.proxies = 1;
  EXPECT_THAT(ClusterManifests(fleet, 0), HasSubstr("{to: [{operation: {ports: [\"5000\"]}}]}"));
  fleet.proxies = 200;
  EXPECT_THAT(ClusterManifests(fleet, 0), testing::Not(HasSubstr("ports: [\"5000\"]}}]}")));
}

TEST(Synth, ScalesAwayFromThePageAndBackAndLeavesOnePod) {
  Fleet fleet = Parsed(kPage);
  fleet.duration = 1h;
  fleet.churn = {};
  fleet.churn.autoscaling = 20s;
  fleet.churn.swing_ppm = 900'000;
  const std::string text = ScenarioText(fleet);
  std::map<std::string, int> last;  // replicas, by cluster and Deployment
  int steps = 0;
  for (size_t at = 0; (at = text.find("scale: {", at)) != std::string::npos; ++steps) {
    const size_t count = text.find(", replicas: ", at);
    const std::string of = text.substr(at, count - at);
    const int replicas = std::stoi(text.substr(count + 12));
    EXPECT_GE(replicas, 1) << of;
    const auto before = last.find(of);
    if (before != last.end()) {
      EXPECT_NE(before->second, replicas) << of;
    }
    last[of] = replicas;
    at = count;
  }
  EXPECT_GT(steps, 100);
}

TEST(Synth, HasEveryKindOfChurnAsSteps) {
  const Fleet fleet = Parsed(With("  deploys:", R"(  deploys: {every: 20s}
  flapping: {pods: 2, every: 10s}
  autoscaling: {every: 30s}
  nodeLoss: {every: 40s}
  secretRotation: {every: 50s}
  istiodRestarts: {every: 60s})"));
  const std::string text = ScenarioText(fleet);
  for (const char* action :
       {"restart: {", "behaviour: {", "scale: {", "apply: {", "node: {", "remoteSecret: {", "kill: {"}) {
    EXPECT_THAT(text, HasSubstr(action));
  }
}

TEST(Synth, SaysWhatItLeavesOut) {
  Fleet fleet = Parsed(kPage);
  EXPECT_THAT(LeftOut(fleet), testing::IsEmpty());
  fleet.churn.config_edits = 100ms;
  EXPECT_THAT(LeftOut(fleet), testing::Contains(HasSubstr("a scenario of `synth` has 200 steps")));
  fleet.churn = {};
  fleet.churn.node_loss = 5s;
  EXPECT_THAT(LeftOut(fleet), testing::Contains(HasSubstr("all of them are lost")));
  fleet.churn = {};
  fleet.churn.istiod_restarts = 3s;
  EXPECT_THAT(LeftOut(fleet), testing::Contains(HasSubstr("the one before is not over")));
}

TEST(Synth, RunsThroughLostNodesAndKilledIstiods) {
  const std::string folder = testing::TempDir() + "/rough";
  Fleet fleet = Parsed(kPage);
  fleet.duration = 12min;
  fleet.churn = {};
  fleet.churn.node_loss = 3min;
  fleet.churn.istiod_restarts = 1min;
  fleet.churn.flapping = 3;
  ASSERT_TRUE(WriteScenario(fleet, folder).ok());
  const auto loaded = scenario::LoadScenario(folder);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto result = scenario::Run(*loaded, {});
  ASSERT_TRUE(result.ok()) << result.status();
}

TEST(FleetText, IsReadAsTheSameFleet) {
  Fleet fleet = Parsed(kPage);
  fleet.name = "He said: \"yes\" # {1}";
  fleet.endpoints = {.kind = EndpointsSpec::Kind::kZipf, .most = 40, .exponent = 0.75};
  fleet.churn.flapping = 3;
  fleet.churn.flapping_every = 1500ms;
  fleet.churn.node_loss = 2h;
  fleet.traffic = {.entries = 2, .rate_per_kilosecond = 12'500, .calls = 1, .depth = 3, .latency = 7ms};
  fleet.istiod.cpus = 0.5;
  fleet.istiod.memory_mb = 1536;
  const std::string text = FleetText(fleet, {"a note"});
  EXPECT_THAT(text, HasSubstr("# a note\n"));
  const Fleet again = Parsed(text);
  EXPECT_EQ(FleetText(again, {"a note"}), text);
  EXPECT_EQ(again.name, fleet.name);
  EXPECT_EQ(again.churn.flapping_every, 1500ms);
  EXPECT_EQ(again.churn.deploys, 20s);
  EXPECT_EQ(again.istiod.memory_mb, 1536);
  EXPECT_EQ(SizeOf(again).endpoints, SizeOf(fleet).endpoints);
  EXPECT_EQ(ScenarioText(again), ScenarioText(fleet));
}

TEST(Scale, GrowsWhatAClusterHasAndItsChurn) {
  const Fleet fleet = Parsed(kPage);
  const Fleet larger = Scaled(fleet, 10);
  EXPECT_EQ(larger.services, 60);
  EXPECT_EQ(larger.proxies, 100);
  EXPECT_EQ(larger.nodes, 20);
  EXPECT_EQ(larger.clusters, 2);
  EXPECT_EQ(larger.churn.deploys, fleet.churn.deploys);
  EXPECT_EQ(ScaledWithChurn(fleet, 10).churn.deploys, 2s);
  EXPECT_EQ(ScaledWithChurn(fleet, 0.5).churn.deploys, 40s);
  EXPECT_EQ(ScaledWithChurn(fleet, 10).churn.secret_rotation, 0s);
  EXPECT_EQ(Scaled(fleet, 0.01).services, 1);
}

TEST(Scale, IsAFactor) {
  EXPECT_EQ(*ParseScale("10x"), 10);
  EXPECT_EQ(*ParseScale("0.5"), 0.5);
  for (const char* wrong : {"", "x", "ten", "-1x", "0x", "nan", "inf", "1e9x", "2xx"}) {
    EXPECT_THAT(std::string(Message(ParseScale(wrong).status())), HasSubstr("as 10x or 0.5x")) << wrong;
  }
}

TEST(Synth, LeavesAFolderOfSomethingElseAlone) {
  const std::string folder = testing::TempDir() + "/other";
  std::filesystem::create_directories(folder + "/precious");
  EXPECT_EQ(WriteScenario(Parsed(kPage), folder).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::exists(folder + "/precious"));
}

}  // namespace
}  // namespace wavetank::capacity
