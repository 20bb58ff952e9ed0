#include "capacity/model/parameters.h"

#include <fmt/format.h>

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/assert.h"
#include "core/base/status.h"

namespace wavetank::capacity {

const Parameters& Parameters::OfIstiod() {
  static const auto* const kParameters = [] {
    absl::StatusOr<Parameters> parsed = Parse(IstiodParametersText(), "istiod-1.18.2.tsv");
    WAVETANK_ASSERT(parsed.ok(), Message(parsed.status()));
    return new Parameters(*std::move(parsed));
  }();
  return *kParameters;
}

absl::StatusOr<Parameters> Parameters::Parse(std::string_view text, std::string_view path) {
  Parameters out;
  int number = 0;
  const std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n');
  for (const std::string& line : lines) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '\t');
    const auto bad = [&](std::string_view what) {
      return absl::InvalidArgumentError(fmt::format("{}:{}: {}", path, number, what));
    };
    if (cells.size() != 4) return bad("write name, unit, value and source with tabs between them");
    const Term* term = FindTerm(cells[0]);
    if (term == nullptr) return bad(fmt::format("'{}' is no term of the cost model (docs/cost-model.md)", cells[0]));
    if (cells[1] != term->unit) return bad(fmt::format("'{}' is told in {}", cells[0], term->unit));
    double value = 0;
    if (!absl::SimpleAtod(cells[2], &value) || !std::isfinite(value) || value < 0) {
      return bad(fmt::format("'{}' is no cost; write a number of {} that is not negative", cells[2], term->unit));
    }
    if (!out.values_.try_emplace(cells[0], Parameter{value, cells[3]}).second) {
      return bad(fmt::format("'{}' is told twice", cells[0]));
    }
  }
  for (const Term& term : Terms()) {
    if (!out.values_.contains(term.name)) {
      return absl::InvalidArgumentError(fmt::format("{}: '{}' is missing", path, term.name));
    }
  }
  return out;
}

std::string Parameters::Text() const {
  std::string out = "# name\tunit\tvalue\tsource; written by tools/fit_cost_model.cc, see docs/cost-model.md\n";
  for (const Term& term : Terms()) {
    const auto it = values_.find(term.name);
    if (it == values_.end()) continue;
    out += fmt::format("{}\t{}\t{:.6g}\t{}\n", term.name, term.unit, it->second.value, it->second.source);
  }
  return out;
}

const Parameter& Parameters::Get(std::string_view name) const {
  static const Parameter kNone;
  const auto it = values_.find(name);
  return it == values_.end() ? kNone : it->second;
}

double Parameters::operator[](std::string_view name) const { return Get(name).value; }

void Parameters::Set(std::string_view name, double value, std::string source) {
  WAVETANK_ASSERT(FindTerm(name) != nullptr, name);
  values_.insert_or_assign(std::string(name), Parameter{value, std::move(source)});
}

std::string Extrapolates(const MeshSize& mesh) {
  const MeasuredRange range;
  std::string out;
  const auto look = [&](double value, double most, std::string_view what) {
    if (value <= most + 5) return;  // the measured meshes had a Service or two of their own besides
    out += fmt::format("{}{:.0f} {} ({:.0f} measured)", out.empty() ? "" : ", ", value, what, most);
  };
  look(mesh.proxies, range.proxies, "proxies");
  look(mesh.services, range.services, "services");
  look(mesh.endpoints, range.endpoints, "endpoints");
  if (mesh.clusters > range.clusters) {
    out += fmt::format("{}{:.0f} clusters (2 measured)", out.empty() ? "" : ", ", mesh.clusters);
  }
  return out;
}

}  // namespace wavetank::capacity
