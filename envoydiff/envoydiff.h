// Compares simulated with real Envoys: every case on both, differences in words.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "envoydiff/case.h"

namespace wavetank::envoydiff {

struct Options {
  std::string envoy;     // path of the real one
  std::string filter;    // only cases whose name contains this
  std::string keep;      // folder for bootstraps, logs and outcomes; empty: a temporary one, removed
  bool verbose = false;  // print both outcomes
  std::function<void(const std::string&)> print;  // progress and findings, by line
};

struct Summary {
  int cases = 0;
  int differing = 0;  // or failed to run
};

absl::StatusOr<Summary> RunCases(const std::string& path, const Options& options);

// A real Envoy: `given` if not empty, else $WAVETANK_ENVOY, else what tools/envoy installed below `build`. Empty: none.
std::string FindEnvoy(const std::string& given, const std::string& build);

}  // namespace wavetank::envoydiff
