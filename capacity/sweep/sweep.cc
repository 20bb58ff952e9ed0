#include "capacity/sweep/sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "capacity/sweep/fleet_row.h"
#include "capacity/sweep/sample.h"
#include "capacity/sweep/scenario_row.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "scenarios/language/rows.h"
#include "scenarios/language/scenario.h"

namespace wavetank::capacity {
namespace {

using scenario::Document;
using scenario::Field;
using scenario::FieldType;
using scenario::MappingRow;
namespace row = scenario::row;

constexpr int64_t kMostTasks = 1'000'000;
constexpr size_t kMostObjectives = 6;

const MappingRow& SweepMapping() {
  static const auto* const kRow = new MappingRow{
      "sweep",
      "Fleets, or runs of a scenario, that differ in some settings",
      {row::Other("fleet", FieldType::kPath, "A fleet's YAML, from this file's folder"),
       row::Other("scenario", FieldType::kPath, "A scenario's file or folder, from this file's folder"),
       row::Text("until", "Of a scenario: where each run ends, as `run --until` takes it"),
       row::Mappings("columns", "column", "Of a scenario: what the table has besides"),
       row::Other("objectives", FieldType::kTexts, "Of a scenario: columns in which less is better"),
       row::Choice("sample", {"grid", "random", "sobol"}, "All combinations, or some"),
       row::Integer("points", 1, kMostTasks, "How many, if random or sobol"),
       row::Integer("seeds", 1, 10'000, "Samples of the churn for each, or seeds from the scenario's on"),
       row::Integer("seed", 0, INT64_MAX, "Of the sample of combinations"),
       row::Other("over", FieldType::kObject,
                  "Settings by their path in the fleet (istiod.debounceAfter) or the scenario "
                  "(timing.istiod.debounce_after), or `churn` for how many times as fast; a list of values each")
           .Required()},
      {"fleet", "scenario"}};
  return *kRow;
}

const MappingRow& ColumnMapping() {
  static const auto* const kRow = new MappingRow{
      "column",
      "Something that a run found",
      {row::Text("name", "What the column is called").Required(),
       row::Text("result", "A path in its results (docs/results.schema.json): steps.scaled to 3.convergence.totalMs"),
       row::Text("metric", "A series of the istiods' metrics at its end (docs/capacity.md)"),
       row::Other("labels", FieldType::kTextMap, "That the series has"),
       row::Other("quantile", FieldType::kShare, "Of a histogram, in seconds"),
       row::Choice("take", {"sum", "max", "min", "mean"}, "Of several values; the sum of series if left out"),
       row::Text("otherwise", "Where there is nothing")},
      {"result", "metric"}};
  return *kRow;
}

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

std::vector<std::string> ValuesOf(const Sweep& sweep, const std::vector<size_t>& combination) {
  std::vector<std::string> out;
  for (size_t i = 0; i < combination.size(); ++i) out.push_back(sweep.settings[i].values[combination[i]]);
  return out;
}

void ReadColumns(const Field& root, Sweep* out) {
  std::set<std::string> names;
  for (const std::string& name : ScenarioColumns(*out)) names.insert(name);
  names.insert({"seed", "error"});
  for (const Field& f : root["columns"].Items()) {
    CheckMapping(f, ColumnMapping(), nullptr);
    SweepColumn column;
    column.name = f["name"].Text();
    if (!names.insert(column.name).second) f["name"].Fail("is another column's already", "take another name");
    column.result = f["result"].Text();
    column.metric = f["metric"].Text();
    for (const auto& [label, value] : f["labels"].Entries()) column.labels[label] = value.Text();
    if (f["quantile"].present()) column.quantile = static_cast<double>(f["quantile"].Share(0)) / 1e6;
    column.take = f["take"].Text();
    column.otherwise = f["otherwise"].Text();
    if (column.metric.empty() && (column.quantile || !column.labels.empty()))
      f.Fail("labels and quantile are of a metric", "leave them out, or name a metric");
    if (column.quantile && !column.take.empty()) f["take"].Fail("a quantile is one value", "leave it out");
    if (!column.result.empty()) {
      if (const auto path = scenario::PathSegments(column.result); !path.ok()) f["result"].Fail(Message(path.status()));
    }
    out->columns.push_back(std::move(column));
  }
}

void ReadObjectives(const Field& root, Sweep* out) {
  const std::vector<std::string> known = ScenarioColumns(*out);
  for (const Field& f : root["objectives"].Items()) {
    if (std::find(known.begin(), known.end(), f.Text()) == known.end() || f.Text() == "digest") {
      f.Fail(fmt::format("no column with numbers is called '{}'", f.Text()),
             fmt::format("there are {}", fmt::join(known, ", ")));
    }
    out->objectives.push_back(f.Text());
  }
  if (out->objectives.size() > kMostObjectives)
    root["objectives"].Fail(fmt::format("has {} columns", out->objectives.size()),
                            fmt::format("take {} at the most", kMostObjectives));
  if (out->objectives.empty()) out->objectives = {"failed", "converged_ms"};
}

std::string KeyOf(const std::string& text) {
  RandomStream one(1, text), two(2, text);  // 128 bits
  return fmt::format("{:016x}{:016x}", one.Next(), two.Next());
}

// The bytes of files, each read once.
class Contents {
 public:
  const std::string& Of(const std::string& path) {
    const auto [it, fresh] = known_.try_emplace(path);
    if (fresh) {
      std::ifstream in(path, std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      it->second = text.str();
    }
    return it->second;
  }

 private:
  std::map<std::string, std::string> known_;
};

// What the columns are made of.
std::string ColumnText(const Sweep& sweep) {
  std::string out = sweep.until;
  for (const SweepColumn& c : sweep.columns) {
    out += fmt::format("\n{}\t{}\t{}\t{}\t{}\t{}", c.name, c.result, c.metric, c.quantile.value_or(-1), c.take,
                       c.otherwise);
    for (const auto& [label, value] : c.labels) out += fmt::format("\t{}={}", label, value);
  }
  return out;
}

absl::StatusOr<std::vector<SweepTask>> FleetTasks(const Sweep& sweep, const Parameters& parameters) {
  std::vector<SweepTask> out;
  const std::string table = parameters.Text();
  for (const std::vector<size_t>& combination : Combinations(sweep)) {
    absl::StatusOr<SweepTask> task = FleetTask(sweep, {.values = ValuesOf(sweep, combination)});
    if (!task.ok()) return task.status();
    for (int64_t seed = 0; seed < sweep.seeds; ++seed) {
      task->seed = seed;
      task->key = KeyOf(fmt::format("{}\n{}\n{}\n{}\n{}", kFleetResults, task->fleet, task->faster, seed, table));
      out.push_back(*task);
    }
  }
  return out;
}

absl::StatusOr<std::vector<SweepTask>> ScenarioTasks(const Sweep& sweep, std::string_view program) {
  std::vector<SweepTask> out;
  const auto over = [](const absl::Status& status) {
    return absl::InvalidArgumentError(fmt::format("over: {}", Message(status)));
  };
  // What one setting breaks is told before anything runs, manifests included; how they go together each run sees.
  for (const SweepSetting& setting : sweep.settings) {
    for (const std::string& value : setting.values) {
      const absl::StatusOr<scenario::Scenario> alone = SweptScenario(sweep, {{setting.path, value}});
      if (!alone.ok()) return over(alone.status());
      if (absl::Status status = CheckManifestsOf(*alone); !status.ok()) return over(status);
    }
  }
  Contents contents;
  const std::string columns = ColumnText(sweep);
  for (const std::vector<size_t>& combination : Combinations(sweep)) {
    SweepTask task{.values = ValuesOf(sweep, combination)};
    for (size_t i = 0; i < task.values.size(); ++i) task.settings.push_back({sweep.settings[i].path, task.values[i]});
    const absl::StatusOr<scenario::Scenario> scenario = SweptScenario(sweep, task.settings);
    if (!scenario.ok()) return over(scenario.status());
    std::string text = fmt::format("{}\n{}\n{}", program, columns, fmt::join(scenario->settings, "\n"));
    for (const std::string& file : FilesOf(*scenario)) {
      const std::string& bytes = contents.Of(file);
      text += fmt::format("\n{} {}\n", std::filesystem::path(file).filename().string(), bytes.size()) + bytes;
    }
    for (int64_t seed = 0; seed < sweep.seeds; ++seed) {
      task.seed = static_cast<int64_t>(scenario->seed) + seed;
      task.key = KeyOf(fmt::format("{}\nseed {}", text, task.seed));
      out.push_back(task);
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<Sweep> LoadSweep(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Document>> document = Document::Load(path);
  if (!document.ok()) return document.status();
  const Field root = (*document)->root();
  CheckMapping(root, SweepMapping(), nullptr);
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
      if (field.IsMap()) {
        field.Fail("is no list", "list its values, as [50ms, 100ms, 500ms]; random and sobol draw of those, too");
        continue;
      }
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
  const auto there = [&](const char* key) {
    return (std::filesystem::path(path).parent_path() / root[key].Text()).lexically_normal().string();
  };
  const bool of_scenario = root["scenario"].present();
  if (of_scenario) {
    out.until = root["until"].Text();
    ReadColumns(root, &out);
    ReadObjectives(root, &out);
  } else {
    for (const char* key : {"until", "columns", "objectives"}) {
      if (root[key].present()) root[key].Fail("is of a scenario's runs; a fleet's table is what it is", "leave it out");
    }
    out.objectives = FleetObjectives();
  }
  if (!(*document)->status().ok()) return (*document)->status();
  if (!of_scenario) {
    out.fleet_path = there("fleet");
    if (absl::Status status = ReadFleet(path, &out); !status.ok()) return status;
    return out;
  }
  out.scenario_path = there("scenario");
  const absl::StatusOr<scenario::Scenario> plain = SweptScenario(out, {});
  if (!plain.ok()) return plain.status();
  if (absl::Status status = CheckManifestsOf(*plain); !status.ok()) return status;
  return out;
}

absl::StatusOr<std::vector<SweepTask>> TasksOf(const Sweep& sweep, const Parameters& parameters,
                                               std::string_view program) {
  return sweep.of_scenario() ? ScenarioTasks(sweep, program) : FleetTasks(sweep, parameters);
}

std::vector<std::string> ResultColumns(const Sweep& sweep) {
  std::vector<std::string> out = sweep.of_scenario() ? ScenarioColumns(sweep) : FleetColumns();
  out.emplace_back("error");
  return out;
}

SweepRow FailedRow(const Sweep& sweep, const std::string& why) {
  SweepRow out(ResultColumns(sweep).size());
  out.back() = why;
  return out;
}

SweepRow RunTask(const Sweep& sweep, const SweepTask& task, const CostModel& model) {
  absl::StatusOr<SweepRow> out = sweep.of_scenario() ? RunScenario(sweep, task) : RunFleet(task, model);
  if (!out.ok()) return FailedRow(sweep, std::string(Message(out.status())));
  out->emplace_back();
  return *std::move(out);
}

}  // namespace wavetank::capacity
