// A sweep's table read again, and what can be seen in it: the combinations that no other beats, and what each setting
// does.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::capacity {

struct SweepTable {
  struct Row {
    std::vector<std::string> values;   // of each setting
    std::vector<std::string> results;  // of each of ResultColumns()
    const std::string& error() const { return results.back(); }
  };
  std::vector<std::string> settings;
  std::vector<Row> rows;
};

// NotFound: run the sweep first. InvalidArgument: it is no table of a sweep; names the line.
absl::StatusOr<SweepTable> ReadTable(const std::string& path);

// What a combination of settings costs and gives; less is better in each.
inline constexpr std::array<std::string_view, 3> kObjectives = {"p99_ms", "cpus", "memory_mb"};

struct Combination {
  std::vector<std::string> values;  // of each setting
  int64_t seeds = 0;
  // The greatest of its seeds, since all of them may happen.
  std::array<double, kObjectives.size()> worst{};
};
// In the table's order; those without a result in any row are left out.
std::vector<Combination> CombinationsOf(const SweepTable& table);

// Those that no other is at least as good as in all `objectives` and better than in one of them, by their number, the
// first objective's best first. Time goes with combinations times the front's size.
std::vector<size_t> Front(const std::vector<Combination>& combinations, const std::vector<size_t>& objectives);

// What one objective is at one value of a setting, over all values of the others.
struct Spread {
  double least = 0, quarter = 0, middle = 0, three_quarters = 0, most = 0;
};
struct Response {
  std::string value;
  int64_t combinations = 0;
  std::array<Spread, kObjectives.size()> spread;
};
// Of the setting with this number: its values as numbers or durations in their order; else as the table has them.
std::vector<Response> ResponsesTo(const std::vector<Combination>& combinations, size_t setting);

}  // namespace wavetank::capacity
