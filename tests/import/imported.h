// For tests of imports: sources written into a folder of the test's own, what came of them, and what a mesh made of
// that says when it runs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/importer.h"
#include "import/judge/judge.h"
#include "import/report/report.h"
#include "import/skeleton/skeleton.h"
#include "replay/world_target.h"
#include "tests/replay/temp_folder.h"

namespace wavetank::importing {

inline std::vector<replay::LogInput> WholeInputs(const Skeleton& mesh) {
  std::vector<replay::LogInput> out;
  for (const MeshInput& input : mesh.inputs) out.push_back(input.Whole());
  return out;
}

class ImportTest : public testing::Test {
 protected:
  std::string Put(const std::string& name, std::string_view text) {
    const std::string path = folder_ / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  static Imported Read(const std::vector<std::string>& sources, const std::vector<std::string>& formats = {}) {
    ImportOptions options;
    options.sources = sources;
    options.access_formats = formats;
    auto imported = Import(options);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return *std::move(imported);
  }
  // Runs the mesh; `digest`, if not null, gets its trace's.
  Judgement Run(const Skeleton& mesh, std::string* digest = nullptr) {
    const std::string path = folder_ / "log.wtlog";
    const absl::Status written = WriteLog(mesh, path, "test");
    EXPECT_TRUE(written.ok()) << written;
    auto log = replay::LogReader::Open(path);
    EXPECT_TRUE(log.ok()) << log.status();
    replay::WorldTarget world;
    Judge judge;
    JudgedTarget target(world, judge);
    const auto result = replay::Replay(**log, target);
    EXPECT_TRUE(result.ok()) << result.status();
    if (digest != nullptr) *digest = result.ok() ? result->trace_digest : "";
    return judge.Finish();
  }
  static std::string Words(const Judgement& judgement) {
    std::string out;
    for (const JudgedClaim& claim : judgement.claims) {
      out += std::string(NameOf(claim.verdict)) + ": " + claim.claim.dump() + " " + claim.why + " " + claim.simulated +
             "\n";
    }
    return out;
  }

  TempFolder folder_;
};

}  // namespace wavetank::importing
