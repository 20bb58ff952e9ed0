// Fits the cost model's parameters to the measurements and says how far off it is, also on set-ups that the fit did not
// see. `tools/build build -- fit_cost_model && build/fit_cost_model capacity/data/measured.csv [OUT.tsv]`
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>

#include "capacity/model/fit.h"
#include "capacity/queue/compare.h"
#include "core/base/status.h"

namespace {

using namespace wavetank::capacity;

double Loss(const Parameters& parameters, const std::vector<Measured>& rows) {
  double sum = 0;
  for (const Comparison& row : Compare(CostModel(parameters), rows)) {
    if (row.measured.most_ms <= 0) continue;
    // Beyond the debounce time, which nothing is fitted to.
    for (const auto& [p, m] : {std::pair(row.predicted.half_ms, row.measured.half_ms),
                               std::pair(row.predicted.most_ms, row.measured.most_ms)}) {
      sum += std::abs(p - m) / m;
    }
  }
  return sum;
}

// What is not linear: one parameter after the other, by steps that shrink.
Parameters FitBench(Parameters parameters, const std::vector<Measured>& rows) {
  double best = Loss(parameters, rows);
  for (double step = 2; step > 1.03; step = std::sqrt(step)) {
    for (const char* name : {"bench.message", "bench.kilobyte", "bench.start"}) {
      for (const double factor : {step, 1 / step}) {
        Parameters other = parameters;
        other.Set(name, parameters[name] * factor, "fitted");
        if (const double loss = Loss(other, rows); loss < best) {
          best = loss;
          parameters = other;
        }
      }
    }
  }
  return parameters;
}

Parameters FitAll(const std::vector<Measured>& rows) {
  return FitBench(Fit(rows, Parameters::OfIstiod(), "fitted"), rows);
}

void Say(const char* what, const std::vector<Comparison>& rows) {
  std::string line;
  const auto add = [&](const char* name, double Predicted::*p, double Measured::*m) {
    const Error e = ErrorOf(rows, p, m);
    line += fmt::format("  {} {}/{} within 20 %, mean {:.1f} %, worst {:.0f} %", name, e.within, e.rows, 100 * e.mean,
                        100 * e.worst);
  };
  add("CPU", &Predicted::cpu_ms, &Measured::cpu_ms);
  add("RSS", &Predicted::rss_mb, &Measured::rss_mb);
  add("p50", &Predicted::half_ms, &Measured::half_ms);
  add("p99", &Predicted::most_ms, &Measured::most_ms);
  fmt::print("{:<14}{}\n", what, line);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "fit_cost_model: name the CSV file of measurements, and the table to write\n");
    return 2;
  }
  const absl::StatusOr<std::vector<Measured>> rows = ReadMeasurements(argv[1]);
  if (!rows.ok()) {
    fmt::print(stderr, "fit_cost_model: {}\n", wavetank::Message(rows.status()));
    return 2;
  }
  const Parameters all = FitAll(*rows);
  Say("all", Compare(CostModel(all), *rows));
  // Each set-up in turn is predicted by a fit to the others.
  std::vector<Comparison> held_out;
  std::set<std::string> setups;
  for (const Measured& row : *rows) setups.insert(row.setup);
  for (const std::string& setup : setups) {
    std::vector<Measured> others, own;
    for (const Measured& row : *rows) {
      // A second run of a set-up says the same, so it is held out, too.
      const auto name = [](const std::string& s) { return s.ends_with("-b") ? s.substr(0, s.size() - 2) : s; };
      (name(row.setup) == name(setup) ? own : others).push_back(row);
    }
    for (const Comparison& row : Compare(CostModel(FitAll(others)), own)) {
      if (row.measured.setup == setup) held_out.push_back(row);
    }
    std::vector<Comparison> these;
    for (const Comparison& row : held_out) {
      if (row.measured.setup == setup) these.push_back(row);
    }
    Say(setup.c_str(), these);
  }
  Say("held out", held_out);
  if (argc > 2) std::ofstream(argv[2]) << all.Text();
  return 0;
}
