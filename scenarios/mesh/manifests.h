// The objects of manifests, read, selected and checked as an API server would.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "scenarios/language/scenario.h"

namespace wavetank::sim {
class Input;
}

namespace wavetank::scenario {

struct Installation;

// What names no namespace has the spec's, or "default". `notes`: see CheckManifest(). Errors name file, line and
// remedy. `installations`: see LoadRendered().
absl::StatusOr<std::vector<nlohmann::json>> LoadManifestObjects(const ManifestSpec& spec,
                                                                std::vector<std::string>* notes,
                                                                std::vector<Installation>* installations = nullptr);
// Those of one cluster, with what `istioctl install` makes for all of its IstioOperators.
absl::StatusOr<std::vector<nlohmann::json>> LoadClusterManifests(const ClusterSpec& cluster,
                                                                 std::vector<std::string>* notes);
// "<file>:<line>" of the last of the cluster's manifests with the object's kind, namespace and name; empty: none. Of
// manifests that cannot be read LoadClusterManifests() tells.
std::string PlaceInManifests(const ClusterSpec& cluster, const nlohmann::json& object);
// Why one of the inputs that the scenario's mesh begins with was refused, of which an API server, or a webhook, knows
// no file: the same with the place in the manifests (the scenario's file, where it is of none), the cluster and the
// object. Reads the manifests once more.
absl::Status AtItsPlace(const Scenario& scenario, const sim::Input& input, const absl::Status& refused);
// Objects that stand in a scenario, at `file` and `line`; as above.
absl::StatusOr<std::vector<nlohmann::json>> CheckInlineObjects(const std::string& file, int line,
                                                               const nlohmann::json& objects, const std::string& ns,
                                                               std::vector<std::string>* notes);

}  // namespace wavetank::scenario
