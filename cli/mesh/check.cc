#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "check/game_day/game_day.h"
#include "check/lint/output.h"
#include "cli/mesh_arguments.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "scenarios/mesh/unheeded.h"

namespace wavetank::cli {
namespace {

struct CheckArguments {
  MeshSourceArguments mesh;
  std::string output = "table", fail_on = "error", baseline, write_baseline, now;
  bool rules = false, game_day = false;
  int failures = 1;
  std::optional<size_t> sample;
  std::string slo, budget;
};

// A rule for each line, for who writes a silence or asks what is looked at.
void PrintRules() {
  Rows rows{{"CODE", "LEVEL", "NAME", "RELEASES", "SEEN IN"}};
  for (const check::Rule* rule : check::AllRules()) {
    rows.push_back(
        {std::string(rule->code), std::string(check::LevelName(rule->level)), std::string(rule->name),
         rule->since.empty() && rule->until.empty() ? "all" : fmt::format("{}..{}", rule->since, rule->until),
         rule->incident.empty() ? "-" : std::string(rule->incident)});
  }
  PrintTable(rows);
}

nlohmann::ordered_json RulesJson() {
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (const check::Rule* rule : check::AllRules()) {
    rules.push_back({{"code", rule->code},
                     {"name", rule->name},
                     {"level", check::LevelName(rule->level)},
                     {"cause", rule->cause},
                     {"remedy", rule->remedy},
                     {"incident", rule->incident},
                     {"since", rule->since},
                     {"until", rule->until}});
  }
  return {{"rules", std::move(rules)}};
}

// Certificates are judged by today's date, unless another is given.
absl::StatusOr<int64_t> Today(const std::string& text) {
  if (text.empty())
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return absl::InvalidArgumentError(fmt::format("--now '{}': {}; write it as 2026-01-31T00:00:00Z", text, error));
  }
  return absl::ToUnixSeconds(time);
}

void Print(const check::LintResult& result, const std::string& output, const std::string& mesh) {
  if (output == "json") {
    std::cout << JsonText(check::FindingsJson(result), 1) << "\n";
  } else if (output == "sarif") {
    std::cout << JsonText(check::FindingsSarif(result, WAVETANK_VERSION, mesh), 1) << "\n";
  } else if (output == "junit") {
    std::cout << check::FindingsJunit(result);
  } else {
    std::cout << check::FindingsText(result);
  }
}

// `mesh_name`: what its user called it.
absl::StatusOr<check::LintResult> LintMesh(const CheckArguments& a, std::string* mesh_name) {
  check::LintOptions options;
  absl::StatusOr<int64_t> today = Today(a.now);
  if (!today.ok()) return today.status();
  options.unix_now = *today;
  if (!a.baseline.empty()) {
    absl::StatusOr<std::set<std::string>> known = check::ReadBaseline(a.baseline);
    if (!known.ok()) return known.status();
    options.baseline = *std::move(known);
  }
  absl::StatusOr<check::MeshSource> source = a.mesh.Source();
  if (!source.ok()) return source.status();
  *mesh_name = source->FirstPath();
  Progress progress;
  source->progress = [&](std::string_view what) { progress.Say(what); };
  absl::StatusOr<check::SettledMesh> settled = check::BringToRest(*source);
  if (!settled.ok()) return settled.status();
  const check::Mesh mesh(*std::move(settled));
  // No findings: what a real cluster would do with it is not looked at.
  for (const std::string& note : mesh.notes()) {
    // Of what was cut out of a dump, too: what stands in for it is judged, and not what was there.
    const bool stand_in = note.find(" cut out of the dump") != std::string::npos;
    if (scenario::IsUnheeded(note) || stand_in) std::cerr << "note: " << note << "\n";
  }
  for (const std::string& deed : mesh.world().MendedLines()) std::cerr << deed << "\n";
  return check::Lint(mesh, options);
}

// "99.9%" in parts per million.
absl::StatusOr<int64_t> Share(const std::string& text) {
  double share = 0;
  if (!absl::SimpleAtod(text.substr(0, text.find('%')), &share) || !(share >= 0 && share <= 100)) {
    return absl::InvalidArgumentError(fmt::format("--slo '{}' is no share; write it as 99.9%", text));
  }
  return static_cast<int64_t>(share * 10'000 + 0.5);
}

int GameDay(const CheckArguments& a) {
  absl::StatusOr<int64_t> slo = a.slo.empty() ? int64_t{0} : Share(a.slo);
  if (!slo.ok()) return Complain(slo.status());
  if (a.output != "table" && a.output != "json")
    return Complain(absl::InvalidArgumentError("--game-day prints a table or json; choose --output table or json"));
  const std::optional<Duration> budget = ParseDuration(a.budget);
  if (!a.budget.empty() && (!budget || *budget <= Duration::zero()))
    return Complain(absl::InvalidArgumentError(fmt::format("--budget '{}' is no duration; write it as 5m", a.budget)));
  if (!a.budget.empty() && a.failures < 2)
    return Complain(absl::InvalidArgumentError("--budget is for pairs of failures; add --failures 2"));
  const auto end = std::chrono::steady_clock::now() + budget.value_or(Duration::zero());
  absl::StatusOr<check::MeshSource> source = a.mesh.Source();
  if (!source.ok()) return Complain(source.status());
  source->live = true;
  absl::StatusOr<check::GameDay> day = [&]() -> absl::StatusOr<check::GameDay> {
    Progress progress;
    source->progress = [&](std::string_view what) { progress.Say(what); };
    absl::StatusOr<check::SettledMesh> settled = check::BringToRest(*source);
    if (!settled.ok()) return settled.status();
    const check::Mesh mesh(*std::move(settled));
    check::GameDayOptions options;
    options.failures = a.failures;
    options.sample = a.sample.value_or(a.budget.empty() ? options.sample : SIZE_MAX);
    if (!a.budget.empty()) options.time_left = [end] { return std::chrono::steady_clock::now() < end; };
    options.progress = source->progress;
    return check::RunGameDay(mesh, options);
  }();
  if (!day.ok()) return Complain(day.status());
  const std::vector<std::string> breaches = a.slo.empty() ? std::vector<std::string>() : check::SloBreaches(*day, *slo);
  if (a.output == "json") {
    nlohmann::ordered_json out = check::GameDayJson(*day);
    out["sloBreaches"] = breaches;
    std::cout << JsonText(out, 1) << "\n";
  } else {
    std::cout << check::GameDayText(*day);
    if (!breaches.empty()) std::cout << fmt::format("\nBelow {}:\n", a.slo);
    for (const std::string& breach : breaches) std::cout << "  " << breach << "\n";
  }
  return breaches.empty() ? kOk : kNo;
}

int Check(const CheckArguments& a) {
  if (a.rules) {
    if (a.output != "table" && a.output != "json")
      return Complain(absl::InvalidArgumentError("--rules prints a table or json; choose --output table or json"));
    if (a.output == "json") {
      std::cout << JsonText(RulesJson(), 1) << "\n";
    } else {
      PrintRules();
    }
    return kOk;
  }
  if (a.game_day) return GameDay(a);
  absl::StatusOr<check::Level> level = check::ParseLevel(a.fail_on);
  if (!level.ok()) return Complain(level.status());
  std::string mesh;
  absl::StatusOr<check::LintResult> result = LintMesh(a, &mesh);
  if (!result.ok()) return Complain(result.status());
  for (const std::string& note : result->notes) std::cerr << "note: " << note << "\n";
  if (!a.write_baseline.empty()) {
    if (absl::Status status = check::WriteBaseline(a.write_baseline, *result); !status.ok()) return Complain(status);
    std::cerr << fmt::format("wrote {} findings to {}\n", result->findings.size(), a.write_baseline);
    return kOk;
  }
  Print(*result, a.output, mesh);
  return result->Count(*level) > 0 ? kNo : kOk;
}

}  // namespace

void AddCheck(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("check", "Looks a mesh over before the wave: named findings with file and line");
  auto a = std::make_shared<CheckArguments>();
  a->mesh.AddTo(verb);
  verb->add_option("--output", a->output, "table, json, sarif or junit")
      ->check(CLI::IsMember({"table", "json", "sarif", "junit"}));
  verb->add_option("--fail-on", a->fail_on, "Exit code 1 for findings of this level and above: info, warning, error");
  verb->add_option("--baseline", a->baseline, "File of findings that are known, and not told again");
  verb->add_option("--write-baseline", a->write_baseline, "Writes the findings there, and tells none");
  verb->add_option("--now", a->now, "The day by which certificates are judged (RFC 3339); otherwise today");
  verb->add_flag("--rules", a->rules, "Lists the rules; with --output json what they mean, too");
  verb->add_flag("--game-day", a->game_day,
                 "Instead: every single failure, tried in a fork of the mesh under its traffic");
  verb->add_option("--failures", a->failures, "Of a game day, at once: 1, or 2 for pairs too")->check(CLI::Range(1, 2));
  verb->add_option("--sample", a->sample, "How many pairs of failures are tried at most; 100, or all with --budget");
  verb->add_option("--budget", a->budget,
                   "How long pairs are tried, as 5m; single failures are tried whatever it says");
  verb->add_option("--slo", a->slo,
                   "Share of requests that each flow must have answered in each failure, as 99.9%; else exit code 1");
  OnlyWith(verb, {"--failures", "--sample", "--budget", "--slo"}, "--game-day");
  NotWith(verb, {"--fail-on", "--baseline", "--write-baseline", "--now"}, "--game-day");
  NotWith(verb,
          {"mesh", "--cluster", "--kubeconfig", "--with", "--profile", "--fail-on", "--baseline", "--write-baseline",
           "--now", "--game-day"},
          "--rules");
  verb->callback([a, &outcome] { outcome.code = Check(*a); });
}

}  // namespace wavetank::cli
