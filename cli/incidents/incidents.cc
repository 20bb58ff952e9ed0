#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <thread>

#include "check/game_day/fork_pool.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "scenarios/library/library.h"
#include "scenarios/library/page.h"

namespace wavetank::cli {
namespace {

using nlohmann::ordered_json;
using scenario::IncidentStory;
using scenario::IncidentVerdict;

struct IncidentsArguments {
  std::vector<std::string> wanted;
  std::string library, profile;
  bool json = false, page = false;
};

struct Piece {
  const IncidentStory* story;
  std::string profile;
};

// What a fork hands back.
ordered_json ToJson(const Piece& piece, const absl::StatusOr<IncidentVerdict>& verdict) {
  ordered_json out = {{"incident", piece.story->id}, {"name", piece.story->name}, {"profile", piece.profile}};
  if (!verdict.ok()) {
    out["error"] = std::string(Message(verdict.status()));
    return out;
  }
  out["shown"] = verdict->shown;
  out["expected"] = verdict->expected;
  out["cause"] = verdict->cause;
  out["problems"] = verdict->problems;
  return out;
}

int Print(const IncidentsArguments& a, const std::vector<ordered_json>& rows) {
  int code = kOk;
  Rows table = {{"INCIDENT", "PROFILE", "VERDICT", "CAUSE"}};
  std::string problems;
  for (const ordered_json& row : rows) {
    if (row.contains("error")) return Complain(absl::InvalidArgumentError(row["error"].get<std::string>()));
    table.push_back({fmt::format("{}-{}", row["incident"].get<std::string>(), row["name"].get<std::string>()),
                     row["profile"].get<std::string>(), row["shown"].get<bool>() ? "shown" : "not shown",
                     row["cause"].get<std::string>()});
    for (const auto& problem : row["problems"]) {
      code = kNo;
      problems += fmt::format("{} with {}: {}\n", row["incident"].get<std::string>(), row["profile"].get<std::string>(),
                              problem.get<std::string>());
    }
  }
  if (a.json) {
    std::cout << JsonText(ordered_json{{"version", WAVETANK_VERSION}, {"passed", code == kOk}, {"incidents", rows}}, 1)
              << "\n";
    return code;
  }
  PrintTable(table);
  std::cout << (problems.empty() ? "\nevery incident has the verdicts that its story names\n" : "\n" + problems);
  return code;
}

// That of the repository one stands in, or what was installed with this program: PREFIX/share/wavetank, where the
// program is PREFIX/bin/wavetank or, in the archive that brings its libraries, PREFIX/lib/wavetank/wavetank.
std::string FindLibrary() {
  namespace fs = std::filesystem;
  constexpr const char* kHere = "scenarios/incidents";
  std::error_code error;
  if (fs::is_directory(kHere, error)) return kHere;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return kHere;
  const fs::path folder = program.parent_path();
  for (const fs::path& prefix : {folder.parent_path(), folder.parent_path().parent_path()}) {
    const fs::path installed = prefix / "share/wavetank" / kHere;
    if (fs::is_directory(installed, error)) return installed.string();
  }
  return kHere;
}

int Incidents(const IncidentsArguments& a) {
  absl::StatusOr<std::vector<IncidentStory>> all =
      scenario::LoadIncidents(a.library.empty() ? FindLibrary() : a.library);
  if (!all.ok()) return Complain(all.status());
  if (a.page) {
    std::cout << scenario::IncidentPage(*all);
    return kOk;
  }
  const absl::StatusOr<std::vector<IncidentStory>> stories = scenario::Selected(*std::move(all), a.wanted);
  if (!stories.ok()) return Complain(stories.status());
  std::vector<Piece> pieces;
  for (const IncidentStory& story : *stories) {
    if (!a.profile.empty()) {
      pieces.push_back({&story, a.profile});
      continue;
    }
    for (const auto& [profile, shown] : story.scenario.incident->shown) pieces.push_back({&story, profile});
  }
  Progress progress;
  size_t done = 0;
  const auto answers = check::InForks(
      pieces.size(), static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)),
      [&](size_t i) { return JsonText(ToJson(pieces[i], scenario::RunIncident(*pieces[i].story, pieces[i].profile))); },
      [&](size_t i) { progress.Say(fmt::format("{} of {}: {}", ++done, pieces.size(), pieces[i].story->id)); });
  if (!answers.ok()) return Complain(answers.status());
  std::vector<ordered_json> rows;
  for (const std::string& answer : *answers) rows.push_back(ParseJson(answer));
  return Print(a, rows);
}

}  // namespace

void AddIncidents(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("incidents", "Runs the library of incidents: which profile shows which, and why");
  auto a = std::make_shared<IncidentsArguments>();
  verb->add_option("id", a->wanted, "A01, or A01-gateway-per-zone; all if none is named");
  verb->add_option("--profile", a->profile, "With this behaviour profile; those that each story names if left out");
  verb->add_option("--library", a->library,
                   "Folder with a folder for each incident; scenarios/incidents, or what was installed");
  verb->add_flag("--page", a->page, "Prints docs/incidents.md and runs nothing");
  verb->add_flag("--json", a->json, "As JSON");
  NotWith(verb, {"id", "--profile", "--json"}, "--page");
  verb->footer("Exit code 1: a story has another verdict than it names, or an expectation beside it does not hold.");
  verb->callback([a, &outcome] { outcome.code = Incidents(*a); });
}

}  // namespace wavetank::cli
