// PATCH by content type.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "fakes/kube/http/api/resources.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// `current` with the patch applied. Unimplemented: no such content type for this resource; InvalidArgument: the patch
// cannot be read or does not fit.
absl::StatusOr<nlohmann::json> Patched(const Resource& resource, std::string_view content_type,
                                       const nlohmann::json& current, const nlohmann::json& patch);

// What an applied configuration says that its kind's schema does not have, or has another type for, as the API server
// answers it, with 500: "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): .spec.replicas:
// expected numeric (int or float), got string" (structured-merge-diff: typed/validate.go). Of custom resources their
// metadata alone. "": all of it fits. O(applied).
std::string UntypedApply(const Resource& resource, const nlohmann::json& applied);

}  // namespace wavetank::fakekube::http
