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
  EXPECT_THAT(like.error, HasSubstr("note: traffic between services is left out"));
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

}  // namespace
}  // namespace wavetank
