#include "check/lint/output.h"

#include <map>

#include "core/base/text/xml_text.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::ordered_json;

std::string PlaceText(const Finding& f) {
  if (!f.place.file.empty()) return fmt::format("{}:{}", f.place.file, f.place.line);
  return f.cluster.empty() ? "mesh" : f.cluster;
}

std::string Subject(const Finding& f) {
  std::string out = f.object;
  if (!f.cluster.empty() && !f.object.empty()) out += " in ";
  if (!f.object.empty() && !f.cluster.empty()) out += f.cluster;
  return out;
}

const char* SarifLevel(Level level) {
  return level == Level::kError ? "error" : level == Level::kWarning ? "warning" : "note";
}

}  // namespace

std::string FindingsText(const LintResult& result) {
  std::string out;
  for (const Finding& f : result.findings) {
    const std::string subject = Subject(f);
    out +=
        fmt::format("{}: {} {} {}\n  {}{}{}\n  why     {}\n  remedy  {}\n", PlaceText(f), LevelName(f.rule->level),
                    f.rule->code, f.rule->name, subject, subject.empty() ? "" : ": ", f.message, f.Cause(), f.Remedy());
    if (!f.rule->incident.empty()) out += fmt::format("  seen in {}\n", f.rule->incident);
  }
  out += fmt::format("{} errors, {} warnings, {} infos", result.Count(Level::kError),
                     result.Count(Level::kWarning) - result.Count(Level::kError),
                     result.Count(Level::kInfo) - result.Count(Level::kWarning));
  if (result.silenced > 0) out += fmt::format("; {} silenced in place", result.silenced);
  if (result.known > 0) out += fmt::format("; {} in the baseline", result.known);
  return out + "\n";
}

ordered_json FindingsJson(const LintResult& result) {
  ordered_json out;
  out["findings"] = ordered_json::array();
  for (const Finding& f : result.findings) {
    ordered_json& each = out["findings"].emplace_back();
    each["code"] = f.rule->code;
    each["name"] = f.rule->name;
    each["level"] = LevelName(f.rule->level);
    each["cluster"] = f.cluster;
    each["object"] = f.object;
    each["file"] = f.place.file;
    each["line"] = f.place.line;
    each["message"] = f.message;
    each["cause"] = f.Cause();
    each["remedy"] = f.Remedy();
    each["incident"] = f.rule->incident;
  }
  out["silenced"] = result.silenced;
  out["inBaseline"] = result.known;
  return out;
}

ordered_json FindingsSarif(const LintResult& result, std::string_view version, const std::string& mesh) {
  ordered_json run;
  ordered_json& driver = run["tool"]["driver"];
  driver["name"] = "wavetank check";
  driver["version"] = version;
  driver["rules"] = ordered_json::array();
  for (const Rule* rule : AllRules()) {
    driver["rules"].push_back({{"id", rule->code},
                               {"name", rule->name},
                               {"shortDescription", {{"text", rule->cause}}},
                               {"help", {{"text", rule->remedy}}},
                               {"defaultConfiguration", {{"level", SarifLevel(rule->level)}}}});
  }
  run["results"] = ordered_json::array();
  for (const Finding& f : result.findings) {
    ordered_json each;
    each["ruleId"] = f.rule->code;
    each["level"] = SarifLevel(f.rule->level);
    const std::string subject = Subject(f);
    each["message"]["text"] = (subject.empty() ? f.message : subject + ": " + f.message) +
                              (f.remedy.empty() ? std::string() : "; remedy: " + f.remedy);
    each["partialFingerprints"]["wavetank/v1"] = f.Fingerprint();
    ordered_json location;
    const std::string& file = f.place.file.empty() ? mesh : f.place.file;
    if (!file.empty()) location["physicalLocation"]["artifactLocation"]["uri"] = file;
    if (f.place.line > 0) location["physicalLocation"]["region"]["startLine"] = f.place.line;
    if (!subject.empty())
      location["logicalLocations"].push_back({{"fullyQualifiedName", subject}, {"kind", "resource"}});
    if (!location.empty()) each["locations"].push_back(location);
    run["results"].push_back(each);
  }
  ordered_json out;
  out["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json";
  out["version"] = "2.1.0";
  out["runs"].push_back(run);
  return out;
}

std::string FindingsJunit(const LintResult& result) {
  std::map<std::string_view, std::vector<const Finding*>> by_code;
  for (const Finding& f : result.findings) by_code[f.rule->code].push_back(&f);
  std::string cases;
  for (const Rule* rule : AllRules()) {
    cases += fmt::format("  <testcase classname=\"check\" name=\"{} {}\">", rule->code, rule->name);
    for (const Finding* f : by_code[rule->code]) {
      cases += fmt::format("\n    <failure type=\"{}\" message=\"{}\">{}: {}\n{}</failure>", LevelName(rule->level),
                           XmlText(f->message), XmlText(PlaceText(*f)), XmlText(Subject(*f)),
                           XmlText(std::string(f->Remedy())));
    }
    cases += "</testcase>\n";
  }
  size_t failed = 0;
  for (const auto& [code, findings] : by_code) failed += !findings.empty();
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"wavetank check\" tests=\"{}\" "
      "failures=\"{}\">\n{}</testsuite>\n",
      AllRules().size(), failed, cases);
}

}  // namespace wavetank::check
