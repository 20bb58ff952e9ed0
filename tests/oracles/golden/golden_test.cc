// Golden cases as tests: our own, and the recordings of the real istiod 1.18.2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "oracles/golden/case.h"
#include "oracles/golden/push_runner.h"
#include "oracles/golden/runner.h"
#include "tests/oracles/istiod_records.h"

namespace wavetank::golden {
namespace {

namespace fs = std::filesystem;

const char kOwnCases[] = WAVETANK_SOURCE_DIR "/tests/oracles/golden/cases";

void ExpectAllEqual(const std::string& directory, size_t at_least, const RunOptions& options = {}) {
  const absl::StatusOr<std::vector<std::string>> cases = FindCases(directory);
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_GE(cases->size(), at_least);
  const int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (const CaseResult& result : RunCases(*cases, options, jobs, nullptr)) {
    EXPECT_TRUE(result.AllEqual()) << DifferencesText(result);
    EXPECT_FALSE(result.files.empty()) << result.name;
  }
}

TEST(GoldenTest, OurOwnCasesGiveWhatWasReviewed) { ExpectAllEqual(kOwnCases, 24); }

TEST(GoldenTest, RecordedCasesAreWhatIstiodGenerated) { ExpectAllEqual(IstiodRecords() + "/cases", 136); }

TEST(GoldenTest, RecordedCasesOf130AreWhatItsIstiodGenerated) {
  RunOptions options;
  options.profile = *pilot::ParseProfile("istio-1.30");
  options.inputs = IstiodRecords() + "/cases";
  ExpectAllEqual(LaterIstiodRecords(), 133, options);
}

TEST(GoldenTest, RecordingsAloneFindTheirInputsByName) {
  const fs::path root = fs::path(::testing::TempDir()) / "wavetank_golden_inputs";
  fs::remove_all(root);
  fs::create_directories(root / "golden-1.30/cases/one/expect/00");
  fs::create_directories(root / "golden/cases/one");
  std::ofstream(root / "golden/cases/one/case.yaml") << "name: one\n";
  const std::string recordings = (root / "golden-1.30/cases/one").string();
  EXPECT_EQ(*InputsOf(recordings, ""), (root / "golden/cases/one").string());
  EXPECT_EQ(*InputsOf(recordings, (root / "golden/cases").string()), (root / "golden/cases/one").string());
  EXPECT_EQ(FindCases((root / "golden-1.30").string())->size(), 1u);
  EXPECT_FALSE(InputsOf(recordings, (root / "nowhere").string()).ok());
  fs::remove_all(root);
}

TEST(GoldenTest, RecordedPushesAreWhatIstiodPushed) {
  for (const bool delta : {false, true}) {
    PushOptions options;
    options.delta = delta;
    const auto results = RunPushCases(IstiodRecords(), "*", options);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_GE(results->size(), delta ? 33u : 109u);
    for (const PushCaseResult& result : *results) EXPECT_TRUE(result.AllEqual()) << PushDifferencesText(result);
  }
}

// A copy of one of our cases, to be spoilt.
class SpoiltCaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    directory_ = fs::path(::testing::TempDir()) / ("wavetank_golden_" + name);
    fs::remove_all(directory_);
    fs::copy(std::string(kOwnCases) + "/two-networks", directory_, fs::copy_options::recursive);
  }
  void TearDown() override { fs::remove_all(directory_); }
  void Replace(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = ReadFile((directory_ / file).string()).value();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(directory_ / file) << text.replace(at, from.size(), to);
  }
  CaseResult Run() { return RunCase(directory_.string(), {}); }

  fs::path directory_;
};

TEST_F(SpoiltCaseTest, OneOtherAddressIsFoundAndNamed) {
  Replace("expect/00/client-east/eds.json", "198.51.100.2", "198.51.100.3");
  const CaseResult result = Run();
  EXPECT_FALSE(result.AllEqual());
  EXPECT_THAT(DifferencesText(result), ::testing::HasSubstr("socket_address.address"));
}

TEST_F(SpoiltCaseTest, ResourceThatIsNotThereIsFound) {
  const std::string file = (directory_ / "expect/00/client-east/eds.json").string();
  nlohmann::json recorded = nlohmann::json::parse(ReadFile(file).value());
  recorded.erase(recorded.begin());
  std::ofstream(file) << recorded.dump(1);
  EXPECT_FALSE(Run().AllEqual());
}

TEST_F(SpoiltCaseTest, FieldThatNoMessageHasIsAnError) {
  Replace("expect/00/client-east/eds.json", "\"cluster_name\"", "\"cluster_nome\"");
  EXPECT_FALSE(Run().status.ok());
}

TEST_F(SpoiltCaseTest, ChangedManifestShows) {
  Replace("clusters/west.yaml", "198.51.100.2", "198.51.100.9");
  const CaseResult result = Run();
  EXPECT_FALSE(result.AllEqual());
}

TEST_F(SpoiltCaseTest, RecordingAgainMakesItEqual) {
  Replace("clusters/west.yaml", "198.51.100.2", "198.51.100.9");
  ASSERT_TRUE(RecordCase(directory_.string(), {}).ok());
  EXPECT_TRUE(Run().AllEqual());
}

}  // namespace
}  // namespace wavetank::golden
