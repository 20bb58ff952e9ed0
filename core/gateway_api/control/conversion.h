// Gateway API to Istio's own configuration, as a whole: a pure function of what is there
// (istiod: pilot/pkg/config/kube/gateway/controller.go, NewController).
#pragma once

#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

// Configurations sorted by kind, namespace, name.
Outputs Convert(const Inputs& in);

}  // namespace wavetank::gatewayapi
