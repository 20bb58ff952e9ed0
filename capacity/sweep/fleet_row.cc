#include "capacity/sweep/fleet_row.h"

#include <fmt/format.h>

#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/bounds.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/read_up_to.h"
#include "core/kube/yaml.h"

namespace wavetank::capacity {
namespace {

// `value` at `path`, mappings made on the way.
void Set(nlohmann::json* fleet, const std::string& path, const std::string& value) {
  const std::vector<std::string> keys = absl::StrSplit(path, '.');
  nlohmann::json* at = fleet;
  for (const std::string& key : keys) {
    if (!at->is_object()) *at = nlohmann::json::object();
    at = &(*at)[key];
  }
  int64_t number = 0;
  *at = absl::SimpleAtoi(value, &number) ? nlohmann::json(number) : nlohmann::json(value);
}

std::string Millis(Duration d) { return fmt::format("{:.3f}", ToMillis(d)); }

}  // namespace

const std::vector<std::string>& FleetObjectives() {
  static const auto* const kObjectives = new std::vector<std::string>{"p99_ms", "cpus", "memory_mb"};
  return *kObjectives;
}

std::vector<std::string> FleetColumns() {
  return {"p50_ms",      "p90_ms",       "p99_ms",       "worst_ms",       "changes",
          "missing",     "cpus",         "memory_mb",    "kb_per_second",  "pushes_per_second",
          "full_share",  "merged_share", "most_waiting", "all_connect_ms", "istiod_recovery_ms",
          "extrapolates"};
}

absl::Status ReadFleet(const std::string& path, Sweep* out) {
  std::ifstream in(out->fleet_path);
  if (!in) return absl::NotFoundError(fmt::format("{}: fleet {} cannot be read", path, out->fleet_path));
  const std::string text = ReadUpTo(in, bounds::kScenarioBytes + 1);
  absl::StatusOr<nlohmann::json> fleet = kube::ParseYaml(text, out->fleet_path);
  if (!fleet.ok()) return fleet.status();
  if (absl::StatusOr<Fleet> read = ParseFleet(out->fleet_path, text); !read.ok()) return read.status();
  out->fleet = *std::move(fleet);
  return absl::OkStatus();
}

absl::StatusOr<SweepTask> FleetTask(const Sweep& sweep, SweepTask task) {
  nlohmann::json fleet = sweep.fleet;
  std::string settings;
  for (size_t i = 0; i < task.values.size(); ++i) {
    const std::string& path = sweep.settings[i].path;
    const std::string& value = task.values[i];
    settings += fmt::format("{}{}={}", i == 0 ? "" : ", ", path, value);
    if (path != "churn") {
      Set(&fleet, path, value);
    } else if (!absl::SimpleAtod(value, &task.faster) || !(task.faster > 0 && task.faster <= 1e6)) {
      return absl::InvalidArgumentError(fmt::format("over: churn: '{}' is no factor; write 0.5 or 2", value));
    }
  }
  task.fleet = JsonText(fleet);
  if (absl::StatusOr<Fleet> read = ParseFleet("fleet", task.fleet); !read.ok()) {
    // Its place would be one in the line that the fleet is here.
    std::string_view why = Message(read.status());
    if (why.starts_with("fleet:1:")) why.remove_prefix(why.find(": ") + 2);
    return absl::InvalidArgumentError(fmt::format("over: {} with {}: {}", sweep.fleet_path, settings, why));
  }
  return task;
}

absl::StatusOr<SweepRow> RunFleet(const SweepTask& task, const CostModel& model) {
  absl::StatusOr<Fleet> fleet = ParseFleet("fleet", task.fleet);
  if (!fleet.ok()) return fleet.status();
  fleet->seed += static_cast<uint64_t>(task.seed) * 7'919;
  const absl::StatusOr<Outcome> o = Evaluate(model, *fleet, 1, task.faster);
  if (!o.ok()) return o.status();
  return SweepRow{Millis(o->p50),
                  Millis(o->p90),
                  Millis(o->p99),
                  Millis(o->worst),
                  std::to_string(o->changes),
                  std::to_string(o->missing),
                  fmt::format("{:.6g}", o->cpus),
                  fmt::format("{:.6g}", o->after_full_mb),
                  fmt::format("{:.6g}", o->kilobytes_per_second),
                  fmt::format("{:.6g}", o->pushes_per_second),
                  fmt::format("{:.6g}", o->full_share),
                  fmt::format("{:.6g}", o->merged_share),
                  std::to_string(o->most_waiting),
                  Millis(o->all_connect),
                  Millis(o->istiod_recovery),
                  Extrapolates(o->mesh)};
}

}  // namespace wavetank::capacity
