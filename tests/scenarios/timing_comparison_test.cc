#include "scenarios/timing_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/status.h"

namespace wavetank::scenario {
namespace {

using ::testing::HasSubstr;

constexpr char kFolder[] = WAVETANK_SOURCE_DIR "/scenarios/timing";

TimingComparisonOptions Options(std::vector<std::string> setups) {
  TimingComparisonOptions options;
  options.folder = kFolder;
  options.setups = std::move(setups);
  options.repetitions = 2;
  return options;
}

TEST(TimingComparison, HoldsWithAFewProxies) {
  const auto rows = CompareTiming(Options({"one-n1", "two-n1", "one-n50"}));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->size(), 5u + 9u + 5u);
  for (const TimingComparison& row : *rows) {
    EXPECT_TRUE(row.Holds()) << row.measured.setup << " " << row.measured.op << ": " << row.WorstRatioPpm() << " ppm";
  }
}

TEST(TimingComparison, HoldsForBurstsAndForTheLimitOfConnections) {
  const auto rows = CompareTiming(Options({"bursts-n50"}));
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const TimingComparison& row : *rows) {
    EXPECT_TRUE(row.Holds()) << row.measured.op << ": " << row.WorstRatioPpm() << " ppm";
  }
}

// Debounce is most of every figure; this is what it looks like when the rest is wrong.
TEST(TimingComparison, SeesAnIstiodThatIsTooSlow) {
  TimingComparisonOptions options = Options({"one-n50"});
  options.timing["istiod.proxy_state.fixed"] = "3ms";
  const auto rows = CompareTiming(options);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const TimingComparison& row : *rows) {
    const bool full = row.measured.op.rfind("ep-", 0) != 0;
    EXPECT_EQ(row.Holds(), !full) << row.measured.op;
  }
}

TEST(TimingComparison, NamesTheSetUpsThatThereAre) {
  const auto rows = CompareTiming(Options({"one-n7"}));
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(rows.status())), HasSubstr("one-n50"));
}

TEST(TimingComparison, IsStricterWhereTheMeasurementIs) {
  TimingComparison row;
  row.measured.figures.p50 = {100ms, 100ms, 100ms};
  row.predicted.p50 = {100ms, 100ms, 120ms};
  row.measured.clients = 50;
  EXPECT_EQ(row.WorstRatioPpm(), 1'200'000);
  EXPECT_FALSE(row.Holds());
  row.measured.clients = 500;
  EXPECT_TRUE(row.Holds());
  row.predicted.pushes = {1s};  // a push that was not seen
  EXPECT_FALSE(row.Holds());
}

}  // namespace
}  // namespace wavetank::scenario
