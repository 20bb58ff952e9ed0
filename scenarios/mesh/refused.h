// Why one of the inputs that a scenario's mesh begins with was refused: an API server, or a webhook, knows no file.
#pragma once

#include "absl/status/status.h"

namespace wavetank::sim {
class Input;
}

namespace wavetank::scenario {

struct Scenario;

// The same with the place in the manifests (the scenario's file, where it is of none), the cluster and the object that
// it is about. Reads the manifests once more.
absl::Status AtItsPlace(const Scenario& scenario, const sim::Input& input, const absl::Status& refused);

}  // namespace wavetank::scenario
