#include "wavetank/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "wavetank/actions.h"
#include "wavetank/gtest.h"

namespace wavetank {
namespace {

using namespace std::chrono_literals;  // NOLINT
using testing::ElementsAre;
using testing::HasSubstr;

WorldOptions Options() { return {.trace = true, .program = WAVETANK_BINARY_DIR "/wavetank"}; }

Mesh TwoNetworks() {
  Mesh mesh;
  mesh.clusters = {{.name = "east", .network = "net-east"}, {.name = "west", .network = "net-west"}};
  mesh.apps = {{.name = "web", .port = 8080, .deployments = {{"east", "v1", 1}, {"west", "v2", 1}}}};
  return mesh;
}

Flow ToWeb(const char* from) { return {.cluster = from, .host = "web.sample:8080"}; }

TEST(World, AnswersWhatItIsAsked) {
  Result<World> world = World::Open(TwoNetworks(), Options());
  ASSERT_THAT(world, Succeeded());
  EXPECT_THAT(world->notes(), ElementsAre());
  const Result<Requests> requests = world->Send(ToWeb("east"), 400);
  ASSERT_THAT(requests, Succeeded());
  EXPECT_THAT(*requests, AllAnswered());
  EXPECT_THAT(*requests, SplitsEvenly({"v1", "v2"}));
  EXPECT_THAT(*requests, SplitsEvenlyAmongClusters(std::vector<std::string>{"east", "west"}));
  EXPECT_EQ(requests->sent, 400);
  const Result<std::vector<Service>> services = world->Services();
  ASSERT_THAT(services, Succeeded());
  EXPECT_EQ(std::count_if(services->begin(), services->end(), [](const Service& s) { return s.name == "web"; }), 2);
  const Result<Value> clusters = world->Config("sleep@east", "cds");
  ASSERT_THAT(clusters, Succeeded());
  EXPECT_THAT(clusters->Print(), HasSubstr("outbound|8080||web.sample.svc.cluster.local"));
  const Result<std::vector<Breach>> breaches = world->Check();
  ASSERT_THAT(breaches, Succeeded());
  EXPECT_THAT(*breaches, ElementsAre());
}

TEST(World, ActionsAreValuesAndConvergenceIsMeasured) {
  Result<World> world = World::Open(TwoNetworks(), Options());
  ASSERT_THAT(world, Succeeded());
  ASSERT_THAT(world->Do(actions::Scale{.cluster = "west", .deployment = "sample/web-v2", .replicas = 3}), Succeeded());
  const Result<Settled> settled = world->Settle();
  ASSERT_THAT(settled, Succeeded());
  EXPECT_TRUE(settled->settled);
  ASSERT_FALSE(settled->convergence.proxies.empty());
  EXPECT_GT(settled->convergence.total, 100ms);
  EXPECT_GT(settled->convergence.proxies[0].stages.at("debounce"), 90ms);
  // What happened says what it followed from: the scaling is the last input.
  const Result<std::vector<Input>> inputs = world->Inputs();
  ASSERT_THAT(inputs, Succeeded());
  const Result<std::vector<TraceEvent>> sent = world->Trace("XdsSent");
  ASSERT_THAT(sent, Succeeded());
  ASSERT_FALSE(sent->empty());
  EXPECT_THAT(sent->back().inputs, ElementsAre(inputs->back().number));
}

TEST(World, WhatIsAskedInTheHeadOfALoopOutlastsIt) {
  Result<World> world = World::Open(TwoNetworks(), Options());
  ASSERT_THAT(world, Succeeded());
  const size_t inputs = world->Inputs()->size();
  size_t events = 0;
  for (const TraceEvent& event : *world->Trace("XdsSent")) {  // of a Result that nobody holds
    for (const uint64_t number : event.inputs) EXPECT_LE(number, inputs) << event.subject;
    ++events;
  }
  EXPECT_GT(events, 10u);
}

TEST(World, APortsNameSaysWhatIsSpoken) {
  Mesh mesh = TwoNetworks();
  mesh.apps[0].port_name = "grpc";
  Flow calls = ToWeb("east");
  calls.protocol = "grpc";
  for (const bool named : {true, false}) {
    if (!named) mesh.apps[0].port_name = "http";
    Result<World> world = World::Open(mesh, Options());
    ASSERT_THAT(world, Succeeded());
    const Result<Requests> answers = world->Send(calls, 50);
    ASSERT_THAT(answers, Succeeded());
    EXPECT_EQ(answers->failed, named ? 0 : 50) << testing::PrintToString(*answers);
  }
}

TEST(World, ListsAndMappingsOfActionsAreWrittenAsTheyAre) {
  const Action label = actions::Label{
      .cluster = "east", .kind = "Namespace", .name = "sample", .set = {{"team", "blue"}}, .remove = {"a", "b"}};
  EXPECT_EQ(label.Print(), R"({"label": {"cluster": "east", "kind": "Namespace", "name": "sample", )"
                           R"("remove": ["a", "b"], "set": {"team": "blue"}}})");
  const Action none = actions::Label{.cluster = "east", .kind = "Namespace", .name = "sample"};
  EXPECT_EQ(none.Print(), R"({"label": {"cluster": "east", "kind": "Namespace", "name": "sample"}})");
}

TEST(Matchers, SayWhatWasFoundInWords) {
  Settled slow;
  slow.at_work = {"istiod is at work"};
  slow.convergence.total = 114'178'842ns;
  EXPECT_EQ(testing::PrintToString(slow), "not at rest; istiod is at work");
  testing::StringMatchResultListener listener;
  EXPECT_FALSE(testing::ExplainMatchResult(ConvergesWithin(1ms), slow, &listener));
  EXPECT_EQ(listener.str(), "took 114.179 ms");
  EXPECT_EQ(testing::DescribeMatcher<Settled>(ConvergesWithin(2s)), "converges within 2000 ms");
  EXPECT_EQ(testing::PrintToString(Result<Settled>(slow)), "not at rest; istiod is at work");
  EXPECT_EQ(testing::PrintToString(Status(Error{"no such cluster"})), "an error");
  EXPECT_EQ(testing::PrintToString(Status(Nothing{})), "no error");
}

TEST(World, ForksGoTheirOwnWays) {
  Result<World> world = World::Open(TwoNetworks(), Options());
  ASSERT_THAT(world, Succeeded());
  Result<World> other = world->Fork();
  ASSERT_THAT(other, Succeeded());
  EXPECT_EQ(*world->Digest(), *other->Digest());
  ASSERT_THAT(other->Do({"kill", {{"cluster", "west"}, {"namespace", "sample"}, {"app", "web"}}}), Succeeded());
  ASSERT_THAT(other->Step(50ms), Succeeded());
  const Result<Requests> lost = other->Send(ToWeb("east"), 100), kept = world->Send(ToWeb("east"), 100);
  ASSERT_THAT(lost, Succeeded());
  ASSERT_THAT(kept, Succeeded());
  EXPECT_THAT(*kept, AllAnswered());
  EXPECT_NE(*world->Digest(), *other->Digest());
}

TEST(World, ALogReplaysAndAStoryIsAScenario) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "wavetank-library-log";
  std::filesystem::create_directories(folder);
  Result<World> world = World::Open(TwoNetworks(), Options());
  ASSERT_THAT(world, Succeeded());
  ASSERT_THAT(world->Do(actions::Kill{.cluster = "west", .ns = "istio-system", .app = "istiod"}), Succeeded());
  ASSERT_THAT(world->Settle(), Succeeded());
  ASSERT_THAT(world->Send(ToWeb("west"), 50), Succeeded());
  const std::string log = (folder / "run.wtlog").string();
  ASSERT_THAT(world->WriteLog(log), Succeeded());
  const Result<Replay> replay = ReplayLog(log, Options());
  ASSERT_THAT(replay, Succeeded());
  EXPECT_TRUE(replay->identical) << replay->difference;
  EXPECT_EQ(replay->digest, *world->Digest());
  EXPECT_GT(replay->inputs, 10);
  std::ofstream(folder / "story.yaml") << world->Story();
  const std::string command = std::string(WAVETANK_BINARY_DIR "/wavetank run ") + (folder / "story.yaml").string();
  EXPECT_EQ(std::system((command + " > /dev/null").c_str()), 0);
  EXPECT_THAT(world->Story(), HasSubstr("istiod"));
  std::filesystem::remove_all(folder);
}

TEST(World, WorldsInThreadsAreIndependent) {
  const auto digest = [] {
    Result<World> world = World::Open(TwoNetworks(), Options());
    if (!world.ok()) return world.error();
    (void)world->Do({"kill", {{"cluster", "west"}, {"namespace", "sample"}, {"app", "web"}}});
    (void)world->Settle();
    return *world->Digest();
  };
  const std::string alone = digest();
  std::array<std::string, 4> together;
  std::vector<std::thread> threads;
  for (std::string& each : together) threads.emplace_back([&] { each = digest(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(together, testing::Each(alone));
}

TEST(World, MistakesAreAnswersWithARemedy) {
  Mesh mesh = TwoNetworks();
  mesh.profile = "istio-0.1";
  EXPECT_THAT(World::Open(mesh, Options()).error(), HasSubstr("istio-0.1"));
  EXPECT_THAT(World::Open(Mesh::FromScenario("/nowhere"), Options()).error(), HasSubstr("/nowhere"));
  EXPECT_THAT(World::Open(mesh, {.program = "/nowhere/wavetank"}).error(), HasSubstr("WAVETANK_PROGRAM"));
  Mesh elsewhere = TwoNetworks();
  elsewhere.apps[0].deployments[1].cluster = "nord";
  EXPECT_EQ(World::Open(elsewhere, Options()).error(),
            "mesh.apps[0].deployments[1].cluster: no cluster is named 'nord'; there are: east, west");
  Mesh huge = TwoNetworks();
  huge.seed = ~uint64_t{0};
  EXPECT_THAT(World::Open(huge, Options()).error(), HasSubstr("seed: 18446744073709551615 is no whole number"));
  Mesh refused = TwoNetworks();  // by istiod's webhook
  Value rule;
  ASSERT_TRUE(Value::Parse(R"({"apiVersion": "networking.istio.io/v1beta1", "kind": "DestinationRule",
                               "metadata": {"name": "a", "namespace": "sample"}, "spec": {"host": ""}})",
                           &rule));
  refused.objects.push_back({"east", rule});
  EXPECT_THAT(World::Open(refused, Options()).error(), HasSubstr("cluster east: DestinationRule sample/a: "));
  EXPECT_THAT(ReplayLog("/nowhere/x.wtlog", Options()).error(), HasSubstr("/nowhere/x.wtlog: no such file"));
  Result<World> world = World::Open(TwoNetworks(), Options());
  ASSERT_THAT(world, Succeeded());
  EXPECT_THAT(world->Do({"scael", {}}).error(), HasSubstr("did you mean 'scale'"));
  EXPECT_THAT(world->Do(actions::Scale{.cluster = "nord", .deployment = "a/b", .replicas = 1}).error(),
              HasSubstr("no cluster is named 'nord'"));
  EXPECT_THAT(world->Send({.cluster = "east", .host = "web.sample:port"}, 1).error(), HasSubstr("'port' is no port"));
  EXPECT_THAT(world->Finish("requests#7").error(), HasSubstr("requests#7"));
  EXPECT_THAT(world->Config("nobody", "cds").error(), HasSubstr("nobody"));
  EXPECT_THAT(world->Trace("XdsSend").error(), HasSubstr("no kind of event is called 'XdsSend'; one of None, "));
  EXPECT_THAT(world->WriteLog("/nowhere/x.wtlog").error(), HasSubstr("/nowhere"));
  EXPECT_THAT(world->Until([](World&) { return false; }, 1s, 0s).error(), HasSubstr("every"));
  // None of it has changed anything.
  const Result<Requests> requests = world->Send(ToWeb("east"), 20);
  ASSERT_THAT(requests, Succeeded());
  EXPECT_THAT(*requests, AllAnswered());
}

TEST(World, OfAScenarioWithADateCountsFromItsBeginning) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "wavetank-library-dated.yaml";
  std::ofstream(file) << "name: dated\nextends: " WAVETANK_SOURCE_DIR
                         "/scenarios/multi-primary-one-network/scenario.yaml\ndate: 2026-01-01\n";
  Result<World> world = World::Open(Mesh::FromScenario(file.string()), Options());
  ASSERT_THAT(world, Succeeded());
  const Nanoseconds up = world->Now();
  EXPECT_LT(up, 10min);
  const Result<std::vector<Input>> inputs = world->Inputs();
  ASSERT_THAT(inputs, Succeeded());
  ASSERT_FALSE(inputs->empty());
  EXPECT_EQ(inputs->front().at, 0s);
  const Result<std::vector<TraceEvent>> trace = world->Trace();
  ASSERT_THAT(trace, Succeeded());
  ASSERT_FALSE(trace->empty());
  EXPECT_LE(trace->back().at, up);
  const Result<Requests> requests = world->Send({.cluster = "cluster1", .host = "helloworld.sample:5000"}, 10);
  ASSERT_THAT(requests, Succeeded());
  EXPECT_LT(requests->all["endMs"].Number(), 600'000);
}

TEST(World, OneThatWasMovedFromIsEmptyAndSaysSo) {
  Result<World> world = World::Open(TwoNetworks(), Options());
  ASSERT_THAT(world, Succeeded());
  const World moved = *std::move(world);
  EXPECT_THAT(world->Digest().error(), HasSubstr("moved from"));
  EXPECT_THAT(world->Fork().error(), HasSubstr("moved from"));
  EXPECT_EQ(world->Now(), 0s);
  EXPECT_THAT(world->notes(), ElementsAre());
  EXPECT_EQ(world->Story(), "");
  EXPECT_GT(moved.Now(), 0s);
}

}  // namespace
}  // namespace wavetank
