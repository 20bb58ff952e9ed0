// What each proxy of a world was sent, from the moment of watching on.
#pragma once

#include <map>
#include <string>

#include "core/base/observers.h"
#include "scenarios/runner/xds_snapshot.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::serve {

class HeldConfig {
 public:
  // Follows the world from now on, as long as it lives; to be called before its proxies connect.
  void Watch(sim::World& world);

  // By the proxy's name, "sleep-6d4f.sample@cluster1"; empty for one that was sent nothing.
  const scenario::XdsSnapshot& Of(const std::string& proxy) const;
  const std::map<std::string, scenario::XdsSnapshot>& all() const { return proxies_; }

 private:
  std::map<std::string, scenario::XdsSnapshot> proxies_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::serve
