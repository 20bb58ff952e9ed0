#include "scenarios/language/scenario.h"

namespace wavetank::scenario {

const FlowSpec* Scenario::FindFlow(std::string_view flow_name) const {
  for (const FlowSpec& flow : flows) {
    if (flow.name == flow_name) return &flow;
  }
  return nullptr;
}

const ClusterSpec* Scenario::FindCluster(std::string_view cluster_name) const {
  for (const ClusterSpec& cluster : clusters) {
    if (cluster.name == cluster_name) return &cluster;
  }
  return nullptr;
}

}  // namespace wavetank::scenario
