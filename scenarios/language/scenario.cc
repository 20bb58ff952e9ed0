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

std::vector<std::string> Scenario::StepNames() const {
  std::vector<std::string> out;
  for (const Step& step : steps) out.push_back(step.name);
  return out;
}

}  // namespace wavetank::scenario
