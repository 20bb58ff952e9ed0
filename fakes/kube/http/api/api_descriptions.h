// What `kubectl explain` tells of Kubernetes' own types and fields, in words of this house: of the kinds, and of the
// fields that a mesh's users write or look at. Others have none.
#pragma once

#include <string_view>

namespace wavetank::fakekube::http {

// Of a type ("PodSpec", ""), or of its field. Empty: none.
std::string_view ApiDescription(std::string_view type, std::string_view field = {});

}  // namespace wavetank::fakekube::http
