#include "replay/world_target.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "core/base/status.h"
#include "core/base/text/shell_word.h"
#include "fmt/format.h"
#include "replay/recorder.h"
#include "sim/inputs/input.h"
#include "sim/invariants/watch.h"

namespace wavetank::replay {

void DescribeWorld(const sim::World& world, LogHeader* header) {
  header->seed = world.options().seed;
  header->profile = world.options().profile;
  header->world = world.options().ToJson();
}

WorldTarget::WorldTarget() = default;
WorldTarget::WorldTarget(SecretSource secrets) : secrets_(std::move(secrets)) {}
WorldTarget::~WorldTarget() {
  watches_.clear();  // they look at the world
}

std::vector<sim::Violation> WorldTarget::Violations() {
  std::vector<sim::Violation> out;
  for (const auto& watch : watches_) {
    watch->LookNow();
    out.insert(out.end(), watch->violations().begin(), watch->violations().end());
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  return out;
}

absl::Status WorldTarget::Start(const LogHeader& header, Sink sink) {
  absl::StatusOr<sim::WorldOptions> options = sim::WorldOptions::FromJson(header.world);
  if (!options.ok()) return options.status();
  absl::StatusOr<std::unique_ptr<sim::World>> world = sim::World::Create(*options);
  if (!world.ok()) return world.status();
  world_ = *std::move(world);
  if (!log_.empty()) world_->kernel().run().set_reproduce("wavetank replay " + ShellWord(log_));
  header_ = header;
  sim::Kernel& kernel = world_->kernel();
  // What the world's making emitted was not recorded either: a log's events count from there.
  const uint64_t made = kernel.digest().records();
  kernel.AddObserver([&kernel, made, sink = std::move(sink)](const sim::TraceEvent& event) {
    LoggedEvent logged = Logged(kernel, event);
    logged.index -= made;
    sink(logged);
  });
  std::vector<std::string> own;
  if (const auto named = header.world.find(kInvariantsKey); named != header.world.end() && named->is_array()) {
    for (const nlohmann::json& name : *named) own.push_back(name.is_string() ? name.get<std::string>() : "");
  }
  std::erase_if(more_invariants_,
                [&](const auto& name) { return std::find(own.begin(), own.end(), name) != own.end(); });
  for (const bool of_log : {true, false}) {
    const std::vector<std::string>& names = of_log ? own : more_invariants_;
    if (names.empty()) continue;
    absl::StatusOr<std::unique_ptr<sim::InvariantWatch>> watch =
        sim::InvariantWatch::Attach(*world_, names, {.in_trace = of_log});
    if (!watch.ok()) return watch.status();
    watches_.push_back(*std::move(watch));
  }
  return absl::OkStatus();
}

absl::StatusOr<sim::Input> InputOf(const LogHeader& header, LogInput input, const SecretSource& secrets) {
  if (absl::Status restored = RestoreSecrets(header, secrets, &input); !restored.ok()) return restored;
  return sim::Input::Parse(input.kind, input.body);
}

absl::Status WorldTarget::Do(const LogInput& input) {
  const absl::StatusOr<sim::Input> again = InputOf(header_, input, secrets_);
  if (!again.ok()) return again.status();
  // What a live world refused when it was recorded changed nothing then, and is refused again.
  world_->Do(*again).IgnoreError();
  return absl::OkStatus();
}

bool LooksLikeLog(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(15, '\0');
  return file.read(head.data(), 15) && head == "SQLite format 3";
}

absl::StatusOr<std::unique_ptr<sim::World>> WorldOfLog(LogReader& log, std::optional<Duration> until) {
  absl::StatusOr<LogReader::Summary> summary = VerifyUsable(log);
  if (!summary.ok()) return summary.status();
  WorldTarget target;
  target.ComesFrom(log.path());
  if (absl::Status status = target.Start(log.header(), [](const LoggedEvent&) {}); !status.ok()) return status;
  Time end = summary->end;
  if (until) end = std::min(end, target.world()->options().start + *until);
  while (true) {
    absl::StatusOr<LogReader::Item> item = log.Next();
    if (!item.ok()) return item.status();
    if (*item == LogReader::Item::kEnd) break;
    if (*item != LogReader::Item::kInput) continue;
    const LogInput& input = log.input();
    if (input.at > end) break;
    target.AdvanceTo(input.at);
    if (absl::Status status = target.Do(input); !status.ok()) {
      return absl::Status(status.code(), fmt::format("{}: {}: {}", log.path(),
                                                     Describe(input, log.header().Beginning()), Message(status)));
    }
  }
  target.AdvanceTo(until ? target.world()->options().start + *until : end);
  std::unique_ptr<sim::World> world = target.TakeWorld();
  if (log.header().HoldsInputsAlone() && !until) world->RunUntilSettled(world->Now() + kRecordingSettles);
  return world;
}

}  // namespace wavetank::replay
