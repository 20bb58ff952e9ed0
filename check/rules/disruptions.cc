// PodDisruptionBudgets, which a drain of nodes has to ask.
#include "check/rules/look.h"
#include "check/rules/rule.h"
#include "core/base/json_access.h"
#include "core/kube/label_selector.h"
#include "fmt/format.h"

namespace wavetank::check {
namespace {

using nlohmann::json;

std::string CountText(const json& value) { return value.is_string() ? TextOf(value) : value.dump(); }

// By what it says, not by pods that happen to be unwell: as many must stay as there are to be
// (kubernetes: pkg/controller/disruption, whose result its status holds).
void DrainsBlocked(const Mesh& mesh, Findings& findings) {
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& budget : mesh.List(*cluster, "PodDisruptionBudget")) {
      const json& spec = At(budget->body, "spec");
      const auto selector = kube::LabelSelector::FromJson(At(spec, "selector"));
      if (!selector.ok()) continue;
      int pods = 0;
      std::string whose;
      for (const sim::PodProcess* pod : mesh.Pods(*cluster)) {
        if (pod->pod()->meta.ns != budget->meta.ns || !selector->Matches(pod->pod()->meta.labels)) continue;
        if (pods++ == 0) whose = NameOf(*OwnerOf(mesh, *cluster, *pod));
      }
      const json& status = At(budget->body, "status");
      const int64_t expected = Number(status, "expectedPods"), desired = Number(status, "desiredHealthy");
      if (pods == 0 || expected == 0 || desired < expected) continue;
      const bool most = !At(spec, "maxUnavailable").is_null();
      const std::string says = most ? "maxUnavailable " + CountText(At(spec, "maxUnavailable"))
                                    : "minAvailable " + CountText(At(spec, "minAvailable"));
      findings.Add(
          *cluster, *budget,
          fmt::format("{} of {} pod{} ({}): no pod of them may be evicted, and `kubectl drain` of {} waits "
                      "for ever",
                      says, expected, expected == 1 ? "" : "s", whose, expected == 1 ? "its node" : "their nodes"));
      if (expected == 1) {
        findings.Explain("a node's upgrade stands still until somebody deletes the pod or the budget",
                         "run at least two replicas (of a HorizontalPodAutoscaler: minReplicas), or remove the budget");
      }
    }
  }
}

}  // namespace

const std::vector<Rule>& DisruptionRules() {
  static const auto* const rules = new std::vector<Rule>{
      {"WT705", "DrainsBlocked", Level::kWarning,
       "a node's upgrade stands still until somebody deletes the pods or the budget",
       "keep minAvailable below the replicas, or maxUnavailable at 1 or more", "istio/istio#12602", DrainsBlocked},
  };
  return *rules;
}

}  // namespace wavetank::check
