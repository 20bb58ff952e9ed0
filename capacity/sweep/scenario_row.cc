#include "capacity/sweep/scenario_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "capacity/calibrate/samples.h"
#include "capacity/metrics/istiod_metrics.h"
#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "reports/report.h"
#include "scenarios/actions/action.h"
#include "scenarios/answers/moment.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"
#include "scenarios/runner/start.h"
#include "sim/world.h"

namespace wavetank::capacity {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Segments = std::span<const std::string>;

constexpr std::array<std::string_view, 10> kOfAll = {"passed",       "not_held", "sent",  "failed",          "retried",
                                                     "converged_ms", "pushes",   "nacks", "virtual_seconds", "digest"};

std::string Shown(double value) {
  if (std::nearbyint(value) == value && std::fabs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{:.6g}", value);
}

// All that `rest` leads to below `at`: fields by name, items by number, by `name` or `flow` (each that has it), or `*`.
void Collect(const Json& at, Segments rest, std::vector<const Json*>* out) {
  if (rest.empty()) return out->push_back(&at);
  if (!at.is_structured()) return;
  if (rest.front() == "*") {
    for (const Json& below : at) Collect(below, rest.subspan(1), out);
    return;
  }
  for (size_t many = rest.size(); many > 0; --many) {
    const std::string name = absl::StrJoin(rest.first(many), ".");
    if (at.is_object()) {
      if (const auto it = at.find(name); it != at.end()) return Collect(*it, rest.subspan(many), out);
      continue;
    }
    bool found = false;
    for (const Json& item : at) {
      for (const char* key : scenario::kItemNames) {
        if (!item.is_object() || !item.contains(key) || item[key] != name) continue;
        Collect(item, rest.subspan(many), out);
        found = true;
        break;
      }
    }
    if (found) return;
  }
  size_t index = 0;
  if (at.is_array() && absl::SimpleAtoi(rest.front(), &index) && index < at.size())
    Collect(at[index], rest.subspan(1), out);
}

double Taken(const std::string& take, const std::vector<double>& values) {
  if (take == "max") return *std::max_element(values.begin(), values.end());
  if (take == "min") return *std::min_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  return take == "mean" ? sum / static_cast<double>(values.size()) : sum;
}

absl::StatusOr<std::string> OfResult(const SweepColumn& column, const Json& result) {
  const absl::StatusOr<std::vector<std::string>> segments = scenario::PathSegments(column.result);
  if (!segments.ok()) return segments.status();
  std::vector<const Json*> found;
  Collect(result, *segments, &found);
  if (found.empty()) return column.otherwise;
  if (found.size() == 1 && found.front()->is_string()) return found.front()->get<std::string>();
  if (found.size() > 1 && column.take.empty()) {
    return absl::InvalidArgumentError(fmt::format("column '{}': {} leads to {} values; say take: sum, max, min or mean",
                                                  column.name, column.result, found.size()));
  }
  std::vector<double> values;
  for (const Json* value : found) {
    if (value->is_boolean()) {
      values.push_back(value->get<bool>() ? 1 : 0);
    } else if (value->is_number()) {
      values.push_back(value->get<double>());
    } else {
      return absl::InvalidArgumentError(
          fmt::format("column '{}': {} leads to no number; name a field below it", column.name, column.result));
    }
  }
  return Shown(Taken(column.take, values));
}

// As Prometheus' histogram_quantile: evenly within a bucket, the last finite bound beyond it. Nothing: nothing was
// seen.
std::optional<double> Quantile(const std::map<double, double>& cumulative, double quantile) {
  if (cumulative.empty() || cumulative.rbegin()->second <= 0) return std::nullopt;
  const double rank = quantile * cumulative.rbegin()->second;
  double below = 0, bound = 0;
  for (const auto& [upper, count] : cumulative) {
    if (count >= rank) {
      if (std::isinf(upper)) return bound;
      return count == below ? upper : bound + (upper - bound) * (rank - below) / (count - below);
    }
    below = count;
    bound = upper;
  }
  return bound;
}

std::string OfMetrics(const SweepColumn& column, const Samples& metrics) {
  std::vector<double> values;
  std::map<double, double> cumulative;
  const std::string name = column.metric + (column.quantile ? "_bucket" : "");
  metrics.ForEach(name, [&](const std::map<std::string, std::string>& labels, double value) {
    for (const auto& [label, wanted] : column.labels) {
      const auto it = labels.find(label);
      if (it == labels.end() || it->second != wanted) return;
    }
    values.push_back(value);
    double bound = 0;
    if (const auto le = labels.find("le"); column.quantile && le != labels.end()) {
      if (le->second == "+Inf")
        bound = INFINITY;
      else if (!absl::SimpleAtod(le->second, &bound))
        return;
      cumulative[bound] += value;
    }
  });
  if (column.quantile) {
    const std::optional<double> quantile = Quantile(cumulative, *column.quantile);
    return quantile ? Shown(*quantile) : column.otherwise;
  }
  return values.empty() ? column.otherwise : Shown(Taken(column.take, values));
}

SweepRow OfAll(const scenario::RunResult& result) {
  int64_t not_held = 0, sent = 0, failed = 0, retried = 0, pushes = 0, nacks = 0;
  Duration converged{};
  for (const scenario::StepResult& step : result.steps) {
    for (const scenario::ExpectationResult& e : step.expectations) not_held += e.held || e.symptom ? 0 : 1;
    for (const scenario::TrafficResult& t : step.traffic) sent += t.sent, failed += t.failed, retried += t.retried;
    converged = std::max(converged, step.convergence.Total());
  }
  for (const auto& [second, count] : result.pushes) pushes += count;
  for (const scenario::Nack& nack : result.nacks) nacks += nack.count;
  return {result.Passed() ? "1" : "0",
          std::to_string(not_held),
          std::to_string(sent),
          std::to_string(failed),
          std::to_string(retried),
          fmt::format("{:.3f}", ToMillis(converged)),
          std::to_string(pushes),
          std::to_string(nacks),
          fmt::format("{:.3f}", ToMillis(result.end.time_since_epoch()) / 1e3),
          result.digest};
}

// Where its runs end. Nothing: where they do by themselves.
absl::StatusOr<std::optional<scenario::Moment>> UntilOf(const Sweep& sweep, const scenario::Scenario& scenario) {
  if (sweep.until.empty()) return std::optional<scenario::Moment>();
  return scenario::ParseMoment("until", sweep.until, scenario.StepNames());
}

// A row that cannot be judged is none.
absl::Status CheckObjectives(const Sweep& sweep, const SweepRow& row) {
  const std::vector<std::string> columns = ScenarioColumns(sweep);
  for (const std::string& objective : sweep.objectives) {
    const auto at = static_cast<size_t>(std::find(columns.begin(), columns.end(), objective) - columns.begin());
    WAVETANK_ASSERT(at < row.size(), at, row.size(), objective);
    double value = 0;
    if (absl::SimpleAtod(row[at], &value)) continue;
    return absl::InvalidArgumentError(
        fmt::format("objective '{}' is {}; let its column say `otherwise`, or take another", objective,
                    row[at].empty() ? "empty" : fmt::format("no number: '{}'", row[at])));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> ScenarioColumns(const Sweep& sweep) {
  std::vector<std::string> out(kOfAll.begin(), kOfAll.end());
  for (const SweepColumn& column : sweep.columns) out.push_back(column.name);
  return out;
}

absl::StatusOr<scenario::Scenario> SweptScenario(const Sweep& sweep, const std::vector<scenario::Setting>& settings) {
  absl::StatusOr<scenario::Scenario> out = scenario::LoadScenario(sweep.scenario_path, {}, settings);
  if (!out.ok()) return out;
  if (const auto until = UntilOf(sweep, *out); !until.ok()) return until.status();
  // Profiles, rows of timing and lines are looked at where a world is made.
  if (const auto world = sim::World::Create(scenario::MakeWorldOptions(*out)); !world.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}{}: {}", scenario::With(settings), sweep.scenario_path, Message(world.status())));
  }
  return out;
}

absl::Status CheckManifestsOf(const scenario::Scenario& scenario) { return scenario::MakeStart(scenario).status(); }

std::vector<std::string> FilesOf(const scenario::Scenario& scenario) {
  std::set<std::string> out = {scenario.file};
  const auto add = [&](const std::string& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      out.insert(path);
      return;
    }
    for (fs::recursive_directory_iterator it(path, error), end; it != end; it.increment(error)) {
      if (it->is_regular_file(error)) out.insert(it->path().string());
    }
  };
  if (const auto document = scenario::Document::Load(scenario.file); document.ok()) {
    if (const scenario::Field extends = (*document)->root()["extends"]; extends.present())
      add((fs::path(scenario.file).parent_path() / extends.Text()).lexically_normal().string());
  }
  for (const scenario::ClusterSpec& cluster : scenario.clusters) {
    for (const scenario::ManifestSpec& manifest : cluster.manifests) {
      if (!manifest.path.empty()) add(manifest.path);
    }
  }
  for (const scenario::Step& step : scenario.steps) {
    for (const scenario::Action& action : step.actions) {
      const scenario::ActionKind* const kind = scenario::FindAction(action.kind);
      for (const scenario::FieldRow& field : kind->row.fields) {
        if (field.type != scenario::FieldType::kPath) continue;
        if (const std::string path = TextOf(At(action.arguments, field.name)); !path.empty()) add(path);
      }
    }
  }
  return {out.begin(), out.end()};
}

absl::StatusOr<SweepRow> RunScenario(const Sweep& sweep, const SweepTask& task) {
  const absl::StatusOr<scenario::Scenario> scenario = scenario::LoadScenario(sweep.scenario_path, {}, task.settings);
  if (!scenario.ok()) return scenario.status();
  scenario::RunOptions options;
  options.seed = static_cast<uint64_t>(task.seed);
  options.last = true;
  absl::StatusOr<std::optional<scenario::Moment>> until = UntilOf(sweep, *scenario);
  if (!until.ok()) return until.status();
  options.until = *std::move(until);
  IstiodMetrics metrics;
  std::string scraped;
  const bool measured =
      std::any_of(sweep.columns.begin(), sweep.columns.end(), [](const SweepColumn& c) { return !c.metric.empty(); });
  if (measured) {
    options.on_world = [&](sim::World& world) { metrics.Observe(world.kernel()); };
    options.on_end = [&](sim::World&) { scraped = metrics.Text(); };
  }
  const absl::StatusOr<scenario::RunResult> result = scenario::Run(*scenario, options);
  if (!result.ok()) return result.status();
  SweepRow out = OfAll(*result);
  if (sweep.columns.empty()) return out;
  const absl::StatusOr<Samples> samples = Samples::Parse(scraped, "metrics");
  if (!samples.ok()) return samples.status();
  const Json json = report::ResultsJson(*result);
  for (const SweepColumn& column : sweep.columns) {
    if (!column.metric.empty()) {
      out.push_back(OfMetrics(column, *samples));
      continue;
    }
    absl::StatusOr<std::string> cell = OfResult(column, json);
    if (!cell.ok()) return cell.status();
    out.push_back(*std::move(cell));
  }
  if (absl::Status status = CheckObjectives(sweep, out); !status.ok()) return status;
  return out;
}

}  // namespace wavetank::capacity
