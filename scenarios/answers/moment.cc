#include "scenarios/answers/moment.h"

#include <algorithm>
#include <optional>

#include "core/base/duration.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace wavetank::scenario {
namespace {

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::string_view Unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// The only step of that name, or else the only one whose name holds it.
absl::StatusOr<std::string> FindStep(std::string_view option, std::string_view name,
                                     const std::vector<std::string>& steps) {
  if (std::find(steps.begin(), steps.end(), name) != steps.end()) return std::string(name);
  std::vector<std::string> found;
  for (const std::string& step : steps) {
    if (!name.empty() && step.find(name) != std::string::npos) found.push_back(step);
  }
  if (found.size() == 1) return found.front();
  if (steps.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{} '{}' is no duration, and there are no steps here; write 30s or 1m30s", option, name));
  }
  return absl::InvalidArgumentError(
      fmt::format("{} '{}': {}; write a time since the world's beginning (30s, 1m30s), or a step and how long after it "
                  "began ('{}'+2s); steps: {}",
                  option, name, found.empty() ? "no duration and no step" : "more than one step holds that",
                  steps.front(), fmt::join(found.empty() ? steps : found, ", ")));
}

}  // namespace

absl::StatusOr<Moment> ParseMoment(std::string_view option, std::string_view text,
                                   const std::vector<std::string>& steps) {
  text = Trimmed(text);
  if (const std::optional<Duration> since = ParseDuration(text)) return Moment{{}, *since};
  // A step's name may hold a plus itself: what stands after the last one is an offset only if it is a duration.
  Moment moment;
  std::string_view name = text;
  if (const size_t plus = text.rfind('+'); plus != std::string_view::npos) {
    if (const std::optional<Duration> offset = ParseDuration(Trimmed(text.substr(plus + 1)))) {
      moment.offset = *offset;
      name = Trimmed(text.substr(0, plus));
    }
  }
  absl::StatusOr<std::string> step = FindStep(option, Unquoted(name), steps);
  if (!step.ok()) return step.status();
  moment.step = *std::move(step);
  return moment;
}

}  // namespace wavetank::scenario
