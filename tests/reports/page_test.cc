// The page of a real run: self-contained, without secrets, and drawn without an error by headless Chromium.
#include <filesystem>
#include <fstream>
#include <regex>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/report.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "tests/chromium.h"
#include "tests/left_out.h"
#include "tests/reports/small_result.h"

namespace wavetank::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// What is left of the page without the text of its scripts, which name addresses only in comments and namespaces.
std::string Markup(const std::string& page) {
  std::string out;
  size_t from = 0;
  while (true) {
    const size_t start = page.find("<script", from);
    if (start == std::string::npos) return out + page.substr(from);
    const size_t body = page.find('>', start) + 1;
    out += page.substr(from, body - from);
    from = page.find("</script>", body);
    if (from == std::string::npos) return out;
  }
}

TEST(PageTest, LoadsNothing) {
  const std::string page = ReportHtml(SmallResult()), markup = Markup(page);
  EXPECT_FALSE(std::regex_search(markup, std::regex("\\b(src|href)\\s*=|url\\(|@import|https?:"))) << markup;
  for (const char* call : {"fetch(", "XMLHttpRequest", "importScripts", "WebSocket("}) {
    EXPECT_THAT(page, Not(HasSubstr(call)));
  }
}

TEST(PageTest, ARealRunLeavesNoKeyOrTokenInAnyReport) {
  const absl::StatusOr<scenario::Scenario> scenario =
      scenario::LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/multi-primary-one-network");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const absl::StatusOr<scenario::RunResult> result = scenario::Run(*scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  for (const std::string& text : {ResultsJson(*result).dump(), JUnitXml(*result), TopologyDot(*result),
                                  TerminalTables(*result, {.verbose = true})}) {
    EXPECT_GT(text.size(), 100u);
    // PEM, PEM in base64 (a Secret's data), and a kubeconfig's fields.
    for (const char* secret : {"-----BEGIN", "LS0tLS1CRUdJTi", "client-key-data", "certificate-authority-data"}) {
      EXPECT_THAT(text, Not(HasSubstr(secret)));
    }
  }
}

TEST(PageTest, ChromiumDrawsEveryChart) {
  NEEDS_TOOL(HasChromium(), "chromium", kChromiumRemedy);
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "wavetank-page";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const scenario::RunResult result = SmallResult();
  std::ofstream(folder / "report.html") << ReportHtml(result);
  const std::string dom = DrawnByChromium(folder / "report.html");
  ASSERT_FALSE(dom.empty()) << "chromium printed nothing";
  const std::string head = dom.substr(0, 300);
  EXPECT_THAT(head, HasSubstr("data-charts=\"4\""));  // timeline, latency, one phase, convergence
  EXPECT_THAT(head, HasSubstr("data-blank-charts=\"0\""));
  EXPECT_THAT(head, Not(HasSubstr("data-error")));
  EXPECT_THAT(dom, HasSubstr("class=\"verdict broken\""));
  for (const auto& node : result.nodes) EXPECT_THAT(dom, HasSubstr(fmt::format("data-node=\"{}\"", node.id)));
  EXPECT_THAT(dom, HasSubstr("data-edge"));
  EXPECT_THAT(dom, Not(HasSubstr("<title>broken out")));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace wavetank::report
