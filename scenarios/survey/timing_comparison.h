// Holds the modelled times against those of a real istiod: runs the experiments of scenarios/timing and measures in
// them what was measured there. docs/timing.md says what the quantities are and where the measured ones come from.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::scenario {

// When the change reached the first, the median and the last client, after the write; over the repetitions.
struct Arrival {
  Duration first{}, median{}, last{};
};

// One operation of one set-up.
struct TimingFigures {
  Arrival p50, p90;
  Duration cpu{};                // of istiod per change, p50
  std::vector<Duration> pushes;  // bursts: when the debouncer let go, after the first write
};

struct TimingMeasurement {
  std::string setup, scenario, op;  // scenario: file in the folder
  int clients = 0, services = 0, endpoints_each = 0;
  std::string source;  // the run of the measurement
  // The measurement looked this often, so that what it saw is a multiple; 0: it was told at once.
  Duration clock{};
  int repetitions = 0;
  TimingFigures figures;
};

struct TimingComparison {
  TimingMeasurement measured;
  TimingFigures predicted;
  // predicted : measured of the p50 of the worst of first, median and last client, in ppm; whether debounce counts.
  int64_t WorstRatioPpm() const;
  // Within the tolerance for that many clients (TolerancePpm), the moments of pushes too.
  bool Holds() const;
};

// How far p50s may be off: 15 % up to 50 clients, 25 % beyond.
int64_t TolerancePpm(int clients);

// measured.csv and measured-bursts.csv of `folder`. Errors name file and line.
absl::StatusOr<std::vector<TimingMeasurement>> LoadMeasurements(const std::string& folder);

struct TimingComparisonOptions {
  std::string folder = "scenarios/timing";
  std::vector<std::string> setups;            // empty: all
  int repetitions = 0;                        // of each operation; 0: as many as is quick
  std::map<std::string, std::string> timing;  // overrides of sim/timing.h, by name
  std::function<void(std::string_view)> progress;
};

// In the order of the measurements. NotFound: no such set-up. Internal: a client did not get a change.
absl::StatusOr<std::vector<TimingComparison>> CompareTiming(const TimingComparisonOptions& options);

}  // namespace wavetank::scenario
