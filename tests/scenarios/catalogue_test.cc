// The scenarios that the project ships run, hold what they promise, and do so again byte for byte.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "gtest/gtest.h"
#include "replay/replayer.h"
#include "replay/world_target.h"
#include "scenarios/mesh/unheeded.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "tests/left_out.h"

namespace wavetank::scenario {
namespace {

RunResult MustRun(const std::string& name, const RunOptions& options = {}) {
  const absl::StatusOr<Scenario> scenario = LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/" + name);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  absl::StatusOr<RunResult> result = scenario::Run(*scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : RunResult();
}

// `strangers`: manifests of others hold what a real cluster heeds and this one does not; that it is told is no fault.
void ExpectPassed(const RunResult& result, bool strangers = false) {
  ASSERT_FALSE(result.steps.empty());
  for (const StepResult& step : result.steps) {
    for (const ExpectationResult& e : step.expectations)
      EXPECT_TRUE(e.held) << step.name << ": " << e.text << ": " << e.explanation;
    for (const std::string& note : step.notes) {
      if (strangers && IsUnheeded(note)) continue;
      // What a story breaks on purpose is complained of.
      if (result.scenario != "A remote Secret is broken and put right again")
        ADD_FAILURE() << step.name << ": " << note;
    }
  }
}

// Every story there is, but for the experiments of docs/timing.md.
std::vector<std::string> Stories() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(WAVETANK_SOURCE_DIR "/scenarios")) {
    const std::string name = entry.path().filename().string();
    if (std::filesystem::exists(entry.path() / "scenario.yaml") && name != "timing") out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Catalogue : public testing::TestWithParam<std::string> {};

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

INSTANTIATE_TEST_SUITE_P(Shipped, Catalogue, testing::ValuesIn(Stories()), [](const auto& parameter) {
  std::string name = parameter.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

// istio#36365: the story's first expectation is that cluster2's endpoints are gone at some instant.
TEST(GracefulSecretUpdate, NobodyNoticesThatAClusterIsReadAnew) {
  RunOptions options;
  options.profile = "istio-1.18+graceful-secret-update";
  const RunResult result = MustRun("remote-secret-rotated", options);
  const StepResult& rotated = result.steps.at(1);
  ASSERT_FALSE(rotated.expectations.empty());
  EXPECT_FALSE(rotated.expectations[0].held) << rotated.expectations[0].explanation;
  for (size_t i = 1; i < rotated.expectations.size(); ++i) EXPECT_TRUE(rotated.expectations[i].held) << i;
  for (const TrafficResult& traffic : rotated.traffic) {
    if (traffic.flow != "from-cluster1") continue;
    const auto v2 = traffic.by_version.find("v2");
    ASSERT_NE(v2, traffic.by_version.end());
    EXPECT_NEAR(static_cast<double>(v2->second) / static_cast<double>(traffic.sent), 0.5, 0.1);
  }
}

// The incident's verdict is one for both; how its clients meet it is not.
TEST(HalfAnAnswerOfDns, ProxiesOf118TryTheAddressThatIsLeftAndThoseOf130HaveNone) {
  for (const auto& [profile, tries] : {std::pair("istio-1.18", true), std::pair("istio-1.30", false)}) {
    RunOptions options;
    options.profile = profile;
    const RunResult result = MustRun("incidents/L2-half-an-answer-of-dns", options);
    const auto asked_again = std::find_if(result.steps.begin(), result.steps.end(),
                                          [](const StepResult& step) { return step.name == "istiod has asked again"; });
    ASSERT_NE(asked_again, result.steps.end());
    ASSERT_EQ(asked_again->traffic.size(), 1u);
    const TrafficResult& traffic = asked_again->traffic[0];
    EXPECT_EQ(traffic.sent, 300);
    EXPECT_EQ(traffic.retried * 100 >= traffic.sent * 5, tries) << profile << ": " << traffic.retried;
    EXPECT_EQ(traffic.retried == 0, !tries) << profile << ": " << traffic.retried;
  }
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

// Istio's own samples in place of the project's manifests.
TEST(RealManifests, TellTheSameStory) {
  const char* const named = std::getenv("WAVETANK_ISTIO_SAMPLES");
  NEEDS_BROUGHT(named != nullptr, "istio-samples", kIstioSamples);
  const std::string real = named;
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
  ExpectPassed(*result, true);
}

}  // namespace
}  // namespace wavetank::scenario
