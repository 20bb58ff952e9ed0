// A mesh of what API servers held, with what was written to them, and with the claims of other sources.
#pragma once

#include "absl/status/statusor.h"
#include "import/evidence/evidence.h"
#include "import/kube/kube_evidence.h"
#include "import/skeleton/skeleton.h"

namespace wavetank::importing {

// The first picture is what the dumps hold; of objects that the history tells of, what that tells first; of those that
// logs and creation times tell of, what must have been there before (history.h).
// InvalidArgument: no cluster, or none that says anything of services.
absl::StatusOr<Skeleton> MakeMeshOfObjects(const Evidence& evidence, const KubeEvidence& kube);

// A claim as the log's input. `istiod`: the cluster of the one that it is about.
replay::LogInput ClaimInput(const Claim& claim, const std::string& istiod, Time at);

}  // namespace wavetank::importing
