// The commands of docs/seeds.md, each as a reader types it.
#include <algorithm>
#include <fstream>
#include <set>

#include "absl/strings/str_replace.h"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

class Seeds : public ProgramTest {};

// Those between backquotes that begin with the program's name and go on: `wavetank apply` alone is no command.
std::set<std::string> CommandsOfThePage() {
  std::set<std::string> out;
  std::ifstream page(std::string(WAVETANK_SOURCE_DIR) + "/" + "docs/seeds.md");
  constexpr std::string_view kStart = "`wavetank ";
  for (std::string line; std::getline(page, line);) {
    for (size_t at = line.find(kStart); at != std::string::npos; at = line.find(kStart, at + 1)) {
      const size_t begin = at + kStart.size(), end = line.find('`', begin);
      const std::string command = line.substr(begin, end - begin);
      if (command.starts_with("serve") || command == "apply" || command == "diff") continue;
      out.insert(command);
    }
  }
  return out;
}

TEST_F(Seeds, EveryCommandOfThePageAnswers) {
  const std::set<std::string> commands = CommandsOfThePage();
  EXPECT_GE(commands.size(), 15U);
  const std::string scenarios = std::string(WAVETANK_SOURCE_DIR) + "/scenarios/";
  for (const std::string& command : commands) {
    const Ran ran = Call(absl::StrReplaceAll(command, {{"scenarios/", scenarios}}));
    EXPECT_EQ(ran.code, 0) << command << "\n" << ran.error;
    // A table's head alone shows nothing.
    const bool says =
        command.starts_with("manifest diff") || std::count(ran.output.begin(), ran.output.end(), '\n') > 1;
    EXPECT_TRUE(says) << command << "\n" << ran.output;
  }
}

TEST_F(Seeds, ThePageCountsItsItems) {
  std::ifstream page(std::string(WAVETANK_SOURCE_DIR) + "/" + "docs/seeds.md");
  int works = 0, part = 0, open = 0;
  std::string head;
  for (std::string line; std::getline(page, line);) {
    if (line.find(" items work, ") != std::string::npos) head = line;
    works += line.find(" | works | ") != std::string::npos ? 1 : 0;
    part += line.find(" | in part | ") != std::string::npos ? 1 : 0;
    open += line.find(" | open | ") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(works + part + open, 211);
  EXPECT_NE(head.find(fmt::format("{} of 211 items work, {} in part, {} are open", works, part, open)),
            std::string::npos)
      << head;
}

}  // namespace
}  // namespace wavetank
