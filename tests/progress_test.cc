// What ./run shows while it builds (tools/progress).
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

namespace wavetank {
namespace {

std::string OutputOf(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string out;
  std::array<char, 256> piece{};
  while (pipe != nullptr && fgets(piece.data(), piece.size(), pipe.get()) != nullptr) out += piece.data();
  return out;
}

TEST(Progress, TellsUnitsOfAllAndKeepsEveryLineForTheLog) {
  const std::string log = testing::TempDir() + "wavetank_progress.log";
  const std::string lines = "Configuring build\\n[1/3, 0.1 s] a\\n[2/3, 1.5 s] b\\na warning\\n[3/3, 2.0 s] c\\n";
  const std::string shown = OutputOf(
      "printf '" + lines + "' | WAVETANK_PROGRESS_SECONDS=600 " WAVETANK_SOURCE_DIR "/tools/progress " + log + " 2>&1");
  EXPECT_EQ(shown, "built 3 of 3 units, 0:00 min\n");
  std::ostringstream kept;
  kept << std::ifstream(log).rdbuf();
  EXPECT_EQ(kept.str(), "Configuring build\n[1/3, 0.1 s] a\n[2/3, 1.5 s] b\na warning\n[3/3, 2.0 s] c\n");
  std::filesystem::remove(log);
}

TEST(Progress, SaysNothingWhenThereIsNothingToBuild) {
  const std::string log = testing::TempDir() + "wavetank_progress_idle.log";
  EXPECT_EQ(OutputOf("echo 'ninja: no work to do.' | " WAVETANK_SOURCE_DIR "/tools/progress " + log + " 2>&1"), "");
  std::filesystem::remove(log);
}

}  // namespace
}  // namespace wavetank
