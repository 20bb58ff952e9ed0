#include "capacity/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "capacity/sweep/executor.h"
#include "capacity/sweep/sample.h"
#include "core/base/status.h"

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
  const auto tasks = TasksOf(*sweep, Parameters::OfIstiod());
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
  auto tasks = TasksOf(*sweep, Parameters::OfIstiod());
  EXPECT_TRUE(tasks.ok()) << tasks.status();
  return {*std::move(sweep), *std::move(tasks)};
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
  const auto first = RunTasks(ready.tasks, model, options);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->ran, 12u);
  const std::string table = Csv(ready.sweep, ready.tasks, options.folder);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 13);
  const auto second = RunTasks(ready.tasks, model, options);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->ran, 0u);
  EXPECT_EQ(second->kept, 12u);
  EXPECT_EQ(Csv(ready.sweep, ready.tasks, options.folder), table);
  // Rows that are added run alone.
  const Ready more = Load(folder, std::string(kGrid) + "  istiod.cpu: [\"2\", \"4\"]\n");
  const auto third = RunTasks(more.tasks, model, options);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->ran, 24u);
}

TEST(Executor, WhatWasHalfDoneGoesOnToTheSameTable) {
  const Ready ready = Load(Folder("half"));
  const CostModel model;
  ExecutorOptions whole{.folder = testing::TempDir() + "/half/whole", .at_a_time = 1};
  ASSERT_TRUE(RunTasks(ready.tasks, model, whole).ok());
  // Three shares, of which one was killed after its first files, and one left half a file.
  ExecutorOptions parts{.folder = testing::TempDir() + "/half/parts", .at_a_time = 2, .share = 0, .shares = 3};
  ASSERT_TRUE(RunTasks(ready.tasks, model, parts).ok());
  std::ofstream(parts.folder + "/" + ready.tasks[1].key + ".json.4711") << "[\"1";
  parts.share = 0;
  parts.shares = 1;
  const auto rest = RunTasks(ready.tasks, model, parts);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->kept, 4u);
  EXPECT_EQ(Csv(ready.sweep, ready.tasks, parts.folder), Csv(ready.sweep, ready.tasks, whole.folder));
}

TEST(Executor, ATaskThatFailsIsARowThatSaysSo) {
  const std::string folder = Folder("fails");
  Ready ready = Load(folder);
  ready.tasks[0].fleet = "name: x";  // no fleet
  const auto result = RunTasks(ready.tasks, CostModel(), {.folder = folder + "/rows", .at_a_time = 2});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->ran, 12u);
  EXPECT_THAT(ReadResult(folder + "/rows", ready.tasks[0]).back(), HasSubstr("clusters: is required"));
  EXPECT_EQ(ReadResult(folder + "/rows", ready.tasks[1]).back(), "");
}

TEST(Executor, SaysWhatWasNotRun) {
  const Ready ready = Load(Folder("none"));
  EXPECT_EQ(ReadResult("/nowhere", ready.tasks[0]).back(), "was not run");
  EXPECT_FALSE(RunTasks(ready.tasks, CostModel(), {.folder = "/proc/nowhere"}).ok());
}

}  // namespace
}  // namespace wavetank::capacity
