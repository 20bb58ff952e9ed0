#include "capacity/model/fit.h"

#include <algorithm>
#include <functional>

namespace wavetank::capacity {
namespace {

// How often a term of processor time falls in all of the change.
double Times(const Term& term, const Measured& row, const Parameters& parameters) {
  const Situation& s = row.situation;
  const double proxies = s.mesh.proxies;
  switch (term.place) {
    case Place::kProcess:
      return s.change == Change::kStart ? term.count(s) : 0;
    case Place::kClient:
      return s.change == Change::kConnect ? term.count(s) * proxies : 0;
    case Place::kPush:
      return s.change >= Change::kEndpoints ? term.count(s) : 0;
    case Place::kCds:
    case Place::kEds:
    case Place::kLds:
    case Place::kRds:
      return s.change >= Change::kEndpoints ? term.count(s) * proxies : 0;
    case Place::kMiss:
      return term.count(s) * std::min(proxies, parameters["shape.misses"]);
    default:
      return 0;
  }
}

void FitPlaces(const std::vector<Measured>& rows, const std::function<bool(Place)>& of,
               const std::function<double(const Term&, const Measured&)>& times, double Measured::*seen,
               const std::string& source, Parameters* out) {
  std::vector<const Term*> terms;
  for (const Term& term : Terms()) {
    if (of(term.place) && out->Get(term.name).source.rfind("given", 0) != 0) terms.push_back(&term);
  }
  std::vector<std::vector<double>> matrix;
  std::vector<double> wanted;
  for (const Measured& row : rows) {
    if (row.*seen <= 0) continue;
    double rest = row.*seen;
    std::vector<double> line;
    for (const Term& term : Terms()) {
      if (of(term.place) && out->Get(term.name).source.rfind("given", 0) == 0) {
        rest -= (*out)[term.name] * times(term, row);
      }
    }
    for (const Term* term : terms) line.push_back(times(*term, row));
    if (rest <= 0 || std::all_of(line.begin(), line.end(), [](double v) { return v == 0; })) continue;
    matrix.push_back(std::move(line));
    wanted.push_back(rest);
  }
  const std::vector<double> fitted = LeastSquares(matrix, wanted);
  for (size_t i = 0; i < terms.size() && !matrix.empty(); ++i) {
    const bool told = std::any_of(matrix.begin(), matrix.end(), [&](const auto& line) { return line[i] != 0; });
    if (told) out->Set(terms[i]->name, fitted[i], source);
  }
}

}  // namespace

std::vector<double> LeastSquares(const std::vector<std::vector<double>>& rows, const std::vector<double>& wanted) {
  if (rows.empty()) return {};
  const size_t n = rows.front().size();
  std::vector<double> gram(n * n), right(n), x(n);
  for (size_t r = 0; r < rows.size(); ++r) {
    const double weight = 1 / (wanted[r] * wanted[r]);
    for (size_t i = 0; i < n; ++i) {
      right[i] += rows[r][i] * wanted[r] * weight;
      for (size_t j = 0; j < n; ++j) gram[i * n + j] += rows[r][i] * rows[r][j] * weight;
    }
  }
  for (int round = 0; round < 20'000; ++round) {
    for (size_t i = 0; i < n; ++i) {
      if (gram[i * n + i] == 0) continue;
      double slope = right[i];
      for (size_t j = 0; j < n; ++j) slope -= gram[i * n + j] * x[j];
      x[i] = std::max(0.0, x[i] + slope / gram[i * n + i]);
    }
  }
  return x;
}

Parameters Fit(const std::vector<Measured>& rows, const Parameters& start, const std::string& source) {
  Parameters out = start;
  FitPlaces(
      rows, [](Place p) { return p <= Place::kMiss; },
      [&](const Term& term, const Measured& row) { return Times(term, row, start); }, &Measured::cpu_ms, source, &out);
  FitPlaces(
      rows, [](Place p) { return p == Place::kResident; },
      [](const Term& term, const Measured& row) { return term.count(row.situation); }, &Measured::rss_mb, source, &out);
  FitPlaces(
      rows, [](Place p) { return p == Place::kBytes; },
      [](const Term& term, const Measured& row) { return term.count(row.situation); }, &Measured::kilobytes, source,
      &out);
  return out;
}

}  // namespace wavetank::capacity
