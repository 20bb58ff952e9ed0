// Optimistic concurrency as a request's body states it: the resourceVersion and uid that its object must have.
#pragma once

#include <string_view>

#include "core/kube/object.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// `body` of a `method` request (a patch: of `content_type`; `scale`: of that subresource) about `object` as it is, null
// if there is none. A demand that holds is taken out; another becomes one that no object ever meets.
nlohmann::json WithoutPreconditions(std::string_view method, std::string_view content_type, bool scale,
                                    const kube::Object* object, nlohmann::json body);

}  // namespace wavetank::fakekube::http
