// The package as a person gets it who has nothing else: installed into a folder, and the examples built against that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fmt/format.h"
#include "tests/left_out.h"
#include "tests/library/shell.h"

namespace wavetank {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Installed : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new fs::path(fs::path(testing::TempDir()) / "wavetank-installed");
    fs::remove_all(*folder_);
    fs::create_directories(*folder_);
    installed_ = new Said(Shell(fmt::format("cmake --install {} --prefix {}", WAVETANK_BINARY_DIR, Prefix())));
  }
  static void TearDownTestSuite() {
    fs::remove_all(*folder_);
    delete folder_;
    delete installed_;
  }
  void SetUp() override { ASSERT_EQ(installed_->code, 0) << installed_->output; }

  static std::string Prefix() { return (*folder_ / "prefix").string(); }
  static fs::path Find(const std::string& name) {
    for (const auto& entry : fs::recursive_directory_iterator(Prefix()))
      if (entry.path().filename() == name) return entry.path();
    return {};
  }
  static std::string Text(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static fs::path* folder_;
  static Said* installed_;
};
fs::path* Installed::folder_ = nullptr;
Said* Installed::installed_ = nullptr;

TEST_F(Installed, HasWhatAPackageNeeds) {
  for (const char* name : {"wavetank", "world.h", "actions.h", "rapidcheck.h", "WavetankConfig.cmake", "wavetank.pc",
                           "scenario.schema.json", "wavetank.1", "_wavetank", "wavetank.fish", "library.md",
                           "python.md", "my_mesh.h", "copyright"}) {
    EXPECT_FALSE(Find(name).empty()) << name;
  }
  const std::string man = Text(Find("wavetank.1"));
  EXPECT_THAT(man, HasSubstr(".SS wavetank replay"));
  EXPECT_THAT(man, HasSubstr("access\\-log"));
  EXPECT_THAT(man, testing::Not(HasSubstr(":value in")))
      << "a list without a blank, which no terminal is wide enough for";
  const fs::path bash = fs::path(Prefix()) / "share/bash-completion/completions/wavetank";
  const Said completed = Shell(fmt::format(
      "bash -c '. {}; COMP_WORDS=(wavetank rep); COMP_CWORD=1; _wavetank; echo ${{COMPREPLY[@]}}'", bash.string()));
  EXPECT_EQ(completed.output, "replay\n");
  const Said story =
      Shell(fmt::format("{0}/bin/wavetank run {0}/share/wavetank/scenarios/multi-primary-multi-network", Prefix()));
  EXPECT_EQ(story.code, 0) << story.output;
}

TEST_F(Installed, PublicHeadersIncludeTheStandardLibraryAlone) {
  for (const auto& entry : fs::directory_iterator(fs::path(Prefix()) / "include/wavetank")) {
    const std::string name = entry.path().filename();
    std::istringstream lines(Text(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("#include", 0) != 0) continue;
      const bool own = line.rfind("#include \"wavetank/", 0) == 0;
      const bool standard = line.find('<') != std::string::npos && line.find(".h>") == std::string::npos;
      const bool framework =
          (name == "gtest.h" &&
           (line.find("<gmock/") != std::string::npos || line.find("<gtest/") != std::string::npos)) ||
          (name == "rapidcheck.h" && (line.rfind("#include <rapidcheck", 0) == 0 || line == "#include <unistd.h>"));
      EXPECT_TRUE(own || standard || framework) << name << ": " << line;
    }
  }
}

// Of each header of the interface Doxygen makes a page, without a complaint, and the page or that of one of its types
// shows how it is used.
TEST(PublicHeaders, AreADocumentWithAnExampleEach) {
  NEEDS_TOOL(Shell("doxygen --version").code == 0, "doxygen", "apt install doxygen");
  const fs::path out = fs::path(testing::TempDir()) / "wavetank-api", source = WAVETANK_SOURCE_DIR;
  fs::remove_all(out);
  fs::create_directories(out);
  const Said made = Shell(fmt::format("cd {} && {{ cat library/Doxyfile; echo OUTPUT_DIRECTORY={}; }} | doxygen -",
                                      source.string(), out.string()));
  EXPECT_EQ(made.code, 0) << made.output;
  EXPECT_TRUE(fs::exists(out / "html/index.html"));
  for (const auto& entry : fs::directory_iterator(source / "library/include/wavetank")) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream in(entry.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    EXPECT_THAT(text, HasSubstr("/// \\code\n")) << entry.path();  // on a line of its own, or what follows is reflowed
    EXPECT_THAT(text, HasSubstr("/// \\endcode\n")) << entry.path();
  }
  fs::remove_all(out);
}

TEST_F(Installed, OnlyPublicSymbolsAreVisible) {
  const Said symbols =
      Shell(fmt::format("nm -D --defined-only -C {} | cut -d' ' -f3-", Find("libwavetank.so").string()));
  ASSERT_EQ(symbols.code, 0);
  std::istringstream lines(symbols.output);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(line.rfind("wavetank::", 0) == 0 || line.find(" for wavetank::") != std::string::npos) << line;
    EXPECT_NE(line.rfind("wavetank::client::", 0), 0u) << line;
  }
  EXPECT_GT(count, 30);
}

TEST_F(Installed, PkgConfigIsEnoughToCompileAndRun) {
  std::ofstream(*folder_ / "small.cc") << R"(#include <wavetank/actions.h>
#include <wavetank/world.h>
#include <cstdio>
int main() {
  wavetank::Mesh mesh;
  mesh.clusters = {{.name = "c1"}};
  mesh.apps = {{.name = "web", .deployments = {{.cluster = "c1"}}}};
  auto world = wavetank::World::Open(mesh);
  if (!world.ok()) return std::puts(world.error().c_str()), 1;
  auto requests = world->Send({.cluster = "c1", .host = "web.sample:80"}, 10);
  if (!requests.ok()) return std::puts(requests.error().c_str()), 1;
  std::printf("%d sent, %d failed\n", static_cast<int>(requests->sent), static_cast<int>(requests->failed));
})";
  const Said ran = Shell(fmt::format(
      "cd {0} && PKG_CONFIG_PATH=$(dirname {1}) && export PKG_CONFIG_PATH && g++ -fno-exceptions small.cc -o small "
      "$(pkg-config --define-variable=prefix={2} --cflags --libs wavetank) -Wl,-rpath,{3} && ./small",
      folder_->string(), Find("wavetank.pc").string(), Prefix(), Find("libwavetank.so").parent_path().string()));
  EXPECT_EQ(ran.output, "10 sent, 0 failed\n");
}

TEST_F(Installed, ExamplesRunAndAPlantedFaultIsShrunkAndReplayed) {
  const std::string build = (*folder_ / "examples").string();
  const Said built = Shell(fmt::format(
      "cmake -G Ninja -S {}/examples/cpp -B {} -DCMAKE_PREFIX_PATH={} -DCMAKE_BUILD_TYPE=Debug && cmake --build {}",
      WAVETANK_SOURCE_DIR, build, Prefix(), build));
  ASSERT_EQ(built.code, 0) << built.output;
  const Said tests =
      Shell(fmt::format("RC_PARAMS='max_success=15 seed=1' ctest --test-dir {} --output-on-failure", build));
  EXPECT_EQ(tests.code, 0) << tests.output;
  const Said planted =
      Shell(fmt::format("PLANT_FAULT=1 RC_PARAMS=max_success=100 WAVETANK_FAILURES={} {}/my_mesh_property",
                        folder_->string(), build));  // one mesh in eight has the gateway and a client beyond it
  EXPECT_EQ(planted.code, 1) << planted.output;
  EXPECT_THAT(planted.output, HasSubstr("Falsifiable"));
  // Shrunk: two clusters on two networks is the least that has gateways, and nothing else has to happen.
  EXPECT_THAT(planted.output, HasSubstr("2 clusters on 2 networks, 1 app, 1 pod"));
  const std::string said = "again: wavetank replay ";
  const size_t at = planted.output.find(said);
  ASSERT_NE(at, std::string::npos) << planted.output;
  const std::string log = planted.output.substr(at + said.size(), planted.output.find('\n', at) - at - said.size());
  const Said replayed = Shell(fmt::format("{}/bin/wavetank replay {}", Prefix(), log));
  EXPECT_EQ(replayed.code, 0) << replayed.output;
  EXPECT_THAT(replayed.output, HasSubstr("identical"));
  const Said sequence = Shell(fmt::format("PLANT_FAULT=1 RC_PARAMS=max_size=6 WAVETANK_FAILURES={} {}/my_mesh_sequence",
                                          folder_->string(), build));
  EXPECT_EQ(sequence.code, 1) << sequence.output;
  // Shrunk to one event, whichever: nothing has to happen but that somebody looks.
  EXPECT_THAT(sequence.output, HasSubstr("0 gateways are endpoints"));
  EXPECT_THAT(sequence.output, HasSubstr(said));
  EXPECT_THAT(sequence.output, testing::Not(testing::ContainsRegex("then [0-9]+ ms.*\n.*then [0-9]+ ms")));
}

}  // namespace
}  // namespace wavetank
