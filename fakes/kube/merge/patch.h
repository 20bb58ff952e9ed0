// The ways in which a PATCH changes an object, but for server-side apply (server_side_apply.h).
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "fakes/kube/objects/kinds.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

enum class PatchType : uint8_t { kMerge, kJson, kStrategic };

// RFC 7386: null deletes, mappings merge, anything else replaces.
nlohmann::json MergePatched(const nlohmann::json& target, nlohmann::json patch);
// The same as MergePatched(target, patch) != target, in O(patch).
bool MergePatchChanges(const nlohmann::json& target, const nlohmann::json& patch);

// RFC 6902. All or nothing. Errors are ApiErrors: 400 for what is no JSON patch, 422 for what does not fit the object
// or fails its test. At most 10,000 operations, as kube-apiserver allows.
absl::Status JsonPatch(nlohmann::json& target, const nlohmann::json& operations);

// Any of the three, on an object of `kind`. A strategic merge patch of a kind that is not Kubernetes' own is 415
// (UnsupportedMediaType), one that cannot be read 400; `target` is unchanged then. Nobody may change what the object
// is: apiVersion, kind, name and namespace are the caller's to compare.
absl::Status ApplyPatch(PatchType type, const GroupKind& kind, nlohmann::json& target, const nlohmann::json& patch);

}  // namespace wavetank::fakekube
