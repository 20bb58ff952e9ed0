#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/questions/questions.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/status.h"
#include "core/debug/log_scopes.h"
#include "fmt/format.h"
#include "replay/component_log.h"
#include "replay/event_log.h"
#include "replay/world_target.h"
#include "sim/agent/pod_agent.h"
#include "sim/pod_process.h"
#include "sim/world_site.h"

namespace wavetank::cli {
namespace {

struct LogsArguments {
  std::string log, component, since;
  bool json = false;
};

// Every event of the log, in order.
absl::Status ForEachEvent(const std::string& path, const std::function<void(const replay::LoggedEvent&)>& tell,
                          replay::LogHeader* header) {
  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(path);
  if (!log.ok()) return log.status();
  *header = (*log)->header();
  while (true) {
    absl::StatusOr<replay::LogReader::Item> item = (*log)->Next();
    if (!item.ok()) return item.status();
    if (*item == replay::LogReader::Item::kEnd) return absl::OkStatus();
    if (*item == replay::LogReader::Item::kEvent) tell((*log)->event());
  }
}

// Does what the log says was done, until it ends.
absl::Status RunAgain(replay::LogReader& log, replay::WorldTarget& target) {
  Time end{};
  while (true) {
    absl::StatusOr<replay::LogReader::Item> item = log.Next();
    if (!item.ok()) return item.status();
    if (*item == replay::LogReader::Item::kEnd) break;
    if (*item == replay::LogReader::Item::kEvent) end = log.event().time;
    if (*item != replay::LogReader::Item::kInput) continue;
    target.AdvanceTo(log.input().at);
    if (absl::Status status = target.Do(log.input()); !status.ok()) return status;
  }
  target.AdvanceTo(end);
  return absl::OkStatus();
}

// What processes say themselves, which no event holds.
struct OwnLines {
  using Lines = std::vector<std::pair<Time, std::string>>;
  std::map<std::string, Lines> of;  // istiods and proxies by their names
  // What of istiods' lines is printed, those that events tell among them; of istiods that have gone, too.
  std::map<std::string, std::shared_ptr<debug::LogScopes>> scopes;
};

// The run happens again. Of a log that cannot run without the manifests' keys, or is a recording's, there is nothing,
// which is said.
OwnLines RunForLines(const std::string& path) {
  OwnLines out;
  const auto run = [&]() -> absl::Status {
    absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(path);
    if (!log.ok()) return log.status();
    if ((*log)->header().IsRecording())
      return absl::UnimplementedError("it is a recording, which no process of ours made");
    replay::WorldTarget target;
    target.ComesFrom(path);
    if (absl::Status status = target.Start((*log)->header(), [](const replay::LoggedEvent&) {}); !status.ok())
      return status;
    target.world()->on_istiod_log = [&, world = target.world()](const std::string& istiod, Time at,
                                                                const LogLine& line) {
      out.of[istiod].emplace_back(at, replay::LineOf(at, line));
      if (out.scopes.contains(istiod)) return;
      if (const auto* const its = sim::LogOfIstiod(*world, istiod); its != nullptr) out.scopes[istiod] = its->scopes;
    };
    if (absl::Status status = RunAgain(**log, target); !status.ok()) return status;
    for (const sim::PodProcess* pod : target.world()->Pods()) {
      if (pod->pod_agent() == nullptr) continue;
      OwnLines::Lines& lines = out.of[pod->name()];
      lines.assign(pod->pod_agent()->log().begin(), pod->pod_agent()->log().end());
    }
    target.world()->on_istiod_log = nullptr;
    return absl::OkStatus();
  };
  if (const absl::Status status = run(); !status.ok()) {
    out.of.clear();
    std::cerr << "note: what processes say of their start, of elections and failures is left out: " << Message(status)
              << "\n";
  }
  return out;
}

int PrintLogs(const LogsArguments& a) {
  std::optional<Duration> since;
  if (!a.since.empty()) {
    since = ParseDuration(a.since);
    if (!since)
      return Complain(absl::InvalidArgumentError(
          fmt::format("--since '{}' is no duration; write 30s: the last 30 seconds of the log", a.since)));
  }
  replay::LogHeader header;
  replay::ComponentNames names;
  Time end{};
  absl::Status read = ForEachEvent(
      a.log,
      [&](const replay::LoggedEvent& event) {
        names.Add(event);
        end = event.time;
      },
      &header);
  if (!read.ok()) return Complain(read);
  if (header.HoldsInputsAlone()) {
    return Complain(absl::InvalidArgumentError(
        fmt::format("{}: holds what was done alone, no events; `wavetank run --from {} -o FILE` makes a log that does",
                    a.log, a.log)));
  }
  OwnLines own = RunForLines(a.log);
  for (const auto& [name, lines] : own.of) {
    if (name.find('@') != std::string::npos) names.AddProxy(name);
  }
  const absl::StatusOr<std::string> component = names.Find(a.component);
  if (!component.ok()) return Complain(component.status());
  // In the order of time; what the process says of itself stands before what events of that instant say of it.
  OwnLines::Lines all = own.of[*component];
  replay::ComponentLog lines(
      *component, [&](Time at, const std::string& line) { all.emplace_back(at, line); }, own.of.empty());
  read = ForEachEvent(
      a.log, [&](const replay::LoggedEvent& event) { lines.Add(event); }, &header);
  std::stable_sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  const auto scopes = own.scopes.find(*component);
  for (const auto& [at, line] : all) {
    if (scopes != own.scopes.end() && !scopes->second->Printed(at, line)) continue;
    if (!since || end - at <= *since) std::cout << (a.json ? replay::AsJson(line) : line) << "\n";
  }
  return read.ok() ? WithWholeness(kOk, a.log) : Complain(read);
}

}  // namespace

void AddLogs(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "logs", "Prints what an istiod, or a pod's agent and Envoy, of an event log would have logged");
  auto a = std::make_shared<LogsArguments>();
  verb->add_option("log", a->log, "Event log, as written by `wavetank run -o`")->required();
  verb->add_option("component", a->component,
                   "`istiod`, `istiod@cluster1`, a pod by its name, or as far as it is unique: sleep@cluster1")
      ->required();
  verb->add_option("--since", a->since, "Only so much of the log's end, e.g. 30s");
  verb->add_flag("--log_as_json", a->json, "As with this argument of istiod and agents");
  verb->footer("Formats are those of Istio 1.18.2; what events do not hold is left out (docs/logs.md).");
  verb->callback([a, &outcome] { outcome.code = PrintLogs(*a); });
}

}  // namespace wavetank::cli
