#include "scenarios/survey/timing_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "tests/left_out.h"
#include "tests/long.h"

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

void ExpectToHold(const std::vector<std::string>& setups, size_t rows) {
  const auto compared = CompareTiming(Options(setups));
  ASSERT_TRUE(compared.ok()) << compared.status();
  EXPECT_EQ(compared->size(), rows);
  for (const TimingComparison& row : *compared) {
    EXPECT_TRUE(row.Holds()) << row.measured.setup << " " << row.measured.op << ": " << row.WorstRatioPpm() << " ppm";
  }
}

TEST(TimingComparison, HoldsWithAFewProxies) { ExpectToHold({"one-n1", "two-n1", "one-n50"}, 5 + 9 + 5); }

TEST(TimingComparison, HoldsForBurstsAndForTheLimitOfConnections) {
  ExpectToHold({"bursts-n1", "bursts-n50", "bursts-n500"}, 3 + 3 + 3);
}

TEST(TimingComparison, HoldsWithManyProxiesAndEndpoints) {
  NEEDS_LONG(LongTests());
  ExpectToHold({"one-n500", "two-n50", "two-n500", "e1k-n50", "e10k-n50", "e10k-n500"}, 5 + 9 + 9 + 5 + 5 + 4);
}

// Every set-up is in one of the lists above.
TEST(TimingComparison, IsMadeForEveryMeasurement) {
  const auto measured = LoadMeasurements(kFolder);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->size(), 19u + 9u + 37u);
}

TEST(TimingComparison, SeesWhatAClientsOwnBackOffDoesToALimitOfConnections) {
  TimingComparisonOptions options = Options({"bursts-n500"});
  options.timing["envoy.xds_retry_max"] = "30s";  // as Envoy's
  const auto rows = CompareTiming(options);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const TimingComparison& row : *rows) {
    EXPECT_EQ(row.Holds(), row.measured.op != "connect") << row.measured.op << ": " << row.WorstRatioPpm() << " ppm";
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
