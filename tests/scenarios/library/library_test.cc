// The library of incidents: each story has the verdicts that it names, and its page says what the stories say.
#include "scenarios/library/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "scenarios/library/page.h"

namespace wavetank::scenario {
namespace {

using testing::HasSubstr;

constexpr char kLibrary[] = WAVETANK_SOURCE_DIR "/scenarios/incidents";

const std::vector<IncidentStory>& Library() {
  static const auto* const stories = [] {
    absl::StatusOr<std::vector<IncidentStory>> loaded = LoadIncidents(kLibrary);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return new std::vector<IncidentStory>(loaded.ok() ? *std::move(loaded) : std::vector<IncidentStory>());
  }();
  return *stories;
}

class Incidents : public testing::TestWithParam<size_t> {};

TEST_P(Incidents, HaveTheVerdictsThatTheyName) {
  const IncidentStory& story = Library().at(GetParam());
  for (const auto& [profile, shown] : story.scenario.incident->shown) {
    const absl::StatusOr<IncidentVerdict> verdict = RunIncident(story, profile);
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_THAT(verdict->problems, testing::IsEmpty()) << profile;
    EXPECT_EQ(verdict->shown, shown) << profile;
    EXPECT_EQ(verdict->cause.empty(), !shown) << profile << ": " << verdict->cause;
  }
}

INSTANTIATE_TEST_SUITE_P(Library, Incidents, testing::Range<size_t>(0, Library().size()),
                         [](const auto& parameter) { return Library().at(parameter.param).id; });

TEST(Library, NamesEachIncidentOnceAndWithTheReleaseThatIsSimulated) {
  std::vector<std::string> ids;
  for (const IncidentStory& story : Library()) {
    ids.push_back(story.id);
    EXPECT_TRUE(story.scenario.incident->shown.contains("istio-1.18")) << story.id;
    EXPECT_FALSE(story.scenario.incident->issues.empty() && story.id.front() == 'A') << story.id;
    const auto symptoms = [](const Step& step) {
      return std::any_of(step.expectations.begin(), step.expectations.end(), [](const auto& e) { return e.symptom; });
    };
    EXPECT_TRUE(std::any_of(story.scenario.steps.begin(), story.scenario.steps.end(), symptoms)) << story.id;
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_GE(ids.size(), 40u);
}

TEST(Library, PageIsWhatTheStoriesSay) {
  std::ifstream in(std::string(WAVETANK_SOURCE_DIR) + "/" + "docs/incidents.md");
  std::stringstream page;
  page << in.rdbuf();
  EXPECT_EQ(page.str(), IncidentPage(Library())) << "`build/wavetank incidents --page > docs/incidents.md`";
}

TEST(Library, AnUnknownIncidentIsAnsweredWithThoseThatThereAre) {
  const auto none = Selected(Library(), {"A01", "B99"});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("no incident 'B99'; there are A01, "));
  const auto one = Selected(Library(), {"A01"});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->size(), 1u);
}

// A library of its own.
class SpoiltLibrary : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "spoilt-library";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "A99-story");
    std::ofstream(folder_ / "mesh.yaml") << "name: mesh\nclusters: [{name: c1}]\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Refusal(const std::string& text) {
    std::ofstream(folder_ / "A99-story" / "scenario.yaml") << text;
    const auto loaded = LoadIncidents(folder_.string());
    return loaded.ok() ? "" : std::string(loaded.status().message());
  }
  static constexpr char kHead[] =
      "name: a story\nextends: ../mesh.yaml\nincident:\n  reported: r\n  symptom: s\n  cause: c\n  see: here\n";
  std::filesystem::path folder_;
};

TEST_F(SpoiltLibrary, ASoundStoryExtendsItsMesh) {
  EXPECT_EQ(Refusal(std::string(kHead) + "  verdicts: {istio-1.18: shown}\n"), "");
  const auto loaded = LoadIncidents(folder_.string());
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->front().scenario.clusters.size(), 1u);
  EXPECT_EQ(loaded->front().scenario.name, "a story");
}

TEST_F(SpoiltLibrary, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(Refusal("name: x\nextends: ../mesh.yaml\n"), HasSubstr("has no head"));
  EXPECT_THAT(Refusal("name: x\nextends: ../gone.yaml\n"), HasSubstr("scenario.yaml:2:10"));
  EXPECT_THAT(Refusal(std::string(kHead) + "  verdicts: {istio-1.18: perhaps}\n"),
              HasSubstr("'perhaps' is no verdict"));
  EXPECT_THAT(Refusal(std::string(kHead) + "  verdicts: {istio-9: shown}\n"), HasSubstr("profile 'istio-9'"));
  EXPECT_THAT(Refusal(std::string(kHead) + "  issues: [56355]\n  verdicts: {istio-1.18: shown}\n"),
              HasSubstr("is no address"));
  EXPECT_THAT(Refusal("name: x\nextends: ../mesh.yaml\nsteps:\n  - name: s\n    symptom: [{requests: {failed: 0}}]\n"),
              HasSubstr("is of no incident"));
  std::filesystem::remove_all(folder_ / "A99-story");
  EXPECT_THAT(std::string(LoadIncidents(folder_.string()).status().message()), HasSubstr("--library"));
}

TEST_F(SpoiltLibrary, ANameThatNoFolderHasIsRefused) {
  std::filesystem::rename(folder_ / "A99-story", folder_ / "story");
  std::ofstream(folder_ / "story" / "scenario.yaml")
      << "name: a\nclusters: [{name: c}]\nincident: {reported: r, symptom: s, cause: c, see: x, verdicts: {}}\n";
  EXPECT_THAT(std::string(LoadIncidents(folder_.string()).status().message()), HasSubstr("ID-name"));
}

// A verdict that does not stand is a problem that says what was seen.
TEST(Library, AVerdictThatDoesNotStandIsAProblem) {
  auto story = Selected(Library(), {"A05"});
  ASSERT_TRUE(story.ok());
  ASSERT_EQ(story->front().scenario.incident->shown.at("istio-1.18"), false);
  story->front().scenario.incident->shown["istio-1.18"] = true;
  const absl::StatusOr<IncidentVerdict> verdict = RunIncident(story->front(), "istio-1.18");
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  ASSERT_FALSE(verdict->problems.empty());
  EXPECT_EQ(verdict->problems.front(), "is not shown, and should be shown");
}

}  // namespace
}  // namespace wavetank::scenario
