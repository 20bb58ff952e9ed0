#include "reports/page.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "core/base/json_text.h"
#include "reports/assets.h"

namespace wavetank::report {
namespace {

// JSON inside <script>: "</script>" and "<!--" must not end or change it.
std::string ForScript(std::string json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string ForText(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string PageHtml(std::string_view title, std::string_view scripts, const nlohmann::ordered_json& data) {
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<title>" + ForText(title) + "</title>\n<style>\n";
  page += assets::ReportCss();
  page += "</style>\n</head>\n<body>\n<main></main>\n<script type=\"application/json\" id=\"results\">";
  page += ForScript(JsonText(data));
  page += "</script>\n<script>\n";
  page += assets::ChartJs();
  page += "\n</script>\n<script>\n";
  page += assets::BaseJs();
  page += scripts;
  page += "</script>\n</body>\n</html>\n";
  return page;
}

absl::Status MakeFolder(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::UnavailableError(fmt::format("{}: {}; name a folder that can be made", directory, error.message()));
  }
  return absl::OkStatus();
}

absl::Status WriteWhole(const std::string& path, std::string_view text) {
  const std::filesystem::path part = path + ".part";
  {
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    out << text;
    out.flush();
    if (!out) {
      std::error_code ignored;
      std::filesystem::remove(part, ignored);
      return absl::UnavailableError(fmt::format("{}: cannot be written; check space and permissions", path));
    }
  }
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    return absl::UnavailableError(fmt::format("{}: {}; name another folder or make room there", path, error.message()));
  }
  return absl::OkStatus();
}

}  // namespace wavetank::report
