// Events as `events.k8s.io` shows them. There is one store of Events; its objects are those of the core group, and this
// group has other names for what it holds (Kubernetes: pkg/apis/events/v1/conversion.go).
#pragma once

#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// `core`: an Event of v1; the result is one of events.k8s.io/v1. Fields of neither are kept.
nlohmann::json ToEventsGroup(nlohmann::json core);
// The other way round.
nlohmann::json ToCoreEvent(nlohmann::json event);

}  // namespace wavetank::fakekube::http
