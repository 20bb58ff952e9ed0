#include "capacity/sweep/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_join.h"
#include "capacity/sweep/sweep.h"
#include "core/base/random.h"
#include "core/base/status.h"

namespace wavetank::capacity {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

std::string Head(const std::string& settings) {
  return settings + ",seed," + absl::StrJoin(ResultColumns(Sweep()), ",");
}

// A row with these objectives, or with an error.
std::string Line(const std::string& settings, double p99, double cpus, double memory, const std::string& error = "") {
  std::string out = settings;
  for (const std::string& column : ResultColumns(Sweep())) {
    out += ",";
    if (column == "error") {
      out += error;
    } else if (error.empty() && column != "extrapolates") {
      out += std::to_string(column == "p99_ms" ? p99 : column == "cpus" ? cpus : column == "memory_mb" ? memory : 1);
    }
  }
  return out + "\n";
}

absl::StatusOr<SweepTable> Table(const std::string& text) {
  std::filesystem::remove(testing::TempDir() + "/table.json");
  const std::string path = testing::TempDir() + "/table.csv";
  std::ofstream(path, std::ios::binary) << text;
  return ReadTable(path);
}

std::vector<Combination> Of(const std::vector<std::array<double, 3>>& points) {
  std::vector<Combination> out;
  for (const auto& point : points) out.push_back({{std::to_string(out.size())}, 1, {point.begin(), point.end()}});
  return out;
}

TEST(SweepTable, IsReadWithQuotesCommasAndLineBreaks) {
  const auto table = Table(Head("a,\"b,c\"") + "\n" + Line("\"x\"\"y\",2,0", 1, 2, 3) +
                           Line("z,\"1,5\",0", 0, 0, 0, "\"two\nlines, one error\""));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->settings, ElementsAre("a", "b,c"));
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_THAT(table->rows[0].values, ElementsAre("x\"y", "2"));
  EXPECT_THAT(table->rows[1].values, ElementsAre("z", "1,5"));
  EXPECT_EQ(table->rows[1].error(), "two\nlines, one error");
}

TEST(SweepTable, ThatIsNoneIsRefusedWithItsLine) {
  const auto why = [](const absl::StatusOr<SweepTable>& table) { return std::string(Message(table.status())); };
  EXPECT_THAT(why(Table("")), HasSubstr("table.csv: its columns are not those of a sweep"));
  EXPECT_THAT(why(Table("a,b\n1,2\n")), HasSubstr("its columns are not"));
  EXPECT_THAT(why(Table(Head("a") + "\n" + Line("1,0", 1, 1, 1) + "1,2\n")), HasSubstr("table.csv:3: 2 cells where"));
  EXPECT_THAT(why(Table(Head("a") + "\n1,0" + std::string(ResultColumns(Sweep()).size(), ',') + "\n")),
              HasSubstr("table.csv:2: neither an error nor results"));
  EXPECT_THAT(why(ReadTable(testing::TempDir() + "/nowhere.csv")), HasSubstr("run the sweep first"));
}

TEST(SweepTable, IsJudgedByWhatStandsBesideIt) {
  const std::string path = testing::TempDir() + "/own.csv";
  std::ofstream(path) << "a,seed,failed,pods,error\n1,0,3,7,\n1,1,5,6,\n2,0,,,killed\n";
  std::ofstream(testing::TempDir() + "/own.json") << R"({"objectives": ["pods", "failed"]})";
  const auto table = ReadTable(path);
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<Combination> combinations = CombinationsOf(*table);
  ASSERT_EQ(combinations.size(), 1u);
  EXPECT_THAT(combinations[0].worst, ElementsAre(7, 5));
  std::ofstream(testing::TempDir() + "/own.json") << R"({"objectives": ["cost"]})";
  EXPECT_THAT(std::string(Message(ReadTable(path).status())), HasSubstr("has no column 'cost'"));
  std::ofstream(testing::TempDir() + "/own.json") << "{";
  EXPECT_THAT(std::string(Message(ReadTable(path).status())), HasSubstr("own.json: does not say"));
}

TEST(Combinations, HaveTheWorstOfTheirSeedsAndNoneThatFailed) {
  const auto table = Table(Head("a") + "\n" + Line("1,0", 10, 5, 7) + Line("2,0", 0, 0, 0, "killed") +
                           Line("1,1", 20, 4, 7) + Line("2,1", 9, 9, 9));
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<Combination> combinations = CombinationsOf(*table);
  ASSERT_EQ(combinations.size(), 2u);
  EXPECT_EQ(combinations[0].seeds, 2);
  EXPECT_THAT(combinations[0].worst, ElementsAre(20, 5, 7));
  EXPECT_EQ(combinations[1].seeds, 1);
}

TEST(Front, HasWhatNoOtherBeats) {
  EXPECT_THAT(Front(Of({{10, 5, 0}, {5, 10, 0}, {10, 10, 0}, {7, 7, 0}, {5, 12, 0}}), {0, 1}), ElementsAre(1, 3, 0));
  EXPECT_THAT(Front(Of({{1, 1, 1}, {1, 1, 1}}), {0, 1, 2}), ElementsAre(0, 1));  // equals beat nobody
}

TEST(Front, IsThatOfComparingEachWithEach) {
  RandomStream random(3, "front");
  for (int round = 0; round < 100; ++round) {
    std::vector<std::array<double, 3>> points;
    for (int i = 0; i < 40; ++i) {
      points.push_back({static_cast<double>(random.Below(8)), static_cast<double>(random.Below(8)),
                        static_cast<double>(random.Below(8))});
    }
    std::vector<size_t> expected;
    for (size_t i = 0; i < points.size(); ++i) {
      const auto beats = [&](const std::array<double, 3>& other) {
        return other != points[i] && other[0] <= points[i][0] && other[1] <= points[i][1] && other[2] <= points[i][2];
      };
      if (std::none_of(points.begin(), points.end(), beats)) expected.push_back(i);
    }
    EXPECT_THAT(Front(Of(points), {0, 1, 2}), UnorderedElementsAreArray(expected));
  }
}

TEST(Responses, AreSpreadsOverTheOtherSettingsInTheOrderOfTheirValues) {
  std::vector<Combination> combinations;
  for (const char* value : {"1s", "100ms", "50ms"}) {
    for (int other = 1; other <= 5; ++other) {
      combinations.push_back({{value, std::to_string(other)}, 1, {10.0 * other, 1, 2}});
    }
  }
  const std::vector<Response> by = ResponsesTo(combinations, 0);
  ASSERT_EQ(by.size(), 3u);
  EXPECT_EQ(by[0].value, "50ms");  // as durations, not as text, nor as they came
  EXPECT_EQ(by[1].value, "100ms");
  EXPECT_EQ(by[2].value, "1s");
  EXPECT_EQ(by[0].combinations, 5);
  const Spread& p99 = by[0].spread[0];
  EXPECT_EQ(p99.least, 10);
  EXPECT_EQ(p99.quarter, 20);
  EXPECT_EQ(p99.middle, 30);
  EXPECT_EQ(p99.three_quarters, 40);
  EXPECT_EQ(p99.most, 50);
  combinations.push_back({{"each", "1"}, 1, {1, 1, 1}});
  EXPECT_EQ(ResponsesTo(combinations, 0)[0].value, "1s");  // words have no order but the table's
}

}  // namespace
}  // namespace wavetank::capacity
