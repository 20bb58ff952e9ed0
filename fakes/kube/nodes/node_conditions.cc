#include "fakes/kube/nodes/node_conditions.h"

#include <utility>

#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "fakes/kube/objects/conditions.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

struct Row {
  const char *type, *status, *reason, *message;
};

// In the kubelet's order.
constexpr Row kHealthy[] = {
    {"MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
    {"DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
    {"PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
    {"Ready", "True", "KubeletReady", "kubelet is posting ready status"},
};

}  // namespace

json ConditionsOfHealthyNode(json conditions, const std::string& now) {
  for (const Row& row : kHealthy) {
    SetCondition(conditions,
                 JsonObject("type", row.type, "status", row.status, "lastHeartbeatTime", now, "reason", row.reason,
                            "message", row.message),
                 now);
  }
  return conditions;
}

json ConditionsOfSilentNode(json conditions, const std::string& now) {
  for (const Row& row : kHealthy) {
    const json& before = ConditionOf(conditions, row.type);
    json unknown = before.is_null()
                       ? JsonObject("type", row.type, "status", "Unknown", "lastHeartbeatTime", now, "reason",
                                    "NodeStatusNeverUpdated", "message", "Kubelet never posted node status.")
                       : JsonObject("type", row.type, "status", "Unknown", "lastHeartbeatTime",
                                    Text(before, "lastHeartbeatTime", now), "reason", "NodeStatusUnknown", "message",
                                    "Kubelet stopped posting node status.");
    SetCondition(conditions, std::move(unknown), now);
  }
  return conditions;
}

}  // namespace wavetank::fakekube
