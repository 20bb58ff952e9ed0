// Which workloads a policy is for: by its targets, or by its selector.
// istiod: pilot/pkg/model/policyattachment.go, ShouldAttachPolicy
#pragma once

#include <algorithm>
#include <string_view>

#include "core/config/kinds/policy_target.h"
#include "core/model/selection.h"

namespace wavetank::pilot {

// `spec`: with a selector and targets; `policy_ns`, `ns`: its namespace and the workload's. `by_target`: the release
// knows targets (Change::kPolicyTargets); to others they are no field. Waypoints are not simulated, so that of targets
// a Gateway alone is ever met. O(labels + targets).
template <typename Spec>
bool Attaches(const Spec& spec, std::string_view policy_ns, std::string_view ns, const kube::Labels& labels,
              bool by_target) {
  if (!by_target || spec.targets.empty()) return !spec.selector || Selects(*spec.selector, labels);
  const auto gateway = labels.find("gateway.networking.k8s.io/gateway-name");
  if (gateway == labels.end() || policy_ns != ns) return false;
  return std::any_of(spec.targets.begin(), spec.targets.end(), [&](const config::PolicyTarget& target) {
    return target.group == "gateway.networking.k8s.io" && target.kind == "Gateway" && target.name == gateway->second &&
           (target.ns.empty() || target.ns == ns);
  });
}

}  // namespace wavetank::pilot
