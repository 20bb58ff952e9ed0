// golden_check DIR... [--case GLOB] [--kind K,K] [--profile P] [--inputs DIR] [--diff] [--quiet] [--jobs N] [--record]
// [--json FILE]: the golden comparison as a program of its own. DIR is a case or a folder of cases; without one,
// $WAVETANK_GOLDEN/cases. --record writes the recordings first, for cases of our own.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "oracles/golden/case.h"
#include "oracles/golden/runner.h"

namespace {

namespace golden = wavetank::golden;

int Usage(const std::string& why) {
  std::fprintf(stderr,
               "golden_check: %s\nusage: golden_check DIR... [--case GLOB] [--kind eds,cds,...] [--diff] "
               "[--quiet] [--json FILE]\n",
               why.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> directories;
  std::string glob = "*", json_file;
  golden::RunOptions options;
  bool quiet = false, record = false;
  int jobs = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (arg == "--case") {
      glob = value();
    } else if (arg == "--kind" || arg == "--type") {
      std::string list = value();
      for (size_t start = 0; start <= list.size();) {
        const size_t comma = std::min(list.find(',', start), list.size());
        options.kinds.insert(list.substr(start, comma - start));
        start = comma + 1;
      }
    } else if (arg == "--json") {
      json_file = value();
    } else if (arg == "--diff") {
      options.unified_diff = true;
    } else if (arg == "--jobs") {
      jobs = std::max(1, std::atoi(value().c_str()));
    } else if (arg == "--record") {
      record = true;
    } else if (arg == "--profile") {
      const auto profile = wavetank::pilot::ParseProfile(value());
      if (!profile.ok()) return Usage(std::string(profile.status().message()));
      options.profile = *profile;
    } else if (arg == "--inputs") {
      options.inputs = value();
    } else if (arg == "--quiet") {
      quiet = true;
    } else if (arg.starts_with("--")) {
      return Usage("unknown option " + arg);
    } else {
      directories.push_back(arg);
    }
  }
  if (directories.empty()) {
    const char* folder = std::getenv("WAVETANK_GOLDEN");
    if (folder == nullptr) return Usage("name a folder of cases, or set WAVETANK_GOLDEN");
    directories.push_back(std::string(folder) + "/cases");
  }
  std::vector<golden::CaseResult> results;
  for (const std::string& directory : directories) {
    absl::StatusOr<std::vector<std::string>> cases = golden::FindCases(directory);
    if (!cases.ok()) return Usage(std::string(wavetank::Message(cases.status())));
    std::erase_if(*cases, [&](const std::string& one) {
      return !golden::MatchesGlob(glob, one.substr(one.find_last_of('/') + 1));
    });
    for (const std::string& one : *cases) {
      if (!record) break;
      const absl::Status status = golden::RecordCase(one, options);
      if (!status.ok()) return Usage(std::string(wavetank::Message(status)));
    }
    for (golden::CaseResult& result : golden::RunCases(*cases, options, jobs, nullptr)) {
      if (!quiet) std::fputs(golden::DifferencesText(result).c_str(), stdout);
      results.push_back(std::move(result));
    }
  }
  std::fputs(golden::TallyTable(results).c_str(), stdout);
  bool equal = true;
  for (const golden::CaseResult& result : results) equal = equal && result.AllEqual();
  if (!equal) {
    std::string failing;
    for (const golden::CaseResult& result : results) {
      if (!result.AllEqual()) failing += " " + result.name;
    }
    std::printf("different:%s\n", failing.c_str());
  }
  if (!json_file.empty()) std::ofstream(json_file) << golden::ToJson(results).dump(1) << "\n";
  return equal ? 0 : 1;
}
