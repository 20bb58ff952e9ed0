// What the proxies of a mesh hold of each type, by who listened to what they were sent.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/observers.h"
#include "core/model/proxy.h"
#include "scenarios/runner/xds_snapshot.h"
#include "sim/world.h"

namespace wavetank::serve {

using HeldTypes = std::map<std::string, scenario::XdsSnapshot::Resources>;  // by type: "cds", ..., "nds"
using HeldMesh = std::map<std::string, HeldTypes>;                          // by proxy

std::vector<std::string_view> BytesOf(const scenario::XdsSnapshot::Resources& resources);

// What is written of a cluster's objects stands beside the proxies under this name and the cluster's, as type "status".
constexpr std::string_view kStatusesOf = "statuses of ";

// Listens to what a world's proxies are sent. What is asked besides (AskedBesides) is put to it by Put().
class HeldCollector {
 public:
  void Listen(sim::World& world);
  void Forget();

  // Of the proxies that run. An Envoy forgets the endpoints and routes that nothing names any more, and so does this.
  HeldMesh Look(sim::World& world) const;
  // Filters whose configuration the proxy's listeners leave to ECDS.
  std::vector<std::string> ExtensionsOf(const std::string& proxy) const;
  void Put(const std::string& proxy, const std::string& type, scenario::XdsSnapshot::Resources resources);

  // How many responses there were, and when the last came.
  uint64_t count() const { return count_; }
  Time last() const { return last_; }

 private:
  std::map<std::string, scenario::XdsSnapshot> proxies_;
  std::map<std::string, HeldTypes> besides_;
  uint64_t count_ = 0;
  Time last_{};
  Subscriptions subscriptions_;
};

}  // namespace wavetank::serve
