// Pages of plans and sweeps: whole, true to the numbers that they are made of, and drawn by a browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "capacity/page/plan_page.h"
#include "capacity/page/sweep_page.h"
#include "capacity/plan/plan_texts.h"
#include "capacity/sweep/sweep.h"
#include "core/base/duration.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "tests/chromium.h"
#include "tests/left_out.h"

namespace wavetank::capacity {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Drawing {
  Plan plan;
  Curves curves;
};
Drawing SmallPlan() {
  Fleet fleet;
  fleet.name = "two <clusters> & </script>";
  fleet.duration = 1min;
  fleet.clusters = 2;
  fleet.proxies = 200;
  fleet.churn.config_edits = 5s;
  fleet.churn.deploys = 20s;
  const CostModel model;
  const PlanOptions options{.samples = 2};
  auto plan = MakePlan(model, fleet, *ParseSlo("convergence p99 <= 500ms, error 0"), options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto curves = DrawCurves(model, *plan, options);
  EXPECT_TRUE(curves.ok()) << curves.status();
  return {*std::move(plan), *std::move(curves)};
}

SweepTable SmallTable() {
  SweepTable table;
  table.settings = {"istiod.replicas", "churn"};
  table.columns = ResultColumns(Sweep());
  table.objectives = FleetObjectives();
  for (const char* replicas : {"1", "2"}) {
    for (const char* churn : {"1", "4", "</script>"}) {
      SweepTable::Row& row = table.rows.emplace_back();
      row.values = {replicas, churn};
      for (const std::string& column : ResultColumns(Sweep())) {
        const double one = *replicas == '1' ? 1 : 0, four = *churn == '4' ? 1 : 0;
        row.results.push_back(column == "p99_ms"         ? fmt::format("{}", 100 + 50 * one + 200 * four)
                              : column == "cpus"         ? fmt::format("{}", 0.2 + 0.1 * four - 0.1 * one)
                              : column == "memory_mb"    ? fmt::format("{}", 500 + 100 * one)
                              : column == "extrapolates" ? "9 clusters (2 measured)"
                              : column == "error"        ? ""
                                                         : "1");
      }
    }
  }
  table.rows.push_back({{"2", "9"}, FailedRow(Sweep(), "its process was <killed> by signal 9")});
  return table;
}

// What the page was made of.
nlohmann::json DataOf(const std::string& page) {
  const std::string_view mark = "id=\"results\">";
  const size_t from = page.find(mark) + mark.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

std::string Drawn(const std::string& page) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  // Tests of two suites have one name, and ctest runs them side by side.
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("{}.{}", test.test_suite_name(), test.name());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "page.html") << page;
  const std::string dom = DrawnByChromium(folder / "page.html");
  std::filesystem::remove_all(folder);
  return dom;
}

TEST(PlanPage, HasTheNumbersOfTheJsonAndTheTextOfThePlan) {
  const auto [plan, curves] = SmallPlan();
  const nlohmann::json data = DataOf(PlanPage(plan, curves, {"a note"}));
  EXPECT_EQ(data["plan"], nlohmann::json(PlanJson(plan)));
  EXPECT_EQ(data["text"]["figures"], nlohmann::json(TextOf(plan).figures));
  EXPECT_EQ(data["curves"]["churn"].size(), curves.churn.size());
  EXPECT_EQ(data["notes"], nlohmann::json({"a note"}));
}

TEST(PlanPage, IsDrawnWithEveryChartByChromium) {
  NEEDS_TOOL(HasChromium(), "chromium", kChromiumRemedy);
  const auto [plan, curves] = SmallPlan();
  const std::string dom = Drawn(PlanPage(plan, curves, {"streams of one kind are <left out>"}));
  const std::string head = dom.substr(0, 300);
  EXPECT_THAT(head, HasSubstr("data-charts=\"10\""));  // churn, recovery, four over time, four of settings
  EXPECT_THAT(head, HasSubstr("data-blank-charts=\"0\""));
  EXPECT_THAT(head, Not(HasSubstr("data-error")));
  EXPECT_THAT(dom, HasSubstr("<h1>two &lt;clusters&gt; &amp; &lt;/script&gt;</h1>"));
  EXPECT_THAT(dom, HasSubstr("class=\"verdict held\""));
  EXPECT_THAT(dom, HasSubstr("streams of one kind are &lt;left out&gt;"));
  for (const auto& row : TextOf(plan).figures) EXPECT_THAT(dom, HasSubstr(">" + row[1] + "</td>"));
  for (const Remedy& remedy : plan.remedies) {
    EXPECT_THAT(dom, HasSubstr(FormatDuration(plan.outcome.p99) + " → " + FormatDuration(remedy.p99)))
        << remedy.setting;
  }
}

// As core/base/duration.cc prints them, since a reader compares page and terminal.
TEST(PlanPage, PrintsDurationsAsTheTerminalDoes) {
  NEEDS_TOOL(HasChromium(), "chromium", kChromiumRemedy);
  auto [plan, curves] = SmallPlan();
  std::string expected;
  for (const Duration d : {Duration(0), Duration(999), Duration(1'005), Duration(99'950), Duration(999'500),
                           Duration(12'345'678), Duration(1s), Duration(9'995ms), Duration(53'350ms),
                           Duration(59'949ms), Duration(59'950ms), Duration(107s), Duration(3600s), Duration(5406s)}) {
    plan.outcome.node_recovery = d;
    const std::string page = PlanPage(plan, curves, {});
    // One page for all: the function is asked for each.
    if (expected.empty()) expected = page;
    const size_t at = expected.rfind("show(() => {");
    const std::string ask =
        fmt::format("document.documentElement.append('[' + time({}/1e6) + ' is {}]');\n", d.count(), FormatDuration(d));
    expected.insert(at, ask);
  }
  const std::string dom = Drawn(expected);
  size_t asked = 0;
  for (size_t at = dom.find("</body>"); (at = dom.find('[', at)) != std::string::npos; ++at, ++asked) {
    const std::string said = dom.substr(at + 1, dom.find(']', at) - at - 1);
    const size_t is = said.find(" is ");
    ASSERT_NE(is, std::string::npos) << said;
    EXPECT_EQ(said.substr(0, is), said.substr(is + 4));
  }
  EXPECT_EQ(asked, 14u);
}

TEST(SweepPage, HasTheFrontAndTheSpreadsOfTheTable) {
  const SweepTable table = SmallTable();
  const auto page = SweepPage("sweep.csv", table);
  ASSERT_TRUE(page.ok()) << page.status();
  const nlohmann::json data = DataOf(*page);
  EXPECT_EQ(data["rows"], 7);
  EXPECT_EQ(data["failed"], 1);
  EXPECT_EQ(data["combinations"], 6);
  const std::vector<Combination> combinations = CombinationsOf(table);
  const std::vector<size_t> front = Front(combinations, {0, 1, 2});
  ASSERT_EQ(data["best"].size(), front.size());
  for (size_t i = 0; i < front.size(); ++i) {
    EXPECT_EQ(data["best"][i]["p99_ms"], combinations[front[i]].worst[0]);
    EXPECT_EQ(data["best"][i]["values"], nlohmann::json(combinations[front[i]].values));
  }
  const nlohmann::json& replicas = data["responses"][0]["values"];
  EXPECT_EQ(replicas[0]["p99_ms"], nlohmann::json({150, 150, 150, 350, 350}));
  EXPECT_EQ(replicas[1]["memory_mb"], nlohmann::json({500, 500, 500, 500, 500}));
}

TEST(SweepPage, IsDrawnWithEveryChartByChromium) {
  NEEDS_TOOL(HasChromium(), "chromium", kChromiumRemedy);
  const auto page = SweepPage("sweep.csv", SmallTable());
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string dom = Drawn(*page), head = dom.substr(0, 300);
  EXPECT_THAT(head, HasSubstr("data-charts=\"8\""));  // two fronts, three for each setting
  EXPECT_THAT(head, HasSubstr("data-blank-charts=\"0\""));
  EXPECT_THAT(head, Not(HasSubstr("data-error")));
  EXPECT_THAT(dom, HasSubstr("least p99"));
  EXPECT_THAT(dom, HasSubstr(">churn: what a fleet meets, not how it is run."));
  EXPECT_THAT(dom, HasSubstr("its process was &lt;killed&gt; by signal 9"));
  EXPECT_THAT(dom, HasSubstr("9 clusters (2 measured)"));
}

TEST(SweepPage, OfManyCombinationsDrawsSomeAndSaysSo) {
  SweepTable table = SmallTable();
  const SweepTable::Row row = table.rows[0];
  for (int i = 0; i < 5000; ++i) {
    table.rows.push_back(row);
    table.rows.back().values[1] = std::to_string(100 + i);
  }
  const auto page = SweepPage("sweep.csv", table);
  ASSERT_TRUE(page.ok()) << page.status();
  const nlohmann::json data = DataOf(*page);
  EXPECT_EQ(data["combinations"], 5006);
  EXPECT_EQ(data["drawn"].size(), 2503u);
}

TEST(SweepPage, OfATableWithoutResultsIsRefused) {
  SweepTable table = SmallTable();
  table.rows.erase(table.rows.begin(), table.rows.end() - 1);
  const auto page = SweepPage("out/sweep.csv", table);
  EXPECT_EQ(Message(page.status()), "out/sweep.csv: no row has a result; its column `error` says why");
}

}  // namespace
}  // namespace wavetank::capacity
