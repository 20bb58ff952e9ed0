#include "serve/grpc/held_config.h"

#include "sim/world.h"

namespace wavetank::serve {

void HeldConfig::Watch(sim::World& world) {
  world.commons().on_xds = [this, before = std::move(world.commons().on_xds)](
                               const std::string& proxy, const pilot::DiscoveryResponse& response) {
    if (before) before(proxy, response);
    proxies_[proxy].Apply(response);
  };
  world.commons().on_delta_xds = [this, before = std::move(world.commons().on_delta_xds)](
                                     const std::string& proxy, const pilot::DeltaDiscoveryResponse& response) {
    if (before) before(proxy, response);
    proxies_[proxy].Apply(response);
  };
}

const scenario::XdsSnapshot& HeldConfig::Of(const std::string& proxy) const {
  static const auto* const kNothing = new scenario::XdsSnapshot;
  const auto it = proxies_.find(proxy);
  return it == proxies_.end() ? *kNothing : it->second;
}

}  // namespace wavetank::serve
