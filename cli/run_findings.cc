#include "cli/run_findings.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "check/cause/remedies.h"
#include "check/cause/story.h"
#include "check/cause/trials.h"
#include "cli/verb.h"
#include "core/base/text/temporary_folder.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

using Json = nlohmann::ordered_json;

std::optional<Time> FirstFailure(const scenario::StepResult& step) {
  std::optional<Time> out;
  for (const scenario::TrafficResult& traffic : step.traffic) {
    for (const scenario::TrafficResult::Failure& failure : traffic.failures) {
      if (!out || failure.first < *out) out = failure.first;
    }
  }
  return out;
}

// What is sent is no cause.
bool Changes(const replay::LogInput& input) { return input.kind != "traffic" && input.kind != "stopTraffic"; }

}  // namespace

LogForFindings::LogForFindings(bool wanted, std::string* log) {
  if (!wanted || !log->empty()) return;
  absl::StatusOr<std::string> folder = MakeTemporaryFolder("report");
  if (!folder.ok()) return;  // a page without remedies
  own_ = *std::move(folder);
  *log = (std::filesystem::path(own_) / "run.wtlog").string();
}

LogForFindings::~LogForFindings() {
  std::error_code error;
  if (!own_.empty()) std::filesystem::remove_all(own_, error);
}

Json FindingsBehind(const scenario::RunResult& result, const std::string& log) {
  Json out = Json::array();
  std::vector<std::pair<std::string, Time>> steps;
  for (const scenario::StepResult& step : result.steps) {
    if (const auto first = FirstFailure(step); first && steps.size() < kStepsWithFindings)
      steps.emplace_back(step.name, *first);
  }
  if (steps.empty() || log.empty()) return out;
  const absl::StatusOr<check::Story> story = check::LoadStory(log);
  if (!story.ok()) return out;
  std::vector<check::Suspect> suspects;
  for (const auto& [name, first] : steps) {
    check::Suspect& suspect = suspects.emplace_back();
    suspect.at = first;
    for (size_t i = 0; i < story->inputs.size() && story->inputs[i].at <= first; ++i) {
      if (Changes(story->inputs[i])) suspect.input = i;
    }
  }
  Progress progress;
  const auto found =
      check::KnownFaults(*story, suspects, check::Processors(), [&](std::string_view what) { progress.Say(what); });
  if (!found.ok()) return out;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const check::KnownFault& fault : (*found)[i]) {
      Json row = {{"step", steps[i].first}};
      row.update(check::ToJson(fault));
      out.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace wavetank::cli
