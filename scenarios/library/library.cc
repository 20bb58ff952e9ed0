#include "scenarios/library/library.h"

#include <algorithm>
#include <filesystem>

#include "core/base/status.h"
#include "core/profile/profile.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "scenarios/library/cause.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<IncidentStory> Load(const fs::path& folder) {
  absl::StatusOr<Scenario> scenario = LoadScenario(folder.string());
  if (!scenario.ok()) return scenario.status();
  const std::string name = folder.filename().string();
  const size_t dash = name.find('-');
  const auto bad = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", scenario->file, what));
  };
  if (!scenario->incident) return bad("has no head; write incident:");
  if (dash == std::string::npos || dash == 0) return bad("its folder is not called ID-name, as A01-gateway-per-zone");
  for (const auto& [profile, shown] : scenario->incident->shown) {
    if (const auto parsed = pilot::ParseProfile(profile); !parsed.ok()) return bad(Message(parsed.status()));
  }
  return IncidentStory{name.substr(0, dash), name.substr(dash + 1), *std::move(scenario)};
}

}  // namespace

absl::StatusOr<std::vector<IncidentStory>> LoadIncidents(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (fs::exists(entry.path() / "scenario.yaml", error)) folders.push_back(entry.path());
  }
  if (folders.empty()) {
    return absl::NotFoundError(fmt::format(
        "{}: no incidents there; run from the repository's root, or name their folder with --library", folder));
  }
  std::sort(folders.begin(), folders.end());
  std::vector<IncidentStory> out;
  for (const fs::path& path : folders) {
    absl::StatusOr<IncidentStory> story = Load(path);
    if (!story.ok()) return story.status();
    out.push_back(*std::move(story));
  }
  return out;
}

absl::StatusOr<std::vector<IncidentStory>> Selected(std::vector<IncidentStory> all,
                                                    const std::vector<std::string>& wanted) {
  const auto is = [](const IncidentStory& story, const std::string& name) {
    return story.id == name || story.id + "-" + story.name == name;
  };
  for (const std::string& name : wanted) {
    if (std::any_of(all.begin(), all.end(), [&](const auto& story) { return is(story, name); })) continue;
    std::vector<std::string> there;
    for (const IncidentStory& story : all) there.push_back(story.id);
    return absl::NotFoundError(fmt::format("no incident '{}'; there are {}", name, fmt::join(there, ", ")));
  }
  if (wanted.empty()) return all;
  std::erase_if(all, [&](const IncidentStory& story) {
    return std::none_of(wanted.begin(), wanted.end(), [&](const std::string& name) { return is(story, name); });
  });
  return all;
}

absl::StatusOr<IncidentVerdict> RunIncident(const IncidentStory& story, const std::string& profile) {
  CauseFinder causes(story.scenario);
  RunOptions options;
  options.profile = profile;
  sim::World* running = nullptr;
  options.on_world = [&](sim::World& world) { running = &world; };
  options.on_tick = [&](const Tick& tick) { causes.Glance(*running, tick.what); };
  options.on_step = [&](sim::World& world, const Step& step) {
    causes.Look(world, step);
    return absl::OkStatus();
  };
  const absl::StatusOr<RunResult> result = Run(story.scenario, options);
  if (!result.ok()) return result.status();
  IncidentVerdict out{story.id, profile, result->Shown(), "", "", {}};
  if (out.shown) out.cause = causes.Tell(*result);
  for (const StepResult& step : result->steps) {
    for (const ExpectationResult& e : step.expectations) {
      if (!e.symptom && !e.held) out.problems.push_back(fmt::format("{}: {}: {}", step.name, e.text, e.explanation));
    }
  }
  const auto verdict = story.scenario.incident->shown.find(profile);
  if (verdict == story.scenario.incident->shown.end()) return out;
  out.expected = verdict->second ? "shown" : "not shown";
  if (verdict->second == out.shown) return out;
  out.problems.push_back(fmt::format("is {}, and should be {}", out.shown ? "shown" : "not shown", out.expected));
  for (const StepResult& step : result->steps) {
    for (const ExpectationResult& e : step.expectations) {
      if (e.symptom) out.problems.push_back(fmt::format("{}: {}: {}", step.name, e.text, e.explanation));
    }
  }
  return out;
}

}  // namespace wavetank::scenario
