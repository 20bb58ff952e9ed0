#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "cli/verb.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "oracles/golden/case.h"
#include "oracles/golden/push_runner.h"
#include "oracles/golden/runner.h"

namespace wavetank::cli {
namespace {

struct GoldenArguments {
  std::vector<std::string> directories, kinds;
  std::string glob = "*", inputs, json_file, push_directory, profile = "istio-1.18";
  int jobs = 1;
  bool diff = false, record = false;
};

int RunGolden(const GoldenArguments& a) {
  golden::RunOptions options;
  options.unified_diff = a.diff;
  absl::StatusOr<pilot::Profile> profile = pilot::ParseProfile(a.profile);
  if (!profile.ok()) return Complain(profile.status());
  options.profile = *profile;
  options.inputs = a.inputs;
  std::set<std::string> pushes;
  for (const std::string& kind : a.kinds) (kind.starts_with("push") ? pushes : options.kinds).insert(kind);
  if (a.kinds.empty() && !a.push_directory.empty()) pushes = {"push", "push-delta"};
  if (!pushes.empty() && a.push_directory.empty()) {
    return Complain(absl::InvalidArgumentError("--kind push needs --push-dir, the folder that holds push/ and cases/"));
  }

  Progress progress;
  std::vector<golden::CaseResult> results;
  if (a.kinds.empty() || !options.kinds.empty()) {
    std::vector<std::string> cases;
    for (const std::string& directory : a.directories) {
      absl::StatusOr<std::vector<std::string>> found = golden::FindCases(directory);
      if (!found.ok()) return Complain(found.status());
      for (const std::string& one : *found) {
        if (golden::MatchesGlob(a.glob, std::filesystem::path(one).filename().string())) cases.push_back(one);
      }
    }
    if (cases.empty()) return Complain(absl::NotFoundError("no case matches '" + a.glob + "'; see --case"));
    for (const std::string& one : cases) {
      if (!a.record) break;
      if (absl::Status status = golden::RecordCase(one, options); !status.ok()) return Complain(status);
    }
    results = golden::RunCases(cases, options, a.jobs,
                               [&](size_t done) { progress.Say(fmt::format("{} of {} cases", done, cases.size())); });
    for (const golden::CaseResult& result : results) {
      const bool bad_input = result.status.code() == absl::StatusCode::kInvalidArgument || result.files.empty();
      if (!result.status.ok() && bad_input) return Complain(result.status);
    }
  }
  for (const std::string& kind : pushes) {
    golden::PushOptions push;
    push.delta = kind == "push-delta";
    push.profile = options.profile;
    progress.Say(kind);
    absl::StatusOr<std::vector<golden::PushCaseResult>> found = golden::RunPushCases(a.push_directory, a.glob, push);
    if (absl::IsNotFound(found.status()) && !results.empty()) continue;  // not all cases have recorded pushes
    if (!found.ok()) return Complain(found.status());
    for (const golden::PushCaseResult& result : *found) results.push_back(golden::FromPushes(result, kind, options));
  }

  bool equal = true;
  for (const golden::CaseResult& result : results) {
    equal = equal && result.AllEqual();
    std::cout << golden::DifferencesText(result);
  }
  std::cout << golden::TallyTable(results);
  if (!a.json_file.empty()) {
    std::ofstream out(a.json_file);
    out << JsonText(golden::ToJson(results), 1) << "\n";
    if (!out) return Complain(absl::UnavailableError(a.json_file + ": cannot be written; check the folder"));
  }
  return equal ? kOk : kNo;
}

}  // namespace

void AddGolden(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("golden", "Compares what the core generates with recordings of a real istiod");
  auto a = std::make_shared<GoldenArguments>();
  verb->add_option("directories", a->directories, "Cases, or folders of cases");
  verb->add_option("--inputs", a->inputs,
                   "Folder with the inputs of cases that hold recordings alone; without it the folder beside theirs, "
                   "whose name lacks the release: golden for golden-1.30");
  verb->add_option("--case", a->glob, "Only cases whose name matches, with * and ?");
  verb->add_option("--kind", a->kinds, "Only these, separated by commas")
      ->delimiter(',')
      ->check(
          CLI::IsMember({"eds", "cds", "lds", "rds", "ecds", "gateways", "services", "shards", "push", "push-delta"}));
  verb->add_option("--push-dir", a->push_directory, "Folder with push/, push-delta/, push-cases/ and cases/");
  verb->add_option("--jobs", a->jobs, "Cases at a time")->check(CLI::Range(1, 256));
  verb->add_option("--json", a->json_file, "Results as JSON into this file");
  verb->add_option("--profile", a->profile, "Behaviour profile: of the release that recorded, e.g. istio-1.30");
  verb->add_flag("--diff", a->diff, "Unified diffs too");
  verb->add_flag("--record", a->record, "Write the recordings of the cases from this run first; review them");
  verb->footer("Exit code 0: everything is equal; 1: something differs; 2: a case cannot be read.");
  verb->callback([a, &outcome] { outcome.code = RunGolden(*a); });
}

}  // namespace wavetank::cli
