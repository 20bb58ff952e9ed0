// What the proxies of a world were sent, and by whom: seen while it runs, without changing it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "scenarios/runner/xds_snapshot.h"
#include "sim/world.h"

namespace wavetank::check {

// A resource of a proxy: its type ("cds", "eds", "lds", "rds") and name.
using ResourceKey = std::pair<std::string, std::string>;
using ResourceHashes = std::map<ResourceKey, uint64_t>;

// Proxies of one application in one cluster hold the same but for their own addresses; the first one speaks for them.
struct ProxyGroup {
  int proxies = 0;
  bool gateway = false;
  std::set<std::string> releases;  // of their images: "1.18.2"
  std::set<std::string> istiods;   // profiles of the istiods that serve them: "istio-1.30"; none: not connected
  ResourceHashes resources;
};

class Held {
 public:
  // Follows the world from now on, as long as it lives. `before`: what groups were sent until now, as far as that is
  // known.
  void Watch(sim::World& world, std::map<std::string, ResourceHashes> before = {});
  // By group: "sleep.sample@cluster1".
  std::map<std::string, ProxyGroup> Groups(const sim::World& world) const;

 private:
  std::map<std::string, scenario::XdsSnapshot> proxies_;
  std::map<std::string, ResourceHashes> before_;
  std::set<std::string> known_;  // proxies that there were then
  Subscriptions responses_;
};

// "sleep.sample@cluster1": by label `app`, else by what made the pod.
std::string GroupOf(const sim::PodProcess& pod);
// "1.18.2", of a pod with a proxy that has started; else empty.
std::string ReleaseOf(const sim::PodProcess& pod);
// The istiod that serves a proxy, and since when.
struct ServedBy {
  std::string profile;
  Time since{};
};
// By the proxy's name in traces.
std::map<std::string, ServedBy> IstiodsOfProxies(const sim::World& world);

}  // namespace wavetank::check
