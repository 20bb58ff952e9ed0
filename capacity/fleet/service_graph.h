// Who calls whom in a fleet: clients call entries, which call Services of the layer below, and so on. One graph for all
// clusters, by a Service's number: a request that ends in another cluster goes on there to the layer below, too, so
// that no circle can be.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "capacity/fleet/fleet.h"

namespace wavetank::capacity {

struct ServiceGraph {
  std::vector<int64_t> entries;
  std::map<int64_t, std::vector<int64_t>> calls;  // of the Services that requests reach and that call others
  // By called Service: the namespaces of those that call it. Clients are in the first.
  std::map<int64_t, std::set<int64_t>> callers;
  // By namespace: what its workloads call that stands in others.
  std::map<int64_t, std::set<int64_t>> abroad;
};

// Empty if the fleet sends nothing. By the fleet's seed, `traffic` and number of Services alone; Services that have no
// endpoints in some cluster have no part. O(Services + calls).
ServiceGraph DrawServiceGraph(const Fleet& fleet);

}  // namespace wavetank::capacity
