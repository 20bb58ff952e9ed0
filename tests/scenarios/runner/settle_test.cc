// How long a step may take to settle is the scenario's to say; a step that does not settle names what is not settled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> NotesOf(const std::string& settle) {
  absl::StatusOr<Scenario> scenario = LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network");
  const absl::StatusOr<Scenario> own =
      ParseScenario("own.yaml",
                    "name: n\nclusters: [{name: cluster1}, {name: cluster2}]\nsteps:\n"
                    "  - {name: s, do: [{scale: {cluster: cluster2, deployment: sample/helloworld-v2, replicas: 3}}]" +
                        settle + "}\n");
  EXPECT_TRUE(scenario.ok() && own.ok()) << own.status();
  if (!scenario.ok() || !own.ok()) return {};
  scenario->steps = own->steps;
  const absl::StatusOr<RunResult> result = Run(*scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->steps.at(0).notes : std::vector<std::string>();
}

TEST(Settle, AStepThatIsCutOffSaysWhatIsNotSettled) {
  const std::vector<std::string> notes = NotesOf(", settle: 30ms");
  EXPECT_THAT(notes, Contains("had not settled after 30.0 ms"));
  EXPECT_THAT(notes, Contains(AllOf(HasSubstr("not at rest"), HasSubstr("cluster2"))));
}

TEST(Settle, EnoughTimeIsNoNote) { EXPECT_THAT(NotesOf(""), IsEmpty()); }

TEST(Settle, TheScenarioBoundsItsSteps) {
  const absl::StatusOr<Scenario> own =
      ParseScenario("own.yaml", "name: n\nsettle: 1m30s\nclusters: [{name: c}]\nsteps: [{name: s, settle: 5s}]\n");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->settle, 90s);
  EXPECT_EQ(own->steps[0].settle, 5s);
  EXPECT_THAT(ParseScenario("own.yaml", "name: n\nclusters: [{name: c}]\nsettle: soon\n").status().ToString(),
              HasSubstr("own.yaml:3"));
}

}  // namespace
}  // namespace wavetank::scenario
