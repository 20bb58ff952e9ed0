// GatewayClasses that istiod serves (istiod: pilot/pkg/config/kube/gatewaycommon/{classinfo,gatewayclass*}.go).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

// The class without Istio's own deployment: gateways of places whose API server istiod does not know.
inline constexpr std::string_view kRemoteClass = "istio-remote";

struct BuiltInClass {
  std::string_view name, controller, description;
};
std::vector<BuiltInClass> BuiltInClasses(const pilot::Profile& profile);

// The controller of the class of that name, in the cluster or built in; "" if it is none of istiod's.
std::string ControllerOf(const Inputs& in, const std::string& class_name);

// Ambient's classes, which nothing here serves (istio-waypoint, istio-east-west), and agentgateway's.
bool IsRefusedClass(std::string_view class_name);

void AddClassStatuses(const Inputs& in, Outputs& out);

}  // namespace wavetank::gatewayapi
