#include "capacity/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "capacity/sweep/sample.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "core/kube/yaml.h"
#include "scenarios/language/rows.h"

namespace wavetank::capacity {
namespace {

using scenario::Document;
using scenario::Field;
using scenario::FieldType;
using scenario::MappingRow;
namespace row = scenario::row;

// Results of another version of the evaluation are not this one's.
constexpr std::string_view kResults = "1";
constexpr int64_t kMostTasks = 1'000'000;

const MappingRow& SweepRow() {
  static const auto* const kRow =
      new MappingRow{"sweep",
                     "Fleets that differ in some settings",
                     {row::Other("fleet", FieldType::kPath, "A fleet's YAML, from this file's folder").Required(),
                      row::Choice("sample", {"grid", "random", "sobol"}, "All combinations, or some"),
                      row::Integer("points", 1, kMostTasks, "How many, if random or sobol"),
                      row::Integer("seeds", 1, 10'000, "Samples of the churn for each"),
                      row::Integer("seed", 0, INT64_MAX, "Of the sample of combinations"),
                      row::Other("over", FieldType::kObject,
                                 "Settings by their path in the fleet (istiod.debounceAfter), or `churn` for "
                                 "how many times as fast; a list of values each")
                          .Required()},
                     {}};
  return *kRow;
}

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

std::vector<std::vector<size_t>> Combinations(const Sweep& sweep) {
  std::vector<size_t> sizes;
  for (const SweepSetting& setting : sweep.settings) sizes.push_back(setting.values.size());
  switch (sweep.sample) {
    case Sweep::Sample::kGrid:
      return Grid(sizes);
    case Sweep::Sample::kRandom:
      return RandomSample(sizes, sweep.points, sweep.seed);
    case Sweep::Sample::kSobol:
      return SobolSample(sizes, sweep.points);
  }
  return {};
}

}  // namespace

absl::StatusOr<Sweep> LoadSweep(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Document>> document = Document::Load(path);
  if (!document.ok()) return document.status();
  const Field root = (*document)->root();
  CheckMapping(root, SweepRow(), nullptr);
  Sweep out;
  const std::string sample = root["sample"].OneOf({"grid", "random", "sobol"}, "grid");
  out.sample = sample == "grid"     ? Sweep::Sample::kGrid
               : sample == "random" ? Sweep::Sample::kRandom
                                    : Sweep::Sample::kSobol;
  out.points = root["points"].Integer(0, 1, kMostTasks);
  out.seeds = root["seeds"].Integer(1, 1, 10'000);
  out.seed = static_cast<uint64_t>(root["seed"].Integer(1, 0, INT64_MAX));
  if (out.sample == Sweep::Sample::kGrid && root["points"].present()) {
    root["points"].Fail("a grid has all combinations", "leave it out, or write sample: random");
  }
  if (out.sample != Sweep::Sample::kGrid && out.points == 0) root["sample"].Fail("needs points", "say how many");
  double combinations = 1;
  if (root["over"].present() && root["over"].IsMap()) {
    for (const auto& [name, field] : root["over"].Entries()) {
      SweepSetting setting{name, {}};
      for (const Field& item : field.Items()) setting.values.push_back(item.RequiredText());
      if (setting.values.empty()) field.Fail("has no values", "list some");
      combinations *= static_cast<double>(std::max<size_t>(1, setting.values.size()));
      out.settings.push_back(std::move(setting));
    }
  }
  if (out.settings.size() > kMostSobol && out.sample == Sweep::Sample::kSobol) {
    root["over"].Fail(fmt::format("has {} settings, and Sobol's sequence here {}", out.settings.size(), kMostSobol),
                      "take fewer, or sample: random");
  }
  if (out.sample == Sweep::Sample::kGrid && combinations * static_cast<double>(out.seeds) > kMostTasks) {
    root["over"].Fail("has more than a million combinations", "take sample: sobol and points");
  }
  if (!(*document)->status().ok()) return (*document)->status();
  out.fleet_path = (std::filesystem::path(path).parent_path() / root["fleet"].RequiredText()).string();
  std::ifstream in(out.fleet_path);
  if (!in) return absl::NotFoundError(fmt::format("{}: fleet {} cannot be read", path, out.fleet_path));
  std::ostringstream text;
  text << in.rdbuf();
  absl::StatusOr<nlohmann::json> fleet = kube::ParseYaml(text.str(), out.fleet_path);
  if (!fleet.ok()) return fleet.status();
  if (absl::StatusOr<Fleet> read = ParseFleet(out.fleet_path, text.str()); !read.ok()) return read.status();
  out.fleet = *std::move(fleet);
  return out;
}

absl::StatusOr<std::vector<SweepTask>> TasksOf(const Sweep& sweep, const Parameters& parameters) {
  std::vector<SweepTask> out;
  const std::string table = parameters.Text();
  for (const std::vector<size_t>& combination : Combinations(sweep)) {
    SweepTask task;
    nlohmann::json fleet = sweep.fleet;
    for (size_t i = 0; i < combination.size(); ++i) {
      const std::string& value = sweep.settings[i].values[combination[i]];
      task.values.push_back(value);
      if (sweep.settings[i].path == "churn") {
        if (!absl::SimpleAtod(value, &task.faster) || !(task.faster > 0 && task.faster <= 1e6)) {
          return absl::InvalidArgumentError(fmt::format("over: churn: '{}' is no factor; write 0.5 or 2", value));
        }
      } else {
        Set(&fleet, sweep.settings[i].path, value);
      }
    }
    task.fleet = fleet.dump();
    if (absl::StatusOr<Fleet> read = ParseFleet("fleet", task.fleet); !read.ok()) {
      std::string settings;
      for (size_t i = 0; i < combination.size(); ++i) {
        settings += fmt::format("{}{}={}", i == 0 ? "" : ", ", sweep.settings[i].path, task.values[i]);
      }
      return absl::InvalidArgumentError(
          fmt::format("over: {} with {}: {}", sweep.fleet_path, settings, Message(read.status())));
    }
    for (int64_t seed = 0; seed < sweep.seeds; ++seed) {
      task.seed = seed;
      const std::string text = fmt::format("{}\n{}\n{}\n{}\n{}", kResults, task.fleet, task.faster, seed, table);
      RandomStream one(1, text), two(2, text);  // 128 bits
      task.key = fmt::format("{:016x}{:016x}", one.Next(), two.Next());
      out.push_back(task);
    }
  }
  return out;
}

std::vector<std::string> ResultColumns() {
  return {"p50_ms",       "p90_ms",       "p99_ms",       "worst_ms",       "changes",
          "missing",      "cpus",         "memory_mb",    "kb_per_second",  "pushes_per_second",
          "full_share",   "merged_share", "most_waiting", "all_connect_ms", "istiod_recovery_ms",
          "extrapolates", "error"};
}

std::vector<std::string> FailedRow(const std::string& why) {
  std::vector<std::string> out(ResultColumns().size());
  out.back() = why;
  return out;
}

std::vector<std::string> RunTask(const SweepTask& task, const CostModel& model) {
  absl::StatusOr<Fleet> fleet = ParseFleet("fleet", task.fleet);
  if (!fleet.ok()) return FailedRow(std::string(Message(fleet.status())));
  fleet->seed += static_cast<uint64_t>(task.seed) * 7'919;
  const absl::StatusOr<Outcome> o = Evaluate(model, *fleet, 1, task.faster);
  if (!o.ok()) return FailedRow(std::string(Message(o.status())));
  return {Millis(o->p50),
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
          Extrapolates(o->mesh),
          ""};
}

}  // namespace wavetank::capacity
