// push_check [GOLDEN] [--case GLOB] [--delta] [--quiet] [--record]: the comparison with recorded pushes as a program of
// its own. GOLDEN is the folder that holds push/, push-delta/, push-cases/ and cases/; without one, $WAVETANK_GOLDEN.
// --record writes what happens in GOLDEN/push-cases/GLOB (one name) instead.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/status.h"
#include "oracles/golden/push_runner.h"

int main(int argc, char** argv) {
  namespace golden = wavetank::golden;
  std::string folder, glob = "*";
  bool quiet = false, record = false;
  golden::PushOptions options;
  if (const char* env = std::getenv("WAVETANK_GOLDEN")) folder = env;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--case" && i + 1 < argc) {
      glob = argv[++i];
    } else if (arg == "--delta") {
      options.delta = true;
    } else if (arg == "--record") {
      record = true;
    } else if (arg == "--quiet") {
      quiet = true;
    } else if (!arg.starts_with("--")) {
      folder = arg;
    } else {
      std::fprintf(stderr, "push_check: unknown option %s\n", arg.c_str());
      return 2;
    }
  }
  if (record) {
    // A case of our own: its folder, beside which push/ and push-delta/ are written.
    const std::string out = folder + (options.delta ? "/push-delta/" : "/push/") + glob;
    std::filesystem::remove_all(out);
    const absl::Status status =
        golden::WritePushes(golden::RunPushCase(folder + "/push-cases/" + glob, out, options), out);
    if (!status.ok()) std::fprintf(stderr, "push_check: %s\n", std::string(wavetank::Message(status)).c_str());
    return status.ok() ? 0 : 2;
  }
  const auto results = golden::RunPushCases(folder, glob, options);
  if (!results.ok()) {
    std::fprintf(stderr, "push_check: %s\n", std::string(wavetank::Message(results.status())).c_str());
    return 2;
  }
  size_t cases_equal = 0, files = 0, files_equal = 0;
  std::string different;
  for (const golden::PushCaseResult& result : *results) {
    for (const golden::PushFileResult& file : result.files) {
      ++files;
      files_equal += file.equal ? 1 : 0;
    }
    if (result.AllEqual()) {
      ++cases_equal;
    } else {
      different += " " + result.name;
    }
    if (!quiet) std::fputs(golden::PushDifferencesText(result).c_str(), stdout);
  }
  std::printf("cases %zu of %zu equal, files %zu of %zu equal\n", cases_equal, results->size(), files_equal, files);
  if (!different.empty()) std::printf("different:%s\n", different.c_str());
  return different.empty() ? 0 : 1;
}
