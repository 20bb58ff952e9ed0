// `wavetank incidents` where it was installed: far from the repository.
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using testing::HasSubstr;

class IncidentsTest : public ProgramTest {
 protected:
  // As `cmake --install` lays it out; `program`: where the archive that brings its libraries has the program itself.
  void Install(bool with_stories, const std::string& program = "bin/wavetank") {
    namespace fs = std::filesystem;
    program_ = folder_ / program;
    fs::create_directories(program_.parent_path());
    fs::create_directories(folder_ / "share/wavetank");
    fs::create_directories(folder_ / "elsewhere");
    std::error_code error;
    fs::create_hard_link(WAVETANK_BINARY_DIR "/wavetank", program_, error);
    if (error) fs::copy_file(WAVETANK_BINARY_DIR "/wavetank", program_);
    if (!with_stories) return;
    fs::create_directories(folder_ / "share/wavetank/scenarios");
    for (const char* each : {"incidents", "manifests", "gateway-node-port-local"}) {
      fs::copy(fs::path(WAVETANK_SOURCE_DIR "/scenarios") / each, folder_ / "share/wavetank/scenarios" / each,
               fs::copy_options::recursive);
    }
  }
  Ran CallInstalled(const std::string& arguments) {
    const std::string out = (folder_ / "out").string(), errors = (folder_ / "errors").string();
    const int status = std::system(
        fmt::format("cd {}/elsewhere && {} {} >{} 2>{}", folder_.string(), program_.string(), arguments, out, errors)
            .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000, Read(out), Read(errors)};
  }

 private:
  std::filesystem::path program_;
};

TEST_F(IncidentsTest, RunFromAnInstalledPackage) {
  Install(true);
  const Ran ran = CallInstalled("incidents A01");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, HasSubstr("A01-gateway-per-zone"));
  EXPECT_THAT(ran.output, HasSubstr("every incident has the verdicts that its story names"));
}

TEST_F(IncidentsTest, RunFromTheArchiveThatBringsItsLibraries) {
  Install(true, "lib/wavetank/wavetank");
  const Ran ran = CallInstalled("incidents A01");
  EXPECT_EQ(ran.code, 0) << ran.error;
}

TEST_F(IncidentsTest, SayWhereTheyWereLookedFor) {
  Install(false);
  const Ran ran = CallInstalled("incidents A01");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error, HasSubstr("--library"));
}

}  // namespace
}  // namespace wavetank
