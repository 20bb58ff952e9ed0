#include "capacity/calibrate/calibrate.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "cli/capacity/parameters_file.h"
#include "cli/read_file.h"
#include "cli/verb.h"
#include "fmt/format.h"

namespace wavetank::cli {
namespace {

struct CalibrateArguments {
  std::string before, after, out, parameters;
  double endpoints = -1, clusters = 1;
};

absl::StatusOr<capacity::Samples> ReadSamples(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  return capacity::Samples::Parse(*text, path);
}

int Run(const CalibrateArguments& a) {
  const absl::StatusOr<capacity::Parameters> start = ReadParameters(a.parameters);
  if (!start.ok()) return Complain(start.status());
  const absl::StatusOr<capacity::Samples> before = ReadSamples(a.before), after = ReadSamples(a.after);
  if (!before.ok()) return Complain(before.status());
  if (!after.ok()) return Complain(after.status());
  const absl::StatusOr<capacity::Calibration> c = Calibrate(*start, *before, *after, a.endpoints, a.clusters);
  if (!c.ok()) return Complain(c.status());
  std::cout << fmt::format(
      "processor time: {:.3f} s, the model says {:.3f}; its parts that grow with pushes times {:.3g}\n"
      "resident set:   {:.0f} MB, the model says {:.0f}; its parts that grow with the mesh times {:.3g}\n"
      "changed:  {}\ncould not be told: {}\n",
      c->cpu_seconds, c->predicted_seconds, c->cpu_factor, c->rss_mb, c->predicted_mb, c->memory_factor,
      fmt::join(c->told, " "), fmt::join(c->untold, " "));
  if (!c->extrapolates.empty()) std::cout << "extrapolates beyond what was measured: " << c->extrapolates << "\n";
  if (a.out.empty()) return kOk;
  std::ofstream out(a.out, std::ios::binary);
  out << c->parameters.Text();
  out.flush();
  if (!out) return Complain(absl::UnavailableError(fmt::format("{}: cannot be written", a.out)));
  return kOk;
}

}  // namespace

void AddCalibrate(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("calibrate", "Fits the cost model to an istiod's own metrics");
  auto a = std::make_shared<CalibrateArguments>();
  verb->add_option("before", a->before, "What istiod's :15014/metrics said, or Prometheus' API (JSON)")->required();
  verb->add_option("after", a->after, "The same later, after changes")->required();
  verb->add_option("--endpoints", a->endpoints, "Pods behind Services, in all its clusters: no metric tells")
      ->required()
      ->check(CLI::Range(0.0, 1e8));
  verb->add_option("--clusters", a->clusters, "That it watches, its own included")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str();
  verb->add_option("-o,--out", a->out, "Table to write, for --parameters of timing, plan and sweep");
  verb->add_option("--parameters", a->parameters, "Table to begin with instead of istiod 1.18.2's");
  verb->footer("Exit code 0: calibrated; 2: the input is wrong.");
  verb->callback([a, &outcome] { outcome.code = Run(*a); });
}

}  // namespace wavetank::cli
