#include "check/lint/lint.h"

#include <algorithm>
#include <fstream>
#include <tuple>

#include "check/lint/requests.h"
#include "check/lint/silence.h"
#include "core/base/bounds.h"
#include "core/base/json_text.h"
#include "core/base/text/read_up_to.h"
#include "fmt/format.h"

namespace wavetank::check {

int LintResult::Count(Level level) const {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.rule->level >= level; }));
}

absl::StatusOr<LintResult> Lint(const Mesh& mesh, const LintOptions& options) {
  absl::StatusOr<Silences> silences = Silences::Read(mesh);
  if (!silences.ok()) return silences.status();
  RequestsSent sent = SendRequests(mesh);
  const std::vector<RequestOutcome>& requests = sent.outcomes;
  std::vector<Finding> all;
  for (const Rule* rule : AllRules()) {
    if (!rule->IsAskedIn(mesh.world().profile().istio)) continue;
    Findings findings(mesh, *rule, options.unix_now, requests, &all);
    rule->find(mesh, findings);
  }
  const auto key = [](const Finding& f) {
    return std::tuple(-static_cast<int>(f.rule->level), f.rule->code, std::cref(f.cluster), std::cref(f.object),
                      std::cref(f.message));
  };
  std::stable_sort(all.begin(), all.end(), [&](const Finding& a, const Finding& b) {
    const auto x = key(a), y = key(b);
    return std::tie(std::get<0>(x), std::get<1>(x), std::get<2>(x).get(), std::get<3>(x).get(), std::get<4>(x).get()) <
           std::tie(std::get<0>(y), std::get<1>(y), std::get<2>(y).get(), std::get<3>(y).get(), std::get<4>(y).get());
  });
  LintResult out;
  out.notes = std::move(sent.notes);
  std::string last;
  int made_up = 0;
  for (Finding& finding : all) {
    const std::string print = finding.Fingerprint();
    if (print == last) continue;
    last = print;
    // What is wrong with it was made up with it.
    if (finding.made_up) {
      ++made_up;
      continue;
    }
    if (silences->Covers(finding.place, finding.rule->code)) {
      ++out.silenced;
    } else if (options.baseline.contains(print)) {
      ++out.known;
    } else {
      out.findings.push_back(std::move(finding));
    }
  }
  if (made_up > 0) {
    out.notes.push_back(
        fmt::format("{} finding{} of objects that `import` made up of lines which name them; a dump (kubectl get -A -o "
                    "yaml) has the "
                    "real ones",
                    made_up, made_up == 1 ? "" : "s"));
  }
  return out;
}

absl::StatusOr<Level> ParseLevel(std::string_view text) {
  for (const Level level : {Level::kInfo, Level::kWarning, Level::kError}) {
    if (LevelName(level) == text) return level;
  }
  return absl::InvalidArgumentError(fmt::format("'{}' is no level; info, warning or error", text));
}

absl::StatusOr<std::set<std::string>> ReadBaseline(const std::string& path) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(fmt::format("{}: cannot be read; --write-baseline writes one", path));
  const nlohmann::json list = ParseJson(ReadUpTo(in, bounds::kManifestBytes));
  if (!list.is_array())
    return absl::InvalidArgumentError(fmt::format("{}: no baseline: not a JSON list of texts", path));
  std::set<std::string> out;
  for (const nlohmann::json& each : list) {
    if (!each.is_string())
      return absl::InvalidArgumentError(fmt::format("{}: no baseline: not a JSON list of texts", path));
    out.insert(each.get<std::string>());
  }
  return out;
}

absl::Status WriteBaseline(const std::string& path, const LintResult& result) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : result.findings) list.push_back(finding.Fingerprint());
  std::ofstream out(path);
  out << JsonText(list, 1) << "\n";
  out.close();
  return out ? absl::OkStatus()
             : absl::UnavailableError(fmt::format("{}: cannot be written; choose another place", path));
}

}  // namespace wavetank::check
