// plan and synth as a platform engineer calls them: pages, logs, exit codes 0, 1 and 2.
#include "nlohmann/json.hpp"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kSmall = std::string(WAVETANK_SOURCE_DIR) + "/capacity/fleets/small.yaml";

class Capacity : public ProgramTest {
 protected:
  // The log of a run of the small fleet.
  std::string Log() {
    const std::string log = (folder_ / "small.wtlog").string();
    EXPECT_EQ(Call("synth " + kSmall + " -o " + log).code, 0);
    return log;
  }
};

TEST_F(Capacity, APlanOfALogIsThatOfItsFleetsPage) {
  const std::string log = Log(), page = (folder_ / "like.yaml").string();
  const Ran like = Call("synth --like " + log + " -o " + page);
  ASSERT_EQ(like.code, 0) << like.error;
  EXPECT_THAT(like.error, Not(HasSubstr("traffic"))) << "nobody sends any in a fleet";
  const Ran of_log = Call("plan " + log + " --json"), of_page = Call("plan " + page + " --json");
  ASSERT_EQ(of_log.code, 0) << of_log.error;
  json a = json::parse(of_log.output), b = json::parse(of_page.output);
  EXPECT_EQ(a["fleet"], "Like Small");
  EXPECT_EQ(a["memoryMB"], b["memoryMB"]);
  EXPECT_EQ(a["changes"], b["changes"]);
}

TEST_F(Capacity, ScaleMakesAFleetThatNeedsMore) {
  const Ran once = Call("plan " + kSmall + " --json"), tenfold = Call("plan " + kSmall + " --json --scale 10x");
  ASSERT_EQ(once.code, 0) << once.error;
  ASSERT_EQ(tenfold.code, 0) << tenfold.error;
  EXPECT_GT(json::parse(tenfold.output)["memoryMB"], 2 * json::parse(once.output)["memoryMB"].get<double>());
}

TEST_F(Capacity, AFleetThatScaleMakesImpossibleIsRefused) {
  const Ran ran = Call("plan " + kSmall + " --scale 3000x");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("--scale 3000x"), HasSubstr("addresses for 65534")));
}

TEST_F(Capacity, SynthSaysWhatItNeeds) {
  for (const std::string& wrong :
       {"synth -o " + (folder_ / "x").string(), "synth " + kSmall, "synth " + kSmall + " --like a.wtlog -o x"}) {
    const Ran ran = Call(wrong);
    EXPECT_EQ(ran.code, 2) << wrong;
    EXPECT_THAT(ran.error, HasSubstr("name a fleet or --like LOG")) << wrong;
  }
  const Ran page = Call("synth --like " + kSmall + " -o " + (folder_ / "x").string());
  EXPECT_EQ(page.code, 2);
  EXPECT_THAT(page.error, HasSubstr("no event log"));
}

TEST_F(Capacity, ALogThatIsCutShortIsRefusedByName) {
  const std::string log = Log();
  std::filesystem::resize_file(log, 9000);
  const Ran ran = Call("plan " + log);
  EXPECT_NE(ran.code, 0);
  EXPECT_THAT(ran.error, HasSubstr("small.wtlog"));
  EXPECT_THAT(ran.output, Not(HasSubstr("istiods per cluster")));
}

TEST_F(Capacity, AReportOfAPlanStandsBesideWhatIsPrinted) {
  const std::string page = (folder_ / "plan.html").string();
  const Ran with = Call("plan " + kSmall + " --json --report " + page), without = Call("plan " + kSmall + " --json");
  ASSERT_EQ(with.code, 0) << with.error;
  EXPECT_EQ(with.output, without.output);
  const std::string text = Read(page);
  EXPECT_THAT(text, AllOf(HasSubstr("<title>Small: plan</title>"), HasSubstr("Chart.js")));
  const std::string mark = "id=\"results\">";
  const size_t from = text.find(mark) + mark.size();
  EXPECT_EQ(json::parse(text.substr(from, text.find("</script>", from) - from))["plan"], json::parse(without.output));
}

TEST_F(Capacity, AReportThatCannotBeWrittenIsOneClearError) {
  const std::string nowhere = (folder_ / "no" / "folder" / "plan.html").string();
  ExpectRefused(Call("plan " + kSmall + " --report " + nowhere), {nowhere, "cannot be written"});
  const std::string sweep = Write("s.yaml", "fleet: " + kSmall + "\nover: {churn: [1]}\n"), file = Write("file", "");
  const std::string out = (folder_ / "out").string();
  ExpectRefused(Call("sweep " + sweep + " -o " + out + " --report " + file + "/x"), {file, "name a folder"});
  EXPECT_FALSE(std::filesystem::exists(out));  // before any task has run
  ExpectRefused(Call("sweep -o " + out + " --report " + out), {"sweep.csv is not there", "run the sweep first"});
  ExpectRefused(Call("sweep -o " + out), {"no sweep is named"});
  ExpectRefused(Call("sweep " + sweep + " -o " + out + " --share 0/2 --report " + out), {"--share 0/0"});
}

TEST_F(Capacity, AReportOfAFinishedSweepRunsNothingAgain) {
  const std::string sweep = Write("s.yaml", "fleet: " + kSmall + "\nover: {istiod.replicas: [1, 2], churn: [1, 4]}\n");
  const std::string out = (folder_ / "out").string(), one = (folder_ / "one").string(),
                    two = (folder_ / "two").string();
  const Ran ran = Call("sweep " + sweep + " -o " + out + " --report " + one);
  ASSERT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, HasSubstr("4 run now"));
  const Ran again = Call("sweep " + sweep + " -o " + out + " --report " + two);
  EXPECT_THAT(again.output, HasSubstr("0 run now, 4 were there"));
  EXPECT_EQ(Read(one + "/report.html"), Read(two + "/report.html"));
  std::filesystem::remove_all(two);
  std::filesystem::remove_all(out + "/rows");  // the table is enough
  const Ran of_table = Call("sweep -o " + out + " --report " + two);
  EXPECT_EQ(of_table.code, 0) << of_table.error;
  EXPECT_EQ(Read(one + "/report.html"), Read(two + "/report.html"));
}

TEST_F(Capacity, ASlurmScriptDrawsTheReportWhenAllIsDone) {
  const std::string sweep = Write("s.yaml", "fleet: " + kSmall + "\nover: {churn: [1]}\n");
  const std::string script = (folder_ / "submit").string();
  ASSERT_EQ(Call("sweep " + sweep + " -o out --report 'two pages' --jobs 3 --slurm " + script).code, 0);
  EXPECT_THAT(Read(script), HasSubstr("--jobs 1 --share $SLURM_ARRAY_TASK_ID/3')\n"));
  // A word of the job's shell within one of the script's.
  EXPECT_THAT(Read(script), HasSubstr("--share 0/0 --report '\\''two pages'\\'''\n"));
}

}  // namespace
}  // namespace wavetank
