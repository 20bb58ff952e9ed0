#include "capacity/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "capacity/sweep/executor.h"
#include "capacity/sweep/sample.h"
#include "capacity/sweep/table.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::capacity {
namespace {

using ::testing::HasSubstr;

std::string Folder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

std::string Write(const std::string& folder, const std::string& text) {
  std::ofstream(folder + "/fleet.yaml") << "name: T\nduration: 1m\nclusters: {count: 1}\nservices: {perCluster: 5}\n"
                                           "proxies: {perCluster: 20}\nchurn: {configEdits: {every: 5s}}\n";
  std::ofstream(folder + "/sweep.yaml") << text;
  return folder + "/sweep.yaml";
}

std::string Why(const std::string& text) {
  const auto sweep = LoadSweep(Write(Folder("bad"), text));
  if (!sweep.ok()) return std::string(Message(sweep.status()));
  const auto tasks = TasksOf(*sweep, Parameters::OfIstiod(), "test");
  return tasks.ok() ? "" : std::string(Message(tasks.status()));
}

constexpr char kGrid[] =
    "fleet: fleet.yaml\nseeds: 2\nover:\n  istiod.replicas: [1, 2]\n  istiod.debounceAfter: [50ms, 100ms, 1s]\n";

struct Ready {
  Sweep sweep;
  std::vector<SweepTask> tasks;
};
Ready Load(const std::string& folder, const std::string& text = kGrid) {
  auto sweep = LoadSweep(Write(folder, text));
  EXPECT_TRUE(sweep.ok()) << sweep.status();
  auto tasks = TasksOf(*sweep, Parameters::OfIstiod(), "test");
  EXPECT_TRUE(tasks.ok()) << tasks.status();
  return {*std::move(sweep), *std::move(tasks)};
}

std::string TableIn(const Ready& ready, const std::string& folder) {
  return Csv(ready.sweep, ready.tasks, ReadResults(ready.sweep, folder, ready.tasks));
}

TEST(Sweep, OfAGridHasEveryCombination) {
  const Ready ready = Load(Folder("grid"));
  EXPECT_EQ(ready.tasks.size(), 2u * 3u * 2u);
  std::set<std::string> keys;
  for (const SweepTask& task : ready.tasks) keys.insert(task.key);
  EXPECT_EQ(keys.size(), ready.tasks.size());
}

TEST(Sweep, ThatCannotBeIsRefusedWithPlaceAndRemedy) {
  EXPECT_THAT(Why("fleet: fleet.yaml\nover: {istiod.replica: [1]}\n"), HasSubstr("istiod.replica=1"));
  EXPECT_THAT(Why("fleet: fleet.yaml\nover: {istiod.replica: [1]}\n"), HasSubstr("replicas"));
  EXPECT_THAT(Why("fleet: fleet.yaml\nover: {istiod.replicas: [0]}\n"), HasSubstr("istiod.replicas=0"));
  EXPECT_THAT(Why("fleet: fleet.yaml\nover: {churn: [fast]}\n"), HasSubstr("'fast' is no factor"));
  EXPECT_THAT(Why("fleet: nowhere.yaml\nover: {churn: [1]}\n"), HasSubstr("cannot be read"));
  EXPECT_THAT(Why("fleet: fleet.yaml\nsample: sobol\nover: {churn: [1]}\n"), HasSubstr("sweep.yaml:2"));
  EXPECT_THAT(Why("fleet: fleet.yaml\npoints: 3\nover: {churn: [1]}\n"), HasSubstr("a grid has all"));
  EXPECT_THAT(Why("fleet: fleet.yaml\nover: {churn: []}\n"), HasSubstr("has no values"));
  EXPECT_THAT(Why("fleet: fleet.yaml\nover: {churn: {from: 1, to: 4}}\n"), HasSubstr("list its values"));
  EXPECT_THAT(Why("fleet: fleet.yaml\nsampel: grid\nover: {churn: [1]}\n"), HasSubstr("sample"));
}

TEST(Sobol, FillsEachDimensionEvenly) {
  for (size_t d = 0; d < kMostSobol; ++d) {
    std::set<uint32_t> eighths;
    std::vector<int> halves(2);
    for (uint64_t i = 0; i < 8; ++i) eighths.insert(SobolPoint(i, kMostSobol)[d] >> 29);
    for (uint64_t i = 0; i < 256; ++i) ++halves[SobolPoint(i, kMostSobol)[d] >> 31];
    EXPECT_EQ(eighths.size(), 8u) << d;
    EXPECT_EQ(halves[0], 128) << d;
  }
  // The first points of Joe and Kuo's program in two dimensions: 0, 1/2 1/2, 3/4 1/4, 1/4 3/4.
  EXPECT_EQ(SobolPoint(1, 2), (std::vector<uint32_t>{1u << 31, 1u << 31}));
  EXPECT_EQ(SobolPoint(2, 2), (std::vector<uint32_t>{3u << 30, 1u << 30}));
  EXPECT_EQ(SobolPoint(3, 2), (std::vector<uint32_t>{1u << 30, 3u << 30}));
}

TEST(Executor, ASecondSweepRunsNothingAndGivesTheSameTable) {
  const std::string folder = Folder("twice");
  const Ready ready = Load(folder);
  const CostModel model;
  ExecutorOptions options{.folder = folder + "/rows", .at_a_time = 2};
  const auto first = RunTasks(ready.sweep, ready.tasks, model, options);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->ran, 12u);
  const std::string table = TableIn(ready, options.folder);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 13);
  const auto second = RunTasks(ready.sweep, ready.tasks, model, options);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->ran, 0u);
  EXPECT_EQ(second->kept, 12u);
  EXPECT_EQ(TableIn(ready, options.folder), table);
  // Rows that are added run alone.
  const Ready more = Load(folder, std::string(kGrid) + "  istiod.cpu: [\"2\", \"4\"]\n");
  const auto third = RunTasks(more.sweep, more.tasks, model, options);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->ran, 24u);
}

TEST(Executor, WhatWasHalfDoneGoesOnToTheSameTable) {
  const Ready ready = Load(Folder("half"));
  const CostModel model;
  ExecutorOptions whole{.folder = testing::TempDir() + "/half/whole", .at_a_time = 1};
  ASSERT_TRUE(RunTasks(ready.sweep, ready.tasks, model, whole).ok());
  // Three shares, of which one was killed after its first files, and one left half a file.
  ExecutorOptions parts{.folder = testing::TempDir() + "/half/parts", .at_a_time = 2, .share = 0, .shares = 3};
  ASSERT_TRUE(RunTasks(ready.sweep, ready.tasks, model, parts).ok());
  std::ofstream(parts.folder + "/" + ready.tasks[1].key + ".json.4711") << "[\"1";
  parts.share = 0;
  parts.shares = 1;
  const auto rest = RunTasks(ready.sweep, ready.tasks, model, parts);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->kept, 4u);
  EXPECT_EQ(TableIn(ready, parts.folder), TableIn(ready, whole.folder));
}

TEST(Executor, RowsThatAreTheSameTaskAreCountedAndRunOnce) {
  const std::string folder = Folder("same");
  Ready ready = Load(folder);
  ready.tasks[3] = ready.tasks[1];  // as a sample of few values draws one combination twice
  const auto first = RunTasks(ready.sweep, ready.tasks, CostModel(), {.folder = folder + "/rows", .at_a_time = 2});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->ran, 11u);
  EXPECT_EQ(first->twice, 1u);
  const auto second = RunTasks(ready.sweep, ready.tasks, CostModel(), {.folder = folder + "/rows"});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->kept + second->twice, ready.tasks.size());
  const std::vector<SweepRow> rows = ReadResults(ready.sweep, folder + "/rows", ready.tasks);
  EXPECT_EQ(rows[3], rows[1]);
}

TEST(Executor, AFleetsOwnSeedIsASettingAndNoSecondColumnOfThatName) {
  const Ready ready = Load(Folder("own seed"), std::string(kGrid) + "  seed: [\"5\", \"6\"]\n");
  const std::string table = Csv(ready.sweep, ready.tasks, ReadResults(ready.sweep, "/nowhere", ready.tasks));
  const std::string head = table.substr(0, table.find('\n'));
  EXPECT_THAT(head, HasSubstr(",fleet.seed,seed,p50_ms"));
}

TEST(Executor, ATaskThatFailsIsARowThatSaysSo) {
  const std::string folder = Folder("fails");
  Ready ready = Load(folder);
  ready.tasks[0].fleet = "name: x";  // no fleet
  const auto result = RunTasks(ready.sweep, ready.tasks, CostModel(), {.folder = folder + "/rows", .at_a_time = 2});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->ran, 12u);
  const std::vector<SweepRow> rows = ReadResults(ready.sweep, folder + "/rows", ready.tasks);
  EXPECT_THAT(rows[0].back(), HasSubstr("clusters: is required"));
  EXPECT_EQ(rows[1].back(), "");
}

TEST(Executor, SaysWhatWasNotRun) {
  const Ready ready = Load(Folder("none"));
  EXPECT_EQ(ReadResults(ready.sweep, "/nowhere", ready.tasks)[0].back(), "was not run");
  EXPECT_FALSE(RunTasks(ready.sweep, ready.tasks, CostModel(), {.folder = "/proc/nowhere"}).ok());
}

// Of one cluster with a client and a server, one of which is scaled.
constexpr char kScenario[] = R"(name: one
clusters:
  - name: cluster1
    manifests: [{0}one-network.yaml, {0}istiod.yaml, {0}sample.yaml, {0}helloworld-service.yaml, {0}helloworld-v1.yaml, {0}sleep.yaml]
flows:
  - {{name: hello, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "helloworld.sample:5000", rate: 100/s}}
steps:
  - name: scaled
    do: [{{scale: {{cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}}}}]
    then: [{{flow: hello, requests: 20}}]
    expect: [{{requests: {{pods: 2}}}}]
)";

std::string WriteScenario(const std::string& folder, const std::string& sweep) {
  std::ofstream(folder + "/scenario.yaml")
      << fmt::format(kScenario, std::string(WAVETANK_SOURCE_DIR "/scenarios/manifests/"));
  std::ofstream(folder + "/sweep.yaml") << sweep;
  return folder + "/sweep.yaml";
}

std::string WhyNoScenario(const std::string& sweep) {
  const auto read = LoadSweep(WriteScenario(Folder("bad scenario"), sweep));
  if (!read.ok()) return std::string(Message(read.status()));
  const auto tasks = TasksOf(*read, Parameters::OfIstiod(), "test");
  return tasks.ok() ? "" : std::string(Message(tasks.status()));
}

TEST(ScenarioSweep, HasARowForEachRunWithWhatWasAskedOfIt) {
  const std::string folder = Folder("scenario");
  const auto sweep = LoadSweep(WriteScenario(folder, R"(scenario: .
seeds: 2
over:
  steps.scaled.do.0.scale.replicas: [1, 2]
  timing.istiod.debounce_after: [50ms, 100ms]
columns:
  - {name: pods, result: steps.scaled.traffic.hello.byPod.*, take: mean}
  - {name: eds, metric: pilot_xds_pushes, labels: {type: eds}}
  - {name: p99, metric: pilot_proxy_convergence_time, quantile: 99%}
  - {name: answer, result: steps.scaled.name}
  - {name: none, metric: no_such_series, otherwise: "-"}
objectives: [failed, p99]
)"));
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  const auto tasks = TasksOf(*sweep, Parameters::OfIstiod(), "test");
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  ASSERT_EQ(tasks->size(), 8u);
  const auto ran = RunTasks(*sweep, *tasks, CostModel(), {.folder = folder + "/rows", .at_a_time = 2});
  ASSERT_TRUE(ran.ok()) << ran.status();
  EXPECT_EQ(ran->ran, 8u);
  const std::vector<SweepRow> rows = ReadResults(*sweep, folder + "/rows", *tasks);
  std::ofstream(folder + "/sweep.csv") << Csv(*sweep, *tasks, rows);
  std::ofstream(folder + "/sweep.json") << TableNotes(*sweep);
  const auto table = ReadTable(folder + "/sweep.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->objectives, (std::vector<std::string>{"failed", "p99"}));
  ASSERT_EQ(table->rows.size(), 8u);
  std::set<std::string> digests;
  for (const SweepTable::Row& row : table->rows) {
    EXPECT_EQ(row.error(), "");
    EXPECT_EQ(table->Of(row, "sent"), "20");
    EXPECT_EQ(table->Of(row, "answer"), "scaled");
    EXPECT_EQ(table->Of(row, "none"), "-");
    const bool one = row.values[0] == "1";
    EXPECT_EQ(table->Of(row, "passed"), one ? "0" : "1");
    EXPECT_EQ(table->Of(row, "not_held"), one ? "1" : "0");
    EXPECT_EQ(table->Of(row, "pods"), one ? "20" : "10");
    EXPECT_GT(std::stod(table->Of(row, "eds")), 0);
    digests.insert(table->Of(row, "digest"));
  }
  EXPECT_EQ(digests.size(), 8u);
  EXPECT_EQ(EmptyColumns(*sweep, rows), (std::vector<std::string>{"none"}));
}

TEST(ScenarioSweep, RunsAgainWhatAFileChanged) {
  const std::string folder = Folder("again"), text = "scenario: scenario.yaml\nover: {seed: [3, 4]}\n";
  const auto keys = [&] {
    const auto sweep = LoadSweep(folder + "/sweep.yaml");
    EXPECT_TRUE(sweep.ok()) << sweep.status();
    std::set<std::string> out;
    for (const std::string program : {"one", "two"}) {
      const auto tasks = TasksOf(*sweep, Parameters::OfIstiod(), program);
      EXPECT_TRUE(tasks.ok()) << tasks.status();
      for (const SweepTask& task : *tasks) out.insert(task.key);
    }
    return out;
  };
  WriteScenario(folder, text);
  const std::set<std::string> first = keys();
  EXPECT_EQ(first.size(), 4u);
  EXPECT_EQ(keys(), first);
  std::ofstream(folder + "/scenario.yaml", std::ios::app) << "# another\n";
  std::set<std::string> both = keys();
  both.insert(first.begin(), first.end());
  EXPECT_EQ(both.size(), 8u);
}

TEST(ScenarioSweep, ThatCannotBeIsRefusedBeforeAnythingRuns) {
  EXPECT_THAT(WhyNoScenario("scenario: nowhere\nover: {seed: [1]}\n"), HasSubstr("no such scenario"));
  EXPECT_THAT(WhyNoScenario("scenario: .\nfleet: f.yaml\nover: {seed: [1]}\n"), HasSubstr("sweep.yaml"));
  EXPECT_THAT(WhyNoScenario("scenario: .\nover: {steps.scald.after: [1s]}\n"),
              HasSubstr("over: with steps.scald.after=1s: "));
  EXPECT_THAT(WhyNoScenario("scenario: .\nover: {timing.istiod.debounce: [1s]}\n"),
              HasSubstr("with timing.istiod.debounce=1s"));
  EXPECT_THAT(WhyNoScenario("scenario: .\nover: {profile: [istio-1.17]}\n"), HasSubstr("with profile=istio-1.17"));
  EXPECT_THAT(WhyNoScenario("scenario: .\nuntil: soon\nover: {seed: [1]}\n"), HasSubstr("until 'soon'"));
  EXPECT_THAT(WhyNoScenario("scenario: .\nover: {seed: [1]}\nobjectives: [speed]\n"),
              HasSubstr("sweep.yaml:3:14: objectives[0]: no column with numbers is called 'speed'"));
  EXPECT_THAT(WhyNoScenario("scenario: .\nover: {seed: [1]}\ncolumns: [{name: failed, metric: x}]\n"),
              HasSubstr("is another column's already"));
  EXPECT_THAT(WhyNoScenario("scenario: .\nover: {seed: [1]}\ncolumns: [{name: a, metric: x, result: y}]\n"),
              HasSubstr("sweep.yaml:3"));
  EXPECT_THAT(Why("fleet: fleet.yaml\nuntil: 3s\nover: {churn: [1]}\n"), HasSubstr("is of a scenario's runs"));
}

TEST(ScenarioSweep, ARowSaysThatItCannotBeJudged) {
  const std::string folder = Folder("judged");
  const auto sweep = LoadSweep(WriteScenario(
      folder,
      "scenario: .\nover: {seed: [1]}\ncolumns: [{name: x, metric: no_such_series}]\nobjectives: [failed, x]\n"));
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  const auto tasks = TasksOf(*sweep, Parameters::OfIstiod(), "test");
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  EXPECT_THAT(RunTask(*sweep, (*tasks)[0], CostModel()).back(), HasSubstr("objective 'x' is empty"));
}

TEST(ScenarioSweep, ARowSaysThatAColumnHasSeveralValues) {
  const std::string folder = Folder("several");
  const auto sweep = LoadSweep(WriteScenario(
      folder, "scenario: .\nover: {seed: [1]}\ncolumns: [{name: x, result: steps.*.convergence.proxies.*.totalMs}]\n"));
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  const auto tasks = TasksOf(*sweep, Parameters::OfIstiod(), "test");
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  EXPECT_THAT(RunTask(*sweep, (*tasks)[0], CostModel()).back(), HasSubstr("values; say take: sum, max, min or mean"));
}

}  // namespace
}  // namespace wavetank::capacity
