// Changes of a live world that nobody types: edited manifests, a scenario's steps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "replay/event_log.h"
#include "replay/replayer.h"
#include "replay/world_target.h"
#include "scenarios/survey/mesh_survey.h"
#include "serve/manifest_watch.h"
#include "serve/player.h"
#include "sim/inputs/kinds/pods.h"
#include "tests/await.h"
#include "tests/serve/two_clusters.h"

namespace wavetank::serve {
namespace {

namespace fs = std::filesystem;
using RealClock = std::chrono::steady_clock;

// What was reported, from other threads.
class Reports {
 public:
  void Add(std::string text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_back(std::move(text));
  }
  // The report with this number, once it is there.
  std::string Await(size_t number) {
    std::string report = "nothing";
    wavetank::Await([&] {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (all_.size() > number) report = all_[number];
      return all_.size() > number;
    });
    return report;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

bool AwaitWorld(Loop& loop, const std::function<bool(sim::World&)>& what) {
  return Await([&] { return loop.Call(what).value_or(false); });
}

std::string ConfigMap(const std::string& name, const std::string& value) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\ndata: {key: " + value +
         "}\n---\n";
}

class Manifests : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("wavetank-watch-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    Write(ConfigMap("one", "a") + ConfigMap("two", "a"));
    scenario::SurveyOptions survey;
    survey.clusters = {{"c1", {folder_.string()}, "", ""}};
    absl::StatusOr<scenario::MeshPlan> plan = scenario::PlanMesh(survey);
    ASSERT_TRUE(plan.ok()) << plan.status();
    SessionOptions options;
    options.scenario = std::move(plan->scenario);
    options.start = std::move(plan->start);
    auto session = Session::Create(std::move(options));
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    session_->GoLive();
  }
  void TearDown() override {
    session_ = nullptr;
    fs::remove_all(folder_);
  }
  // At once: a file that is half written for longer than the watch waits would be taken as it is.
  void Write(const std::string& text, const std::string& name = "all.yaml") {
    const fs::path half = folder_.string() + "-half";
    std::ofstream(half) << text;
    fs::rename(half, folder_ / name);
  }
  // Of the ConfigMap; "" if there is none.
  std::string Value(const std::string& name) {
    return *session_->loop().Call([&](sim::World& world) {
      const kube::ObjectRef object = world.cluster("c1").api().Get("ConfigMap", {"default", name});
      return object == nullptr ? std::string() : object->body["data"].value("key", "");
    });
  }

  fs::path folder_;
  std::unique_ptr<Session> session_;
};

TEST_F(Manifests, WhatIsEditedIsAppliedAndWhatIsGoneIsDeleted) {
  Reports reports;
  ManifestWatch watch(session_->loop(), session_->scenario().clusters,
                      {10ms, [&](std::string text) { reports.Add(std::move(text)); }});
  Write(ConfigMap("one", "bb") + ConfigMap("three", "c"));
  EXPECT_EQ(reports.Await(0), "c1: 2 applied, 1 deleted");
  EXPECT_EQ(Value("one"), "bb");
  EXPECT_EQ(Value("two"), "");
  EXPECT_EQ(Value("three"), "c");
  // A file more, and one that cannot be read: nothing changes until it can.
  Write("kind: [", "more.yaml");
  EXPECT_NE(reports.Await(1).find("more.yaml"), std::string::npos) << reports.Await(1);
  EXPECT_EQ(Value("one"), "bb");
  Write(ConfigMap("four", "d"), "more.yaml");
  EXPECT_EQ(reports.Await(2), "c1: 1 applied, 0 deleted");
  EXPECT_EQ(Value("four"), "d");
}

// What comes after it is reported as the first and only change.
TEST_F(Manifests, AFileThatIsOnlyTouchedChangesNothing) {
  const uint64_t before = *session_->loop().Call([](sim::World& world) { return world.kernel().digest().records(); });
  Reports reports;
  ManifestWatch watch(session_->loop(), session_->scenario().clusters,
                      {10ms, [&](std::string text) { reports.Add(std::move(text)); }});
  Write(ConfigMap("two", "a") + ConfigMap("one", "a"));
  EXPECT_EQ(*session_->loop().Call([](sim::World& world) { return world.kernel().digest().records(); }), before);
  Write(ConfigMap("two", "a") + ConfigMap("one", "a") + ConfigMap("three", "c"));
  EXPECT_EQ(reports.Await(0), "c1: 1 applied, 0 deleted");
  Write(ConfigMap("one", "a") + ConfigMap("two", "a") + ConfigMap("three", "c"));
  Write(ConfigMap("four", "d"), "more.yaml");
  EXPECT_EQ(reports.Await(1), "c1: 1 applied, 0 deleted");
}

TEST(Play, AScenariosStepsAreDoneInRealTime) {
  SessionOptions options = TwoClusters();
  scenario::Step wait, scale;
  wait.name = "nothing";
  scale.name = "more";
  scale.at = 200ms;
  scenario::Action action;
  action.kind = "scale";
  action.arguments = {{"cluster", "cluster1"}, {"deployment", "sample/helloworld-v1"}, {"replicas", 3}};
  scale.actions = {action};
  options.scenario.steps = {wait, scale};
  auto session = Session::Create(std::move(options));
  ASSERT_TRUE(session.ok()) << session.status();
  (*session)->GoLive();
  const auto start = RealClock::now();
  Reports reports;
  Player player((*session)->loop(), (*session)->scenario(), [&](std::string text) { reports.Add(std::move(text)); });
  EXPECT_EQ(reports.Await(0), "step 'nothing'");
  EXPECT_EQ(reports.Await(1), "step 'more'");
  EXPECT_GE(RealClock::now() - start, 200ms);
  EXPECT_TRUE(AwaitWorld((*session)->loop(),
                         [](sim::World& world) { return world.Pods("cluster1", "sample", "helloworld").size() == 3; }));
  EXPECT_EQ(reports.Await(2), "all steps were played");
}

TEST(Play, AStepBeginsSinceTheOneThatItNames) {
  SessionOptions options = TwoClusters();
  scenario::Step first, second;
  first.name = "first";
  first.at = 200ms;
  second.name = "second";
  second.at = 100ms;
  second.at_step = "first";
  options.scenario.steps = {first, second};
  auto session = Session::Create(std::move(options));
  ASSERT_TRUE(session.ok()) << session.status();
  (*session)->GoLive();
  const auto start = RealClock::now();
  Reports reports;
  Player player((*session)->loop(), (*session)->scenario(), [&](std::string text) { reports.Add(std::move(text)); });
  EXPECT_EQ(reports.Await(1), "step 'second'");
  EXPECT_GE(RealClock::now() - start, 300ms);
}

TEST(LiveLog, AChangeThatWasRefusedDoesNotStopTheReplay) {
  const std::string log = fs::path(testing::TempDir()) / ("wavetank-refused-" + std::to_string(getpid()) + ".wtlog");
  SessionOptions options = TwoClusters();
  options.log = log;
  auto session = Session::Create(std::move(options));
  ASSERT_TRUE(session.ok()) << session.status();
  (*session)->GoLive();
  const sim::inputs::KillPods nobody{"cluster1", "sample", "nobody"};
  EXPECT_FALSE((*session)->loop().Call([&](sim::World& world) { return world.Do(nobody); })->ok());
  ASSERT_TRUE((*session)->Finish().ok());
  auto reader = replay::LogReader::Open(log);
  ASSERT_TRUE(reader.ok()) << reader.status();
  replay::WorldTarget target;
  const auto result = replay::Replay(**reader, target);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->divergence.has_value());
  EXPECT_TRUE(result->complete);
  // An input that this program does not know is another matter.
  EXPECT_EQ(target.Do({.kind = "no such kind", .body = {{"cluster", "cluster1"}}}).code(),
            absl::StatusCode::kUnimplemented);
  fs::remove(log);
}

TEST(Play, APlayerThatIsStoppedLeavesOff) {
  SessionOptions options = TwoClusters();
  scenario::Step later;
  later.name = "much later";
  later.at = 1h;
  options.scenario.steps = {later};
  auto session = Session::Create(std::move(options));
  ASSERT_TRUE(session.ok()) << session.status();
  (*session)->GoLive();
  const auto start = RealClock::now();
  {
    Player player((*session)->loop(), (*session)->scenario(), [](const std::string&) { FAIL(); });
  }
  EXPECT_LT(RealClock::now() - start, 1min);
}

}  // namespace
}  // namespace wavetank::serve
