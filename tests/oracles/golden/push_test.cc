// What is pushed to whom, over a case of our own; what istiod itself did is held to in golden_test.cc where the
// recordings are at hand. The files were written by `push_check tests/oracles/golden --case NAME --record` and read.
#include "oracles/golden/push_runner.h"

#include <gtest/gtest.h>

#include "core/base/status.h"

namespace wavetank::golden {
namespace {

constexpr char kFolder[] = WAVETANK_SOURCE_DIR "/tests/oracles/golden";

void ExpectAllEqual(bool delta) {
  PushOptions options;
  options.delta = delta;
  const auto results = RunPushCases(kFolder, "*", options);
  ASSERT_TRUE(results.ok()) << results.status();
  for (const PushCaseResult& result : *results) {
    EXPECT_TRUE(result.AllEqual()) << PushDifferencesText(result);
    EXPECT_GE(result.files.size(), 20u) << result.name;
  }
}

TEST(PushTest, StateOfTheWorldClientsGetWhatWasReviewed) { ExpectAllEqual(false); }
TEST(PushTest, DeltaClientsGetWhatWasReviewed) { ExpectAllEqual(true); }

TEST(PushTest, ACaseWithoutRecordingIsNotFound) {
  const auto results = RunPushCases(kFolder, "no-such-case", {});
  ASSERT_FALSE(results.ok());
  EXPECT_NE(Message(results.status()).find("no-such-case"), std::string_view::npos);
}

}  // namespace
}  // namespace wavetank::golden
