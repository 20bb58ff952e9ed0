#include "core/gateway_api/classes.h"

#include "core/base/json_access.h"
#include "core/gateway_api/conditions.h"
#include "core/profile/changes.h"

namespace wavetank::gatewayapi {

std::vector<BuiltInClass> BuiltInClasses(const pilot::Profile& profile) {
  std::vector<BuiltInClass> out = {{"istio", kController, "The default Istio GatewayClass"}};
  if (profile.Has(pilot::Change::kGatewayApiRemoteClass)) {
    out.push_back(
        {kRemoteClass, kUnmanagedController, "Remote to this cluster. Does not deploy or affect configuration."});
  }
  return out;
}

std::string ControllerOf(const Inputs& in, const std::string& class_name) {
  if (const kube::Object* found = in.Find("GatewayClass", "", class_name); found != nullptr) {
    const std::string controller = Text(At(found->body, "spec"), "controllerName");
    const bool unmanaged = controller == kUnmanagedController && in.profile.Has(pilot::Change::kGatewayApiRemoteClass);
    return controller == kController || unmanaged ? controller : std::string();
  }
  for (const BuiltInClass& known : BuiltInClasses(in.profile)) {
    if (known.name == class_name) return std::string(known.controller);
  }
  return {};
}

bool IsRefusedClass(std::string_view class_name) {
  return class_name == "istio-waypoint" || class_name == "istio-east-west" || class_name == "istio-agentgateway";
}

void AddClassStatuses(const Inputs& in, Outputs& out) {
  for (const kube::ObjectRef& object : in.Of("GatewayClass")) {
    if (ControllerOf(in, object->meta.name).empty()) continue;
    nlohmann::json status = At(object->body, "status");
    if (!status.is_object()) status = nlohmann::json::object();
    status["conditions"] = SetConditions(object->meta.generation, in.now, At(status, "conditions"),
                                         {{"Accepted", {"Accepted", "Handled by Istio controller"}}});
    out.statuses[{"GatewayClass", "", object->meta.name}] = std::move(status);
  }
}

}  // namespace wavetank::gatewayapi
