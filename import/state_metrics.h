// What kube-state-metrics would say of a simulated cluster.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace wavetank::sim {
class World;
}

namespace wavetank::importing {

// nullopt: the cluster has no such object, or this is no metric of it. `cluster` is one of the world's.
std::optional<double> StateMetric(sim::World& world, const std::string& cluster, const std::string& metric,
                                  const std::map<std::string, std::string>& labels);

}  // namespace wavetank::importing
