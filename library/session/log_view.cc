#include "library/session/log_view.h"

#include <string>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/trace_names.h"

namespace wavetank::session {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr int kMostKind = 1000;  // sim/invariants/invariant.h has the largest, 900

int64_t Nanoseconds(Time time) { return time.time_since_epoch().count(); }

ordered_json HeaderRow(const replay::LogHeader& header) {
  return {{"seed", header.seed},
          {"profile", header.profile},
          {"scenario", header.scenario_name},
          {"version", header.program_version},
          {"recording", header.HoldsInputsAlone()},
          {"beginningNs", Nanoseconds(header.Beginning())}};
}

ordered_json InputRow(const replay::LogInput& input) {
  return {{"number", input.seq}, {"atNs", Nanoseconds(input.at)}, {"kind", input.kind}, {"body", input.body}};
}

}  // namespace

ordered_json EventRow(const replay::LoggedEvent& event, Time beginning) {
  return {{"index", event.index},
          {"atNs", (event.time - beginning).count()},
          {"kind", TraceKindName(event.kind)},
          {"subject", event.subject},
          {"object", event.object},
          {"detail", event.detail},
          {"a", event.a},
          {"b", event.b},
          {"inputs", event.inputs}};
}

absl::Status CheckEventKind(const std::string& kind) {
  if (kind.empty()) return absl::OkStatus();
  std::string all;
  for (int number = 0; number <= kMostKind; ++number) {
    const std::string name = TraceKindName(static_cast<TraceKind>(number));
    if (name == kind) return absl::OkStatus();
    if (name.find(' ') == std::string::npos) all += (all.empty() ? "" : ", ") + name;
  }
  return absl::InvalidArgumentError("no kind of event is called '" + kind + "'; one of " + all);
}

absl::StatusOr<ordered_json> LogView::Read(const json& request) {
  if (At(request, "path").is_string()) {
    absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(Text(request, "path"));
    if (!log.ok()) return log.status();
    log_ = *std::move(log);
    return ordered_json{{"header", HeaderRow(log_->header())}};
  }
  if (log_ == nullptr) return absl::FailedPreconditionError("no log is open; name one in 'path' first");
  const std::string kind = Text(request, "kind"), subject = Text(request, "subject"), only = Text(request, "only");
  if (!only.empty() && only != "inputs" && only != "events")
    return absl::InvalidArgumentError("'only' is inputs or events");
  if (absl::Status known = CheckEventKind(only == "events" ? kind : ""); !known.ok()) return known;
  const int64_t limit = Number(request, "limit", 10'000);
  if (limit < 1 || limit > 1'000'000) return absl::InvalidArgumentError("'limit' is no number, 1 to 1000000");
  ordered_json inputs = ordered_json::array(), events = ordered_json::array();
  bool end = false;
  while (static_cast<int64_t>(inputs.size() + events.size()) < limit) {
    const absl::StatusOr<replay::LogReader::Item> item = log_->Next();
    if (!item.ok()) return item.status();
    if (end = *item == replay::LogReader::Item::kEnd; end) break;
    if (*item == replay::LogReader::Item::kInput && only != "events") {
      if (kind.empty() || log_->input().kind == kind) inputs.push_back(InputRow(log_->input()));
    } else if (*item == replay::LogReader::Item::kEvent && only != "inputs") {
      const replay::LoggedEvent& event = log_->event();
      if ((kind.empty() || TraceKindName(event.kind) == kind) && (subject.empty() || event.subject == subject))
        events.push_back(EventRow(event));
    }
  }
  return ordered_json{{"inputs", std::move(inputs)}, {"events", std::move(events)}, {"end", end}};
}

}  // namespace wavetank::session
