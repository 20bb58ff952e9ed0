// The cost model fitted to somebody's own istiod, from its metrics before and after.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "capacity/calibrate/samples.h"
#include "capacity/model/cost_model.h"

namespace wavetank::capacity {

struct Calibration {
  Parameters parameters;
  double cpu_factor = 1, memory_factor = 1;  // measured by predicted
  double cpu_seconds = 0, predicted_seconds = 0;
  double rss_mb = 0, predicted_mb = 0;
  std::vector<std::string> told, untold;  // parameters that changed; that the data could not tell
  std::string extrapolates;
};

// `endpoints` and `clusters` are in no metric of istiod's. InvalidArgument: of another Istio version, of another
// process, not one after the other, or nothing happened between them; says which and what to do.
absl::StatusOr<Calibration> Calibrate(const Parameters& start, const Samples& before, const Samples& after,
                                      double endpoints, double clusters);

}  // namespace wavetank::capacity
