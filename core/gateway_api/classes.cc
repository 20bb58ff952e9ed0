#include "core/gateway_api/classes.h"

#include "core/base/json_access.h"
#include "core/gateway_api/conditions.h"

namespace wavetank::gatewayapi {

const std::vector<BuiltInClass>& BuiltInClasses() {
  static const auto* const classes = new std::vector<BuiltInClass>{
      {"istio", kController, "The default Istio GatewayClass"},
      {kRemoteClass, kUnmanagedController, "Remote to this cluster. Does not deploy or affect configuration."}};
  return *classes;
}

std::string ControllerOf(const Inputs& in, const std::string& class_name) {
  if (const kube::Object* found = in.Find("GatewayClass", "", class_name); found != nullptr) {
    const std::string controller = Text(At(found->body, "spec"), "controllerName");
    return controller == kController || controller == kUnmanagedController ? controller : std::string();
  }
  for (const BuiltInClass& known : BuiltInClasses()) {
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
