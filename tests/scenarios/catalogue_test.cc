// The scenarios that the project ships run, hold what they promise, and do so again byte for byte.
#include <cstdlib>
#include <filesystem>

#include "gtest/gtest.h"
#include "replay/replayer.h"
#include "replay/world_target.h"
#include "scenarios/runner.h"
#include "scenarios/scenario.h"

namespace wavetank::scenario {
namespace {

RunResult MustRun(const std::string& name, const RunOptions& options = {}) {
  const absl::StatusOr<Scenario> scenario = LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/" + name);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  absl::StatusOr<RunResult> result = scenario::Run(*scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : RunResult();
}

void ExpectPassed(const RunResult& result) {
  ASSERT_FALSE(result.steps.empty());
  for (const StepResult& step : result.steps) {
    for (const ExpectationResult& e : step.expectations)
      EXPECT_TRUE(e.held) << step.name << ": " << e.text << ": " << e.explanation;
    for (const std::string& note : step.notes) ADD_FAILURE() << step.name << ": " << note;
  }
}

class Catalogue : public testing::TestWithParam<const char*> {};

TEST_P(Catalogue, HoldsWhatItPromisesAndRepeatsItself) {
  const RunResult first = MustRun(GetParam());
  ExpectPassed(first);
  const RunResult second = MustRun(GetParam());
  EXPECT_EQ(first.digest, second.digest) << "two runs in one process differ";
  EXPECT_EQ(first.trace_records, second.trace_records);
}

TEST_P(Catalogue, AnotherSeedHoldsToo) {
  RunOptions options;
  options.seed = 4711;
  const RunResult other = MustRun(GetParam(), options);
  ExpectPassed(other);
  EXPECT_NE(other.digest, MustRun(GetParam()).digest);
}

INSTANTIATE_TEST_SUITE_P(Shipped, Catalogue,
                         testing::Values("multi-primary-multi-network", "multi-primary-one-network",
                                         "primary-remote-one-network", "primary-remote-multi-network"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(Catalogue, EveryFolderHasItsScenario) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WAVETANK_SOURCE_DIR "/scenarios")) {
    if (!entry.is_directory() || entry.path().filename() == "manifests") continue;
    ++found;
    const absl::StatusOr<Scenario> scenario = LoadScenario(entry.path().string());
    EXPECT_TRUE(scenario.ok()) << scenario.status();
  }
  EXPECT_GE(found, 4);
}

TEST(Recording, AReplayRepeatsEveryEventOfTheMainScenario) {
  const std::string log = testing::TempDir() + "catalogue.wtlog";
  RunOptions options;
  options.log = log;
  const RunResult result = MustRun("multi-primary-multi-network", options);
  // Recording changes nothing.
  EXPECT_EQ(result.digest, MustRun("multi-primary-multi-network").digest);
  absl::StatusOr<std::unique_ptr<replay::LogReader>> reader = replay::LogReader::Open(log);
  ASSERT_TRUE(reader.ok()) << reader.status();
  replay::WorldTarget world;
  const absl::StatusOr<replay::ReplayResult> replayed = replay::Replay(**reader, world);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_FALSE(replayed->divergence.has_value()) << replay::Describe(*replayed->divergence);
  EXPECT_TRUE(replayed->complete);
  EXPECT_EQ(replayed->trace_digest, result.digest);
  std::filesystem::remove(log);
}

// Istio's own samples in place of the project's manifests, when they lie beside the repository.
TEST(RealManifests, TellTheSameStory) {
  const std::string real = WAVETANK_SOURCE_DIR "/../shared/real";
  if (!std::filesystem::exists(real)) GTEST_SKIP() << "no folder ../shared/real beside the repository";
  absl::StatusOr<Scenario> scenario = LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  for (size_t i = 0; i < scenario->clusters.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    const std::string manifests = WAVETANK_SOURCE_DIR "/scenarios/manifests/";
    // As in the guide: the namespaces are made and labelled by hand, the rest is applied from files.
    scenario->clusters[i].manifests = {{manifests + "network" + number + ".yaml", "", ""},
                                       {manifests + "sample.yaml", "", ""},
                                       {real + "/eastwest-cluster" + number + ".yaml", "", ""},
                                       {real + "/expose-services.yaml", "istio-system", ""},
                                       {real + "/helloworld.yaml", "sample", "service=helloworld"},
                                       {real + "/helloworld.yaml", "sample", "version=v" + number},
                                       {real + "/sleep.yaml", "sample", ""}};
  }
  const absl::StatusOr<RunResult> result = scenario::Run(*scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectPassed(*result);
}

}  // namespace
}  // namespace wavetank::scenario
