// What was measured of a real istiod: CSV files with a row for each repetition of each change.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "capacity/model/situation.h"

namespace wavetank::capacity {

// The medians over the repetitions of one change in one set-up; 0: was not measured.
struct Measured {
  std::string setup, op;
  Situation situation;
  int repetitions = 0;
  double cpu_ms = 0, rss_mb = 0;
  double kilobytes = 0;             // per proxy, mean
  double half_ms = 0, most_ms = 0;  // when the change was at half and at 99 % of the proxies, after the write
};

// `path`: a CSV file, or a folder with CSV files of which those with other columns are left out. Columns by name: tag,
// clients, endpoints, services, op, istiod_cpu_ms, rss_kb, bytes, hit_p50, hit_p99; clusters, if not 1 (or 2 where the
// tag begins with "two"). NotFound, InvalidArgument: names file, line and remedy.
absl::StatusOr<std::vector<Measured>> ReadMeasurements(const std::string& path);

}  // namespace wavetank::capacity
