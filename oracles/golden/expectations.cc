#include "oracles/golden/expectations.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace wavetank::golden {

namespace fs = std::filesystem;

absl::StatusOr<Expectations> Expectations::Load(const std::string& case_directory, size_t steps) {
  Expectations out;
  std::map<std::pair<std::string, std::string>, std::string> present;  // by proxy and kind
  for (size_t step = 0; step <= steps; ++step) {
    const fs::path folder = fs::path(case_directory) / "expect" / fmt::format("{:02}", step);
    std::error_code error;
    const auto add = [&](const std::string& proxy, const fs::path& file) {
      if (file.extension() == ".json") present[{proxy, file.stem().string()}] = file.string();
    };
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (!entry.is_directory()) {
        add("", entry.path());
        continue;
      }
      for (const auto& file : fs::directory_iterator(entry.path(), error)) {
        add(entry.path().filename().string(), file.path());
      }
    }
    if (error) {
      return absl::NotFoundError(
          fmt::format("{}: {}; a case needs its recordings (docs/golden-cases.md)", folder.string(), error.message()));
    }
    std::vector<ExpectedFile>& files = out.steps_.emplace_back();
    for (const auto& [key, path] : present) files.push_back({key.first, key.second, path});
  }
  return out;
}

}  // namespace wavetank::golden
