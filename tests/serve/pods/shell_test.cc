// The shell of simulated pods, with commands of the test's own.
#include "serve/pods/shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace wavetank::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ShellTest : public ::testing::Test {
 protected:
  // Everything printed, `!` before what went to standard error, then the exit code, `.` if it has ended.
  std::string Run(const std::string& line) {
    std::string out;
    shell_->Run(
        line,
        [&](const CommandResult& result) {
          out += result.out;
          if (!result.err.empty()) out += "!" + result.err;
        },
        [&](int code, bool exited) { out += std::to_string(code) + (exited ? "." : ""); });
    return out;
  }

  std::shared_ptr<Shell> shell_ = std::make_shared<Shell>([](const std::vector<std::string>& argv, Shell::Done done) {
    CommandResult result;
    if (argv[0] == "false") {
      result.exit_code = 1;
    } else if (argv[0] == "echo") {
      for (size_t i = 1; i < argv.size(); ++i) result.out += argv[i] + (i + 1 < argv.size() ? " " : "\n");
    } else if (argv[0] != "true") {
      result.failure = "no such command";
    }
    done(result);
  });
};

TEST_F(ShellTest, CommandsFollowEachOtherAsTheirConnectionSays) {
  EXPECT_EQ(Run("echo a; echo 'b  c' \"d\"\n echo e;"), "a\nb  c d\ne\n0");
  EXPECT_EQ(Run("true && echo a || echo b"), "a\n0");
  EXPECT_EQ(Run("false && echo a || echo b"), "b\n0");
  EXPECT_EQ(Run("false || exit 3; echo a"), "3.");
}

TEST_F(ShellTest, TheLastExitCodeIsThatOfTheShell) {
  EXPECT_EQ(Run("false"), "1");
  EXPECT_EQ(Run("exit"), "1.") << "that of the line before";
  EXPECT_EQ(Run(""), "1");
  EXPECT_EQ(Run("exit 256"), "0.");
}

TEST_F(ShellTest, OutputGoesWhereItIsSent) {
  EXPECT_EQ(Run("echo a >&2"), "!a\n0");
  EXPECT_EQ(Run("vi"), "!sh: vi: not found\n127");
  EXPECT_EQ(Run("vi 2>&1"), "sh: vi: not found\n127");
}

TEST_F(ShellTest, WhatItDoesNotKnowItNames) {
  for (const char* line : {"echo a | cat", "echo $(date)", "echo > f", "for i in 1; do date; done", "echo \"$X\"",
                           "echo 'a", "&& a", "true && ; false", "sleep 1 &"}) {
    EXPECT_THAT(Run(line), HasSubstr("the shell of simulated pods runs plain commands\n2")) << line;
  }
}

TEST_F(ShellTest, ALineOfVeryManyCommandsRunsToItsEnd) {
  std::string line;
  for (int i = 0; i < 200'000; ++i) line += "true;";
  EXPECT_EQ(Run(line + "echo end"), "end\n0");
}

TEST(TypedLines, MoreThanMayBeTypedAheadIsSeen) {
  TypedLines typed(false);
  typed.Feed(std::string(kMaxTypedAhead - 2, 'a') + "\n");
  EXPECT_FALSE(typed.too_much());
  EXPECT_EQ(typed.Take().size(), kMaxTypedAhead - 2);
  typed.Feed(std::string(kMaxTypedAhead - 2, 'a') + "\nbb");
  EXPECT_TRUE(typed.too_much());
  TypedLines empty(false);
  empty.Feed(std::string(kMaxTypedAhead + 1, '\n'));
  EXPECT_TRUE(empty.too_much()) << "lines without anything take room, too";
}

TEST(TypedLines, ArriveWhenTheyEndWhicheverPiecesTheyCameIn) {
  TypedLines typed(false);
  EXPECT_EQ(typed.Feed("ec"), "") << "who has no terminal is shown nothing";
  EXPECT_TRUE(typed.lines.empty());
  typed.Feed("ho a\nexi");
  EXPECT_THAT(typed.lines, ElementsAre("echo a"));
  typed.End();
  EXPECT_THAT(typed.lines, ElementsAre("echo a", "exi"));
  EXPECT_TRUE(typed.ended);
}

TEST(TypedLines, ATerminalShowsWhatIsTypedAndForgetsWhatIsTakenBack) {
  TypedLines typed(true);
  EXPECT_EQ(typed.Feed("ab\x7f"), "ab\b \b");
  EXPECT_EQ(typed.Feed("c\r"), "c\r\n");
  EXPECT_THAT(typed.lines, ElementsAre("ac"));
  EXPECT_EQ(typed.Feed("x\x03"), "x^C\r\n");
  typed.Feed("\x04");
  EXPECT_TRUE(typed.ended);
}

}  // namespace
}  // namespace wavetank::serve
