// Configuration for workloads that are not there.
#include <algorithm>

#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

// The labels that an object selects workloads by; null: it selects none.
const json& SelectorOf(const kube::Object& object) {
  const json& spec = At(object.body, "spec");
  if (object.kind == "Gateway") return At(spec, "selector");
  if (object.kind == "Sidecar" || object.kind == "EnvoyFilter") return At(spec, {"workloadSelector", "labels"});
  if (object.kind == "DestinationRule") return At(spec, {"workloadSelector", "matchLabels"});
  return At(spec, {"selector", "matchLabels"});
}

void NoWorkloads(const Mesh& mesh, Findings& findings) {
  static constexpr const char* kKinds[] = {"AuthorizationPolicy.security.istio.io",
                                           "DestinationRule.networking.istio.io",
                                           "EnvoyFilter.networking.istio.io",
                                           "Gateway.networking.istio.io",
                                           "PeerAuthentication.security.istio.io",
                                           "ProxyConfig.networking.istio.io",
                                           "RequestAuthentication.security.istio.io",
                                           "Sidecar.networking.istio.io",
                                           "Telemetry.telemetry.istio.io",
                                           "WasmPlugin.extensions.istio.io"};
  for (const auto& cluster : mesh.clusters()) {
    if (!cluster->primary || cluster->istiod == nullptr) continue;  // who serves nobody selects nobody
    const auto pods = mesh.ServedPods(*cluster);
    for (const char* kind : kKinds) {
      for (const kube::ObjectRef& object : mesh.List(*cluster, kind)) {
        const json& selector = SelectorOf(*object);
        if (!selector.is_object() || selector.empty()) continue;
        kube::Labels labels;
        for (const auto& [key, value] : selector.items()) labels[key] = TextOf(value);
        // In the root namespace it is for all namespaces; a Gateway's selector always is.
        const bool everywhere = object->kind == "Gateway" || object->meta.ns == kSystemNamespace;
        const bool any = std::any_of(pods.begin(), pods.end(), [&](const auto* pod) {
          return (everywhere || pod->pod()->meta.ns == object->meta.ns) && Selects(labels, pod->pod()->meta.labels);
        });
        if (!any)
          findings.Add(*cluster, *object,
                       fmt::format("no pod that its istiod serves has the labels {}", LabelText(labels)));
      }
    }
  }
}

}  // namespace

const std::vector<Rule>& SelectorRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"IST0127", "NoMatchingWorkloadsFound", Level::kWarning, "it holds for nothing",
       "mend the selector or the pods' labels", "", NoWorkloads},
  };
  return *rules;
}

}  // namespace wavetank::check
