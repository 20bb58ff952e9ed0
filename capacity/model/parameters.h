// What one of each term costs (model/terms.h), and how we know. The table of istiod 1.18.2 is
// capacity/data/istiod-1.18.2.tsv, which tools/fit_cost_model.cc writes; `wavetank calibrate` makes others.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "capacity/model/terms.h"

namespace wavetank::capacity {

struct Parameter {
  double value = 0;
  std::string source;  // "fitted", "given: ...", "calibrated"
};

// What was measured; beyond it the model extrapolates.
struct MeasuredRange {
  double proxies = 1000, services = 300, endpoints = 10000, clusters = 2;
};

class Parameters {
 public:
  // Of istiod 1.18.2, as measured.
  static const Parameters& OfIstiod();
  // InvalidArgument: names the line, and a term that is unknown, missing or told twice.
  static absl::StatusOr<Parameters> Parse(std::string_view text, std::string_view path);
  std::string Text() const;

  double operator[](std::string_view name) const;
  const Parameter& Get(std::string_view name) const;
  void Set(std::string_view name, double value, std::string source);

 private:
  std::map<std::string, Parameter, std::less<>> values_;
};

// The text of capacity/data/istiod-1.18.2.tsv.
std::string_view IstiodParametersText();

// "8,000 proxies (1,000 measured), ..."; empty if nothing lies beyond what was measured.
std::string Extrapolates(const MeshSize& mesh);

}  // namespace wavetank::capacity
