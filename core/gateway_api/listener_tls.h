// TLS of a listener as settings of an Istio server (istiod: pilot/pkg/config/kube/gateway/conversion.go, buildTLS).
#pragma once

#include <optional>

#include "core/gateway_api/grants.h"
#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

struct ListenerTls {
  std::optional<nlohmann::json> settings;  // none: the listener has no TLS
  std::optional<ConfigError> error;
};

ListenerTls BuildListenerTls(const Inputs& in, const Grants& grants, const kube::Object& owner,
                             const kube::Object& gateway, const nlohmann::json& listener);

}  // namespace wavetank::gatewayapi
