#include <string>

#include "core/base/json_text.h"
#include "reports/assets.h"
#include "reports/report.h"

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

std::string ReportHtml(const scenario::RunResult& result) {
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<title>" + ForText(result.scenario) + "</title>\n<style>\n";
  page += assets::ReportCss();
  page += "</style>\n</head>\n<body>\n<main></main>\n<script type=\"application/json\" id=\"results\">";
  page += ForScript(JsonText(ResultsJson(result)));
  page += "</script>\n<script>\n";
  page += assets::ChartJs();
  page += "\n</script>\n<script>\n";
  page += assets::ReportJs();
  page += "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace wavetank::report
