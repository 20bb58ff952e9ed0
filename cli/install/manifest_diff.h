// What differs between two installations' manifests, object by object, as `istioctl manifest diff` 1.18.2 says it
// (istiod: operator/pkg/compare/compare.go; lists as github.com/google/go-cmp compares them).
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace wavetank::cli {

// Objects by "Kind:namespace:name".
using ManifestObjects = std::map<std::string, nlohmann::json>;

struct ManifestDiffOptions {
  std::string select = "::", ignore;  // KIND:NAMESPACE:NAME[:PATH], comma separated; what is left out fits all
  std::string rename;                 // FROM->TO, likewise, of the first
};

// Each object's changed paths, as "OLD -> NEW"; "" if nothing differs. InvalidArgument: an option is no such list.
absl::StatusOr<std::string> DiffManifests(const ManifestObjects& a, const ManifestObjects& b,
                                          const ManifestDiffOptions& options);

}  // namespace wavetank::cli
