// What a real API server would say of a manifest, said before a world is built of it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace wavetank::scenario {

// InvalidArgument with "FILE:LINE: ..." for what every API server refuses: a kind that none of the groups known here
// has (known_resources.h); a value of another type than its field's, in Go's words; a value that may not be, for
// Kubernetes' kinds (fakes/kube/validation/validation.h) and for Istio's (core/config/schema/istio_schemas.h).
//
// A field that belongs to no type is kept, as manifests may be newer than the kinds here, but has no effect: `notes`
// gets a line for each object with such fields, and for what istiod cannot read though an API server takes it (a
// duration, an EnvoyFilter's value). A kind that matters in a real cluster and is not modelled (HTTPRoute,
// NetworkPolicy, Job, ...) gets one line for all its objects. May be null. O(object).
absl::Status CheckManifest(const std::string& file, int line, const nlohmann::json& object,
                           std::vector<std::string>* notes);

}  // namespace wavetank::scenario
