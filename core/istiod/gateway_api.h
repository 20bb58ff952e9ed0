// The Gateway API's controller, connected to the parts of one istiod that it asks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/gateway_api/control/controller.h"

namespace wavetank::config {
class CrdClient;
}

namespace wavetank::pilot {

class DiscoveryServer;
class InjectionWebhook;
class Registries;
struct IstiodOptions;

// All must outlive the controller.
struct GatewayApiParts {
  kube::Client& client;
  Host& host;
  config::ConfigStore& configs;
  const DiscoveryServer& discovery;
  const InjectionWebhook& webhook;
  const config::CrdClient& crds;
  const Registries* registries = nullptr;
  std::function<config::MeshConfigRef()> mesh = nullptr;
  std::function<bool(std::string_view ns)> reads = nullptr;  // discoverySelectors
};
std::unique_ptr<gatewayapi::Controller> MakeGatewayApi(const GatewayApiParts& parts, const IstiodOptions& options,
                                                       const std::string& revision);

}  // namespace wavetank::pilot
