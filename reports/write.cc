#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/base/json_text.h"
#include "reports/report.h"

namespace wavetank::report {
namespace {

absl::Status WriteWhole(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path part = path.string() + ".part";
  {
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    out << text;
    out.flush();
    if (!out) {
      std::error_code ignored;
      std::filesystem::remove(part, ignored);
      return absl::UnavailableError(fmt::format("{}: cannot be written; check space and permissions", path.string()));
    }
  }
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    return absl::UnavailableError(
        fmt::format("{}: {}; name another folder or make room there", path.string(), error.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteReports(const std::string& directory, const scenario::RunResult& result) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::UnavailableError(fmt::format("{}: {}; name a folder that can be made", directory, error.message()));
  }
  const std::filesystem::path folder(directory);
  // All texts first: a failure while making one leaves nothing behind.
  const std::string html = ReportHtml(result), json = JsonText(ResultsJson(result), 1) + "\n", junit = JUnitXml(result),
                    dot = TopologyDot(result);
  for (const auto& [name, text] : {std::pair<const char*, const std::string&>{"report.html", html},
                                   {"results.json", json},
                                   {"junit.xml", junit},
                                   {"topology.dot", dot}}) {
    if (absl::Status status = WriteWhole(folder / name, text); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace wavetank::report
