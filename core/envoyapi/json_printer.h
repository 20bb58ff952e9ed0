// Resources as JSON, in protobuf's JSON mapping, with whatever their Anys hold opened.
#pragma once

#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::pilot {

enum class FieldNames { kCamelCase, kOriginal };  // istiod's debug pages; Envoy's admin interface

// One value for each of `resources`, all of this type: an object whose first member is "@type". What cannot be read, or
// holds an Any of a type that is no part of Envoy's API, is {"@type", "value"} with its bytes in base64. O(bytes); one
// call for many costs less than many calls.
std::vector<nlohmann::ordered_json> EnvoyJson(std::string_view type_url, const std::vector<std::string_view>& resources,
                                              FieldNames names = FieldNames::kCamelCase);

}  // namespace wavetank::pilot
