// /openapi/v2: what kubectl asks before it applies, validates or explains.
#pragma once

#include <string_view>

#include "fakes/kube/http/message.h"
#include "fakes/kube/http/resources.h"

namespace wavetank::fakekube::http {

// Protobuf for kubectl, JSON for who asks for it.
Response OpenApiV2(const ResourceTable& table, std::string_view accept);

}  // namespace wavetank::fakekube::http
