// PATCH by content type.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "fakes/kube/http/api/resources.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// `current` with the patch applied. Unimplemented: no such content type for this resource; InvalidArgument: the patch
// cannot be read or does not fit.
absl::StatusOr<nlohmann::json> Patched(const Resource& resource, std::string_view content_type,
                                       const nlohmann::json& current, const nlohmann::json& patch);

}  // namespace wavetank::fakekube::http
