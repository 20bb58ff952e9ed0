#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cli/verb.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "scenarios/survey/timing_comparison.h"
#include "sim/timing.h"

namespace wavetank::cli {
namespace {

constexpr char kMeasured[] = "capacity/data/measured.csv";

struct TimingArguments {
  bool json = false, compare = false, costs = false;
  std::string data, parameters;
  std::vector<std::string> set;
  scenario::TimingComparisonOptions options;
};

std::string Ratio(Duration predicted, Duration measured) {
  return measured.count() == 0 ? "-" : fmt::format("{:.2f}", ToMillis(predicted) / ToMillis(measured));
}
std::string Pair(Duration predicted, Duration measured) {
  return fmt::format("{:.1f} / {:.1f}", ToMillis(predicted), ToMillis(measured));
}

nlohmann::ordered_json Json(const scenario::TimingFigures& f) {
  const auto arrival = [](const scenario::Arrival& a) {
    return nlohmann::ordered_json{
        {"firstNs", a.first.count()}, {"medianNs", a.median.count()}, {"lastNs", a.last.count()}};
  };
  nlohmann::ordered_json pushes = nlohmann::ordered_json::array();
  for (const Duration at : f.pushes) pushes.push_back(at.count());
  return {{"p50", arrival(f.p50)}, {"p90", arrival(f.p90)}, {"cpuNs", f.cpu.count()}, {"pushesNs", pushes}};
}

int Compare(const TimingArguments& a) {
  absl::StatusOr<std::vector<scenario::TimingComparison>> rows = [&] {
    Progress progress;
    scenario::TimingComparisonOptions options = a.options;
    options.progress = [&](std::string_view what) { progress.Say(what); };
    return scenario::CompareTiming(options);
  }();
  if (!rows.ok()) return Complain(rows.status());
  const bool all = std::all_of(rows->begin(), rows->end(), [](const auto& row) { return row.Holds(); });
  if (a.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const auto& row : *rows) {
      out.push_back({{"setup", row.measured.setup},
                     {"op", row.measured.op},
                     {"clients", row.measured.clients},
                     {"predicted", Json(row.predicted)},
                     {"measured", Json(row.measured.figures)},
                     {"holds", row.Holds()}});
    }
    std::cout << JsonText(out, 1) << "\n";
    return all ? kOk : kNo;
  }
  std::vector<std::vector<std::string>> table = {{"SET-UP", "CHANGE", "FIRST p50", "", "MEDIAN p50", "", "LAST p50", "",
                                                  "LAST p90", "", "CPU", "", "PUSHES AT", ""}};
  const auto moments = [](const std::vector<Duration>& list) {
    std::string out;
    for (const Duration at : list) out += fmt::format("{}{:.0f}", out.empty() ? "" : " ", ToMillis(at));
    return out;
  };
  for (const auto& row : *rows) {
    const scenario::TimingFigures &p = row.predicted, &m = row.measured.figures;
    const auto both = [](Duration of_p, Duration of_m, std::vector<std::string>* out) {
      const bool given = of_m != Duration::zero();
      out->push_back(given ? Pair(of_p, of_m) : "");
      out->push_back(given ? Ratio(of_p, of_m) : "");
    };
    std::vector<std::string> line = {row.measured.setup, row.measured.op};
    both(p.p50.first, m.p50.first, &line);
    both(p.p50.median, m.p50.median, &line);
    both(p.p50.last, m.p50.last, &line);
    both(p.p90.last, m.p90.last, &line);
    both(p.cpu, m.cpu, &line);
    line.push_back(m.pushes.empty() ? "" : fmt::format("{} / {}", moments(p.pushes), moments(m.pushes)));
    line.push_back(row.Holds() ? "" : "OFF");
    table.push_back(std::move(line));
  }
  std::cout << "predicted / measured in ms after the write, and their ratio\n";
  PrintTable(table);
  const auto off = std::count_if(rows->begin(), rows->end(), [](const auto& row) { return !row.Holds(); });
  std::cout << fmt::format("{} of {} changes within 15 % (1 and 50 clients) or 25 % (500) in every p50\n",
                           rows->size() - static_cast<size_t>(off), rows->size());
  return all ? kOk : kNo;
}

int Print(bool as_json) {
  const std::vector<sim::TimingRow> rows = sim::TimingTable(sim::Timing());
  if (as_json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const auto& row : rows) out.push_back({{"name", row.name}, {"default", row.value}, {"meaning", row.meaning}});
    std::cout << JsonText(out, 1) << "\n";
    return kOk;
  }
  for (const auto& row : rows) std::cout << fmt::format("{:<34} {:>8}  {}\n", row.name, row.value, row.meaning);
  return kOk;
}

int Run(TimingArguments& a) {
  if (a.costs) return PrintCosts(a.parameters, a.json);
  if (!a.compare) return Print(a.json);
  if (!a.data.empty()) return CompareCosts(a.data, a.parameters, a.json);
  for (const std::string& text : a.set) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return Complain(absl::InvalidArgumentError(fmt::format("--set '{}': write NAME=VALUE", text)));
    }
    a.options.timing[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const int code = Compare(a);
  if (code == kBadInput || a.json || !a.options.setups.empty()) return code;
  std::cout << "\n";
  return std::max(code, CompareCosts(kMeasured, a.parameters, false));
}

}  // namespace

void AddTiming(CLI::App& app, Outcome& outcome) {
  CLI::App* verb =
      app.add_subcommand("timing", "The modelled durations and costs that a scenario's timing: may override");
  auto a = std::make_shared<TimingArguments>();
  verb->add_flag("--json", a->json, "As JSON");
  CLI::Option* compare =
      verb->add_flag("--compare", a->compare, "Runs the timing experiments and holds them against the measurements");
  verb->add_option("setups", a->options.setups, "Experiments to compare, e.g. one-n50; all if none is named")
      ->needs(compare);
  verb->add_option("--folder", a->options.folder, "Folder of the experiments; scenarios/timing if left out")
      ->needs(compare);
  verb->add_option("--repetitions", a->options.repetitions, "Of each change; 10, with 500 clients 3")->needs(compare);
  verb->add_option("--set", a->set, "NAME=VALUE instead of a default")->needs(compare);
  verb->add_option("--data", a->data,
                   "CSV file or folder of measured rows (docs/cost-model.md), which the cost model alone predicts: "
                   "processor time, resident set, arrival")
      ->needs(compare);
  verb->add_option("--parameters", a->parameters, "Table of the cost model's parameters instead of istiod 1.18.2's");
  verb->add_flag("--costs", a->costs, "The cost model's terms, their parameters and how they are known")
      ->excludes(compare);
  verb->footer(
      "Exit code 0: all predictions are within the tolerance; 1: one is not (with --data: of a kind of figure more "
      "than one row in five is off by more than 20 %); 2: the call is wrong.");
  verb->callback([a, &outcome] { outcome.code = Run(*a); });
}

}  // namespace wavetank::cli
