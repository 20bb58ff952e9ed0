// How a mesh begins: the inputs that install it.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/language/scenario.h"
#include "scenarios/mesh/certificate_date.h"
#include "scenarios/mesh/system_namespaces.h"
#include "sim/inputs/input.h"

namespace wavetank::scenario {

// In the order of Istio's guides. Between two phases the world settles:
// 1. namespaces, CA Secrets and the control plane; 2. remote Secrets and gateways; 3. everything else.
struct StartPhases {
  std::vector<sim::Input> phases[3];
  std::vector<std::string> notes;  // on its manifests and those of its steps
  Validity certificates;           // of its manifests
  SystemNamespaceSet system_namespaces;
  std::set<std::pair<sim::Mend, std::string>> mended;  // done in them for which cluster, as it was chosen
};
// Errors are those of manifests (scenarios/mesh/manifests.h), of the steps' too.
absl::StatusOr<StartPhases> MakeStart(const Scenario& scenario);

// InvalidArgument lists what its manifests say without effect here, if they say anything of the kind.
absl::Status Strictly(const StartPhases& start);

// Where the scenario's clock begins, if it does not say: where the certificates of its manifests hold. Says so.
void DateByCertificates(const StartPhases& start, Scenario* scenario, std::vector<std::string>* notes);

// The manifests that the steps bring, looked at before the first of them is done: a typo in the last costs no waiting.
absl::Status CheckSteps(const Scenario& scenario, std::vector<std::string>* notes);

}  // namespace wavetank::scenario
