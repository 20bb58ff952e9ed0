// What the files and tables of a report say, and that a folder never holds half of one.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "reports/report.h"
#include "tests/reports/small_result.h"

namespace wavetank::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// Enough of XML to know that tags nest and that text holds nothing raw. Returns what is wrong, "" for nothing.
std::string XmlFault(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t i = 0; i < xml.size(); ++i) {
    if (static_cast<unsigned char>(xml[i]) < 0x20 && xml[i] != '\n' && xml[i] != '\t') return "control character";
    if (xml[i] == '&' && !std::regex_search(xml.substr(i, 8), std::regex("^&(amp|lt|gt|quot);"))) return "raw &";
    if (xml[i] != '<') continue;
    const size_t end = xml.find('>', i);
    if (end == std::string::npos) return "a tag has no end";
    const std::string tag = xml.substr(i + 1, end - i - 1);
    if (tag.find('<') != std::string::npos) return "raw < in " + tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /?", 1));
    if (tag[0] == '?' || tag.back() == '/') {
      i = end;
      continue;
    }
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "unexpected " + tag;
      open.pop_back();
    } else {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

TEST(JUnitTest, TextFromOutsideCannotBreakTheXml) {
  const std::string xml = JUnitXml(SmallResult());
  EXPECT_EQ(XmlFault(xml), "") << xml;
  EXPECT_THAT(xml, HasSubstr("tests=\"2\" failures=\"1\""));
  EXPECT_THAT(xml, HasSubstr("waves/scenario.yaml:13"));
  EXPECT_THAT(xml, HasSubstr("seed 7, digest 00112233445566778899aabbccddeeff"));
}

TEST(JUnitTest, TheCheckerItselfSeesBrokenXml) {
  EXPECT_NE(XmlFault("<a><b></a>"), "");
  EXPECT_NE(XmlFault("<a>&</a>"), "");
  EXPECT_NE(XmlFault("<a>"), "");
  EXPECT_NE(XmlFault("<a b=\"<\"/>"), "");
}

TEST(ResultsJsonTest, HoldsTheWholeResult) {
  const nlohmann::ordered_json json = ResultsJson(SmallResult());
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(json["virtualSeconds"], 20.0);
  const auto& step = json["steps"][0];
  EXPECT_EQ(step["startMs"], 10000.0);
  const auto& proxy = step["convergence"]["proxies"][0];
  EXPECT_EQ(proxy["stagesMs"].size(), size_t{scenario::kStages});
  double sum = 0;
  for (const auto& stage : proxy["stagesMs"]) sum += stage.get<double>();
  EXPECT_EQ(sum, proxy["totalMs"].get<double>());
  EXPECT_EQ(step["traffic"][0]["byVersion"]["v2"], 6);
  EXPECT_EQ(step["traffic"][0]["byFlags"]["URX,UF"], 1);
  EXPECT_EQ(step["traffic"][0]["byCode"]["503"], 1);
  EXPECT_EQ(step["traffic"][0]["series"].size(), 2u);
  EXPECT_EQ(step["expectations"][1]["held"], false);
  EXPECT_EQ(json["topology"]["edges"][0]["label"], "6");
}

TEST(TopologyDotTest, HasEveryNodeAndEdgeAndQuotesLabels) {
  const std::string dot = TopologyDot(SmallResult());
  EXPECT_THAT(dot, testing::StartsWith("digraph"));
  EXPECT_THAT(dot, HasSubstr("0->2"));
  EXPECT_THAT(dot, HasSubstr("shape=hexagon"));
  EXPECT_THAT(dot, HasSubstr("helloworld \\\"v2\\\""));
  EXPECT_EQ(std::count(dot.begin(), dot.end(), '{'), std::count(dot.begin(), dot.end(), '}'));
}

TEST(TerminalTest, ColourOnlyWhenAskedFor) {
  const scenario::RunResult result = SmallResult();
  const std::string plain = TerminalTables(result, {}), coloured = TerminalTables(result, {.colour = true});
  EXPECT_THAT(plain, Not(HasSubstr("\033[")));
  EXPECT_THAT(coloured, HasSubstr("\033["));
  EXPECT_EQ(std::regex_replace(coloured, std::regex("\033\\[[0-9;]*m"), ""), plain);
  EXPECT_THAT(plain, HasSubstr("FAILED  1 of 2 expectations held"));
  EXPECT_THAT(plain, HasSubstr("(waves/scenario.yaml:13)"));
  EXPECT_THAT(
      plain,
      HasSubstr("failed    1 x 503 URX,UF, cluster2's gateway gw 172.30.2.1:15443: TLS alert <unknown_ca>, at 10.0 s"));
  EXPECT_THAT(plain, HasSubstr("DEAD PATH  from-cluster1 to cluster2's gateway gw"));
  EXPECT_THAT(plain, HasSubstr("1 failed, 1 retried (12 tries in all)"));
}

TEST(TerminalTest, VerboseHasARowPerProxy) {
  const std::string proxy = "sleep-jsdn7bjgc5-x2nxx.sample@cluster1: ";
  EXPECT_THAT(TerminalTables(SmallResult(), {}), Not(HasSubstr(proxy)));
  EXPECT_THAT(TerminalTables(SmallResult(), {.verbose = true}), HasSubstr(proxy));
}

TEST(ReportHtmlTest, TextFromOutsideStaysData) {
  const std::string page = ReportHtml(SmallResult());
  EXPECT_THAT(page, HasSubstr("<title>two &lt;waves> &amp; a"));
  EXPECT_THAT(page, Not(HasSubstr("</script><script>document.title")));
}

class Folder : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(path_); }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::filesystem::path path_ = std::filesystem::path(testing::TempDir()) / "wavetank-reports";
};

TEST_F(Folder, HoldsFourWholeFilesAndNothingElse) {
  ASSERT_TRUE(WriteReports((path_ / "new" / "folder").string(), SmallResult()).ok());
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_ / "new" / "folder")) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_THAT(names, testing::ElementsAre("junit.xml", "report.html", "results.json", "topology.dot"));
  std::ifstream in(path_ / "new" / "folder" / "results.json");
  EXPECT_EQ(nlohmann::ordered_json::parse(in), ResultsJson(SmallResult()));
}

TEST_F(Folder, AFileThatCannotBeReplacedLeavesNoPartBehind) {
  std::filesystem::create_directories(path_ / "results.json" / "in the way");
  const absl::Status status = WriteReports(path_.string(), SmallResult());
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("results.json"));
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    EXPECT_NE(entry.path().extension(), ".part") << entry.path();
  }
}

TEST_F(Folder, AFileInTheFoldersPlaceIsNamed) {
  std::ofstream(path_) << "a file";
  const absl::Status status = WriteReports((path_ / "sub").string(), SmallResult());
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("wavetank-reports"));
}

}  // namespace
}  // namespace wavetank::report
