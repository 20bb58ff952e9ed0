// Whether a node takes a pod: what scheduler and DaemonSet controller ask (kubernetes:
// pkg/scheduler/framework/plugins).
#pragma once

#include <string>

#include "core/kube/object.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// Why not, in the scheduler's words ("node(s) were unschedulable"); "": the node takes a pod of this spec, by its
// taints, whether it is closed (`kubectl cordon`), nodeSelector and required node affinity. `daemon`: a DaemonSet's
// pod, which also goes where a node is closed, not ready or under pressure.
std::string NodeRefuses(const kube::Object& node, const nlohmann::json& pod_spec, bool daemon);

}  // namespace wavetank::fakekube
