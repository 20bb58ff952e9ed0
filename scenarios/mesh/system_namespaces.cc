#include "scenarios/mesh/system_namespaces.h"

#include "core/base/json_access.h"
#include "core/security/namespace_controller.h"
#include "sim/mending/installation.h"

namespace wavetank::scenario {

using nlohmann::json;

SystemNamespaceSet SystemNamespaces(const std::vector<json>& objects) {
  SystemNamespaceSet out = {sim::kSystemNamespace};
  for (const json& object : objects) {
    const std::string kind = Text(object, "kind");
    const json& meta = At(object, "metadata");
    const bool pod = kind == "Pod";
    if (pod || kind == "Deployment") {
      const std::string ns = Text(meta, "namespace");
      if (sim::IsIstiod(pod ? object : At(object, {"spec", "template"}), ns)) out.insert(ns);
    } else if (kind == "Namespace" && At(meta, "annotations").contains(security::kControlPlaneClustersAnnotation)) {
      out.insert(Text(meta, "name"));
    }
  }
  return out;
}

const std::string& MainOf(const SystemNamespaceSet& namespaces) {
  for (const std::string& ns : namespaces) {
    if (ns != sim::kSystemNamespace) return ns;
  }
  return *namespaces.begin();
}

}  // namespace wavetank::scenario
