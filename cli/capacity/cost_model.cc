#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "capacity/queue/compare.h"
#include "cli/capacity/parameters_file.h"
#include "cli/verb.h"
#include "core/base/json_text.h"

namespace wavetank::cli {
namespace {

using capacity::Comparison;
using capacity::Measured;
using capacity::Predicted;

struct Figure {
  const char* name;
  const char* key;
  double Predicted::*predicted;
  double Measured::*measured;
};
constexpr Figure kFigures[] = {
    {"CPU ms", "cpuMs", &Predicted::cpu_ms, &Measured::cpu_ms},
    {"RSS MB", "rssMB", &Predicted::rss_mb, &Measured::rss_mb},
    {"p50 ms", "halfMs", &Predicted::half_ms, &Measured::half_ms},
    {"p99 ms", "mostMs", &Predicted::most_ms, &Measured::most_ms},
};

void PrintSummary(const std::vector<Comparison>& rows) {
  int within = 0, all = 0;
  for (const Figure& figure : kFigures) {
    const capacity::Error e = ErrorOf(rows, figure.predicted, figure.measured);
    if (e.rows == 0) continue;
    within += e.within;
    all += e.rows;
    std::cout << fmt::format("{}: {} of {} rows within 20 % ({:.0f} %), mean error {:.1f} %, worst {:.0f} %\n",
                             figure.name, e.within, e.rows, 100.0 * e.within / e.rows, 100 * e.mean, 100 * e.worst);
  }
  if (all > 0) std::cout << fmt::format("{} of {} figures within 20 % ({:.1f} %)\n", within, all, 100.0 * within / all);
}

// Of each kind of figure four rows in five are within 20 %.
bool Good(const std::vector<Comparison>& rows) {
  for (const Figure& figure : kFigures) {
    const capacity::Error e = ErrorOf(rows, figure.predicted, figure.measured);
    if (e.within * 5 < e.rows * 4) return false;
  }
  return true;
}

void PrintRows(const std::vector<Comparison>& rows) {
  Rows table = {{"SET-UP", "CHANGE", "PROXIES", "SERVICES", "ENDPOINTS"}};
  for (const Figure& figure : kFigures) {
    table.front().emplace_back(figure.name);
    table.front().emplace_back("error");
  }
  for (const Comparison& row : rows) {
    const capacity::MeshSize& mesh = row.measured.situation.mesh;
    std::vector<std::string> line = {row.measured.setup, row.measured.op, fmt::format("{:.0f}", mesh.proxies),
                                     fmt::format("{:.0f}", mesh.services), fmt::format("{:.0f}", mesh.endpoints)};
    for (const Figure& figure : kFigures) {
      const double seen = row.measured.*figure.measured, said = row.predicted.*figure.predicted;
      line.push_back(seen > 0 ? fmt::format("{:.1f} / {:.1f}", said, seen) : "");
      const double off = seen > 0 ? said / seen - 1 : 0;
      line.push_back(seen > 0 ? fmt::format("{:+.0f} %{}", 100 * off, std::abs(off) > 0.2 ? " !" : "") : "");
    }
    if (const std::string beyond = Extrapolates(mesh); !beyond.empty()) line.push_back("extrapolates: " + beyond);
    table.push_back(std::move(line));
  }
  std::cout << "predicted / measured: processor time per change, resident set after it, and when the change is at half "
               "and at 99 % of the proxies after the write\n";
  PrintTable(table);
}

void PrintJson(const std::vector<Comparison>& rows) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Comparison& row : rows) {
    const capacity::MeshSize& mesh = row.measured.situation.mesh;
    nlohmann::ordered_json line = {{"setup", row.measured.setup},       {"op", row.measured.op},
                                   {"proxies", mesh.proxies},           {"services", mesh.services},
                                   {"endpoints", mesh.endpoints},       {"clusters", mesh.clusters},
                                   {"extrapolates", Extrapolates(mesh)}};
    for (const Figure& figure : kFigures) {
      const double seen = row.measured.*figure.measured;
      if (seen > 0) line[figure.key] = {{"predicted", row.predicted.*figure.predicted}, {"measured", seen}};
    }
    out.push_back(std::move(line));
  }
  std::cout << JsonText(out, 1) << "\n";
}

}  // namespace

int PrintCosts(const std::string& path, bool json) {
  const absl::StatusOr<capacity::Parameters> parameters = ReadParameters(path);
  if (!parameters.ok()) return Complain(parameters.status());
  if (json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const capacity::Term& term : capacity::Terms()) {
      const capacity::Parameter& p = parameters->Get(term.name);
      out.push_back({{"name", term.name},
                     {"value", p.value},
                     {"unit", term.unit},
                     {"meaning", term.meaning},
                     {"source", p.source}});
    }
    std::cout << JsonText(out, 1) << "\n";
    return kOk;
  }
  Rows table = {{"TERM", "VALUE", "UNIT", "WHAT", "SOURCE"}};
  for (const capacity::Term& term : capacity::Terms()) {
    const capacity::Parameter& p = parameters->Get(term.name);
    table.push_back({std::string(term.name), fmt::format("{:.4g}", p.value), std::string(term.unit),
                     std::string(term.meaning), p.source});
  }
  PrintTable(table);
  return kOk;
}

int CompareCosts(const std::string& data, const std::string& path, bool json) {
  const absl::StatusOr<capacity::Parameters> parameters = ReadParameters(path);
  if (!parameters.ok()) return Complain(parameters.status());
  const absl::StatusOr<std::vector<Measured>> measured = capacity::ReadMeasurements(data);
  if (!measured.ok()) return Complain(measured.status());
  const std::vector<Comparison> rows = Compare(capacity::CostModel(*parameters), *measured);
  if (json) {
    PrintJson(rows);
  } else {
    PrintRows(rows);
    PrintSummary(rows);
  }
  return Good(rows) ? kOk : kNo;
}

}  // namespace wavetank::cli
