// Services and endpoints as Go's encoding/json writes istiod's structs (istiod: pilot/pkg/model/service.go).
#pragma once

#include "core/model/endpoint.h"
#include "nlohmann/json.hpp"

namespace wavetank::debug {

nlohmann::ordered_json ServiceJson(const pilot::Service& service);
nlohmann::ordered_json EndpointJson(const pilot::IstioEndpoint& endpoint);
nlohmann::ordered_json InstanceJson(const pilot::ServiceInstance& instance);

}  // namespace wavetank::debug
