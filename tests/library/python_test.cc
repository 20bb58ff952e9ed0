// The Python package as `pip install .` makes it, and its own tests with it, in an environment of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fmt/format.h"
#include "tests/left_out.h"
#include "tests/library/shell.h"
#include "tests/long.h"

namespace wavetank {
namespace {

namespace fs = std::filesystem;

TEST(Python, ThePackageIsInstalledByPipAndItsTestsAndExamplesHold) {
  const fs::path tools = fs::path(WAVETANK_SOURCE_DIR) / "build/python-library";
  NEEDS_TOOL(fs::exists(tools / "stamp"), "pytest and Hypothesis", "tools/python-library fetches them");
  const fs::path folder = fs::path(testing::TempDir()) / "wavetank-python";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string python = (tools / "python/bin/python").string();
  const Said installed =
      Shell(fmt::format("WAVETANK_PROGRAM={}/wavetank {} -m pip install --quiet --disable-pip-version-check --no-index "
                        "--no-deps --target {} {}",
                        WAVETANK_BINARY_DIR, python, (folder / "package").string(), WAVETANK_SOURCE_DIR));
  ASSERT_EQ(installed.code, 0) << installed.output;
  const Said tests = Shell(fmt::format(
      "cd {} && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={} WAVETANK_FAILURES={} {} -m pytest -q -p "
      "no:cacheprovider {} --rootdir {} {}/library/python/tests {}/examples/python",
      folder.string(), (folder / "package").string(), folder.string(), python, LongTests() ? "" : "--hypothesis-seed=0",
      WAVETANK_SOURCE_DIR, WAVETANK_SOURCE_DIR, WAVETANK_SOURCE_DIR));
  EXPECT_EQ(tests.code, 0) << tests.output;
  EXPECT_THAT(tests.output, testing::HasSubstr(" passed"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace wavetank
