#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/questions/questions.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "fmt/format.h"
#include "replay/component_log.h"
#include "replay/event_log.h"

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
  const absl::StatusOr<std::string> component = names.Find(a.component);
  if (!component.ok()) return Complain(component.status());
  replay::ComponentLog lines(*component, [&](Time at, const std::string& line) {
    if (!since || end - at <= *since) std::cout << (a.json ? replay::AsJson(line) : line) << "\n";
  });
  read = ForEachEvent(
      a.log, [&](const replay::LoggedEvent& event) { lines.Add(event); }, &header);
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
