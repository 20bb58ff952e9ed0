// Where a field that nobody knows was meant to be: misspelt, a level too deep or too high.
#pragma once

#include <string>
#include <string_view>

#include "fakes/kube/http/api/api_types.h"
#include "fakes/kube/http/api/resources.h"

namespace wavetank::scenario {

// Of an unknown field at a path as UnknownFields() and PruneBySchema() write it ("spec.http[0].timout"): "did you mean
// 'timeout'?", "it stands at spec.http[0]", "it stands within trafficPolicy", or which fields there are, where they are
// few. Empty: nothing is near. `type` is read where the resource has no schema of its own; null: neither is known.
std::string FieldHint(const fakekube::http::Resource& resource, const fakekube::http::ApiType* type,
                      std::string_view path);

// The same of fields that a list names.
std::string NearestHint(std::string_view field, const std::vector<std::string_view>& known);

}  // namespace wavetank::scenario
