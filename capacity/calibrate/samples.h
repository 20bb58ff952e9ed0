// What was scraped from an istiod: Prometheus' text, or the JSON of its API.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wavetank::capacity {

class Samples {
 public:
  // Hostile input. InvalidArgument: names the line, or what the JSON lacks.
  static absl::StatusOr<Samples> Parse(std::string_view text, const std::string& path);

  // Over all series of that name, or those with `label="value"`. Nullptr-like: -1 if there is none.
  double Sum(std::string_view name, std::string_view label = {}, std::string_view value = {}) const;
  bool Has(std::string_view name) const;
  void ForEach(std::string_view name,
               const std::function<void(const std::map<std::string, std::string>& labels, double value)>& then) const;
  // The value of a label of the first series of that name; empty: none.
  std::string LabelOf(std::string_view name, const std::string& label) const;

 private:
  struct Series {
    std::map<std::string, std::string> labels;
    double value = 0;
  };
  std::multimap<std::string, Series, std::less<>> series_;
};

}  // namespace wavetank::capacity
