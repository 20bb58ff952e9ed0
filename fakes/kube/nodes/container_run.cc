#include "fakes/kube/nodes/container_run.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "fakes/kube/control/owned.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr Duration kOtherCommand = 1s;
constexpr int64_t kMostSeconds = 366 * 24 * 3600;

bool IsServer(const json& container) {
  if (!Items(At(container, "ports")).empty()) return true;
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    if (At(container, probe).is_object()) return true;
  }
  return false;
}

// "30", "0.5", "5m", as sleep(1) reads them; nullopt: it never ends, or that is no number.
std::optional<Duration> SleepTime(absl::string_view text) {
  if (text.empty() || text == "infinity" || text == "inf") return std::nullopt;
  int64_t unit = 1;
  if (const size_t at = absl::string_view("smhd").find(text.back()); at != absl::string_view::npos) {
    constexpr int64_t kUnits[] = {1, 60, 3600, 24 * 3600};
    unit = kUnits[at];
    text.remove_suffix(1);
  }
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0)) return std::nullopt;
  seconds = std::min(seconds * static_cast<double>(unit), static_cast<double>(kMostSeconds));
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// One command of a script after the other, until one ends it. False: it runs on.
bool Follow(absl::string_view command, ContainerRun* run, bool* over) {
  std::vector<absl::string_view> words = absl::StrSplit(command, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  if (words.empty()) return true;
  const absl::string_view name = words[0].substr(words[0].rfind('/') + 1);  // npos + 1 is 0
  const absl::string_view first = words.size() > 1 ? words[1] : absl::string_view();
  if (name == "pause" || name == "while" || name == "until" || (name == "tail" && absl::StartsWith(first, "-f")))
    return false;
  if (name == "sleep") {
    const std::optional<Duration> time = SleepTime(first);
    if (!time) return false;
    run->time = std::min<Duration>(run->time + *time, std::chrono::seconds(kMostSeconds));
  } else if (name == "exit") {
    int64_t code = 0;
    std::from_chars(first.data(), first.data() + first.size(), code);
    run->exit_code = code & 0xff;
    *over = true;
  } else if (name == "false") {
    run->exit_code = 1;
  } else {
    run->exit_code = 0;
  }
  return true;
}

bool SaysQuit(const json& container) {
  for (const char* list : {"command", "args"}) {
    for (const json& word : Items(At(container, list))) {
      if (absl::StrContains(TextOf(word), "/quitquitquit")) return true;
    }
  }
  return false;
}

// nullopt: it runs on.
std::optional<ContainerRun> RunOfContainer(const json& container, bool of_job) {
  if (IsServer(container)) return std::nullopt;
  std::vector<std::string> words;
  for (const char* list : {"command", "args"}) {
    for (const json& word : Items(At(container, list))) words.push_back(TextOf(word));
  }
  if (words.empty()) {
    if (!of_job) return std::nullopt;
    return ContainerRun{kOtherCommand, 0};
  }
  // A shell's script, or the command itself.
  std::string script;
  const auto is_shell = [](absl::string_view word) {
    return word == "sh" || absl::EndsWith(word, "/sh") || word == "bash" || absl::EndsWith(word, "/bash");
  };
  if (words.size() >= 3 && is_shell(words[0]) && absl::StrContains(words[1], "c")) {
    script = words[2];
  } else {
    for (const std::string& word : words) script += word + " ";
  }
  ContainerRun run;
  bool over = false;
  for (absl::string_view part : absl::StrSplit(script, absl::ByAnyChar(";&|\n"), absl::SkipWhitespace())) {
    if (!Follow(absl::StripAsciiWhitespace(part), &run, &over)) return std::nullopt;
    if (over) break;
  }
  if (run.time == Duration::zero()) run.time = kOtherCommand;
  return run;
}

}  // namespace

std::optional<ContainerRun> RunOf(const kube::Object& pod) {
  const json& spec = At(pod.body, "spec");
  const std::string restart = Text(spec, "restartPolicy", "Always");
  if (restart != "Never" && restart != "OnFailure") return std::nullopt;
  const kube::OwnerReference* owner = ControllerOf(pod);
  const bool of_job = owner != nullptr && owner->kind == "Job";
  const json& containers = Items(At(spec, "containers"));
  // The work tells what runs beside it to end, too.
  const bool quits = std::any_of(containers.begin(), containers.end(), SaysQuit);
  ContainerRun out;
  for (const json& container : containers) {
    const std::optional<ContainerRun> run = RunOfContainer(container, of_job);
    if (!run && quits && !SaysQuit(container)) continue;
    if (!run) return std::nullopt;
    out.time = std::max(out.time, run->time);
    if (out.exit_code == 0) out.exit_code = run->exit_code;
  }
  return out;
}

}  // namespace wavetank::fakekube
