#include "serve/grpc/held_config.h"

#include "sim/world.h"

namespace wavetank::serve {

void HeldConfig::Watch(sim::World& world) {
  subscriptions_ = world.commons().OnEitherXds(
      [this](const std::string& proxy, const auto& response) { proxies_[proxy].Apply(response); });
}

const scenario::XdsSnapshot& HeldConfig::Of(const std::string& proxy) const {
  static const auto* const kNothing = new scenario::XdsSnapshot;
  const auto it = proxies_.find(proxy);
  return it == proxies_.end() ? *kNothing : it->second;
}

}  // namespace wavetank::serve
