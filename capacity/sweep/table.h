// A sweep's table read again, and what can be seen in it: the combinations that no other beats, and what each setting
// does.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::capacity {

struct SweepTable {
  struct Row {
    std::vector<std::string> values;   // of each setting
    std::vector<std::string> results;  // of each of the columns
    const std::string& error() const { return results.back(); }
  };
  std::vector<std::string> settings;
  std::vector<std::string> columns;     // behind the seed; the last is the error
  std::vector<std::string> objectives;  // of them: what a combination costs and gives; less is better in each
  std::vector<Row> rows;

  // A cell of a row by its column's name; empty: there is no such column.
  const std::string& Of(const Row& row, std::string_view column) const;
};

// The table, and what stands beside it in sweep.json. NotFound: run the sweep first. InvalidArgument: it is no table of
// a sweep; names the line.
absl::StatusOr<SweepTable> ReadTable(const std::string& path);

struct Combination {
  std::vector<std::string> values;  // of each setting
  int64_t seeds = 0;
  // Of each objective the greatest of its seeds, since all of them may happen.
  std::vector<double> worst;
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
  std::vector<Spread> spread;  // of each objective
};
// Of the setting with this number: its values as numbers or durations in their order; else as the table has them.
std::vector<Response> ResponsesTo(const std::vector<Combination>& combinations, size_t setting);

}  // namespace wavetank::capacity
