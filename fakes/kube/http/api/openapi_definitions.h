// The schemas of all types that an API serves, as JSON in the words of one version of OpenAPI: of Kubernetes' own
// types (api_types.h, api_descriptions.h), and of what definitions of custom resources say.
#pragma once

#include "fakes/kube/http/api/resources.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// V3 has alternatives, so that it tells numbers or texts, and all that a custom resource's schema says.
enum class OpenApi { kV2, kV3 };

// By the types' names: "io.k8s.api.core.v1.PodSpec". O(all types), some milliseconds.
nlohmann::json OpenApiDefinitions(const ResourceTable& table, OpenApi version);

// {"group": ..., "kind": ..., "version": ...}
nlohmann::json GroupVersionKind(const Resource& resource);

}  // namespace wavetank::fakekube::http
