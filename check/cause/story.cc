#include "check/cause/story.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/base/text/shell_word.h"
#include "fmt/format.h"
#include "replay/recorder.h"
#include "replay/secret_source.h"
#include "replay/world_target.h"
#include "scenarios/mesh/world.h"
#include "sim/inputs/input.h"
#include "sim/invariants/watch.h"
#include "sim/world.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

void Collect(const json& value, const std::set<std::string>& names, std::set<std::string>* found) {
  if (value.is_string() && names.contains(value.get_ref<const std::string&>())) found->insert(value.get<std::string>());
  if (value.is_structured()) {
    for (const json& item : value) Collect(item, names, found);
  }
}

}  // namespace

std::optional<int64_t> Story::CalendarBegins() const {
  const nlohmann::json& begins = At(header.world, "beginsNs");
  if (!begins.is_number_integer()) return std::nullopt;
  return begins.get<int64_t>();
}

std::string Story::Calendar(Time at) const {
  const std::optional<int64_t> begins = CalendarBegins();
  if (!begins) return {};
  const int64_t milliseconds = (*begins + (at - header.Beginning()).count()) / 1'000'000;
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixMillis(milliseconds), absl::UTCTimeZone());
}

scenario::Scenario Story::AsScenario() const {
  scenario::Scenario out;
  out.file = path;
  out.name = header.scenario_name;
  if (const auto options = sim::WorldOptions::FromJson(header.world); options.ok()) {
    out.clusters = scenario::ClustersOfWorld(*options);
  }
  for (const replay::LogInput& input : inputs) {
    if (input.kind != "traffic") continue;
    const std::string flow = Text(input.body, "flow");
    if (out.FindFlow(flow) != nullptr) continue;
    out.flows.push_back({});
    out.flows.back().name = flow;
  }
  return out;
}

absl::StatusOr<Story> LoadStory(const std::string& path) {
  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(path);
  if (!log.ok()) return log.status();
  Story story;
  story.path = path;
  story.header = (*log)->header();
  story.end = story.header.Beginning();
  story.whole = false;
  uint64_t checkpoints = 0;
  // Once over it: reading checks what it reads, and of a long log most are events.
  while (true) {
    const absl::StatusOr<replay::LogReader::Item> item = (*log)->Next();
    if (!item.ok()) return item.status();
    if (*item == replay::LogReader::Item::kEnd) break;
    switch (*item) {
      case replay::LogReader::Item::kInput:
        story.inputs.push_back((*log)->input());
        if (const absl::Status whole = replay::RestoreSecrets(story.header, {}, &story.inputs.back()); !whole.ok()) {
          return absl::Status(whole.code(), fmt::format("{}: {}: {}", path,
                                                        replay::Describe(story.inputs.back(), story.header.Beginning()),
                                                        Message(whole)));
        }
        story.end = story.inputs.back().at;
        break;
      case replay::LogReader::Item::kCheckpoint:
        ++checkpoints;
        story.end = (*log)->checkpoint().at;
        story.whole = (*log)->checkpoint().last;
        break;
      default:
        story.end = (*log)->event().time;
    }
  }
  if (story.header.IsRecording() && checkpoints == 0) {
    if (const auto summary = replay::VerifyUsable(**log); !summary.ok()) return summary.status();
  }
  return story;
}

absl::StatusOr<std::unique_ptr<sim::World>> Begin(const Story& story) {
  const absl::StatusOr<sim::WorldOptions> options = sim::WorldOptions::FromJson(story.header.world);
  if (!options.ok()) {
    return absl::Status(options.status().code(), fmt::format("{}: {}", story.path, Message(options.status())));
  }
  absl::StatusOr<std::unique_ptr<sim::World>> world = sim::World::Create(*options);
  if (world.ok()) (*world)->kernel().run().set_reproduce("wavetank replay " + ShellWord(story.path));
  return world;
}

absl::Status DoAgain(sim::World& world, const replay::LogInput& input) {
  const absl::StatusOr<sim::Input> again = sim::Input::Parse(input.kind, input.body);
  if (!again.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", replay::Describe(input, world.options().start), Message(again.status())));
  }
  world.Do(*again).IgnoreError();
  return absl::OkStatus();
}

std::vector<std::string> ClustersOf(const Story& story, const replay::LogInput& input) {
  std::set<std::string> names, found;
  for (const json& cluster : Items(At(story.header.world, "clusters"))) names.insert(Text(cluster, "name"));
  // An object may hold any words; where it stands is told beside it.
  json body = input.body;
  if (body.is_object()) {
    body.erase("object");
    body.erase("patch");
  }
  Collect(body, names, &found);
  return {found.begin(), found.end()};
}

absl::Status WriteStory(const Story& story, const std::string& log) {
  absl::StatusOr<std::unique_ptr<sim::World>> world = Begin(story);
  if (!world.ok()) return world.status();
  replay::LogHeader header = story.header;
  absl::StatusOr<std::unique_ptr<replay::LogWriter>> writer = replay::LogWriter::Create(log, header);
  if (!writer.ok()) return writer.status();
  std::unique_ptr<sim::InvariantWatch> watch;
  if (const auto named = header.world.find(replay::kInvariantsKey); named != header.world.end() && named->is_array()) {
    std::vector<std::string> names;
    for (const json& name : *named) names.push_back(name.is_string() ? name.get<std::string>() : "");
    auto attached = sim::InvariantWatch::Attach(**world, names, {});
    if (!attached.ok()) return attached.status();
    watch = *std::move(attached);
  }
  const auto what =
      header.HoldsInputsAlone() ? replay::Recorder::What::kInputs : replay::Recorder::What::kInputsAndTrace;
  replay::Recorder recorder((*world)->kernel(), *std::move(writer), nullptr, what);
  const replay::LogInput* now = nullptr;
  // As it stood in the log that it came from: secrets are out of it already.
  Subscription inputs = (*world)->on_input.Add([&](uint64_t number, Time, const sim::Input& input) {
    recorder.Input(number, std::string(input.kind()), now->body).IgnoreError();
  });
  for (const replay::LogInput& input : story.inputs) {
    (*world)->RunUntil(input.at);
    now = &input;
    if (absl::Status status = DoAgain(**world, input); !status.ok()) return status;
  }
  (*world)->RunUntil(std::max(story.end, (*world)->Now()));
  inputs.Cancel();
  return recorder.Finish();
}

}  // namespace wavetank::check
