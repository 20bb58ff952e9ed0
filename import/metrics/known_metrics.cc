#include "import/metrics/known_metrics.h"

#include <algorithm>

namespace wavetank::importing {

const KnownMetric* FindKnownMetric(std::string_view name) {
  static const auto* const table = new std::vector<KnownMetric>{
      {"pilot_xds", false, {}},
      {"pilot_services", false, {}},
      {"pilot_xds_pushes", true, {"type"}},
      {"pilot_inbound_updates", true, {"type"}},
      {"pilot_total_xds_rejects", true, {}},
      {"citadel_server_csr_count", true, {}},
      {"citadel_server_success_cert_issuance_count", true, {}},
      {"sidecar_injection_requests_total", true, {}},
      {"sidecar_injection_success_total", true, {}},
      {"kube_deployment_spec_replicas", false, {"namespace", "deployment"}},
      {"kube_deployment_status_replicas", false, {"namespace", "deployment"}},
      {"kube_deployment_status_replicas_ready", false, {"namespace", "deployment"}},
      {"kube_deployment_status_replicas_available", false, {"namespace", "deployment"}},
      {"kube_statefulset_replicas", false, {"namespace", "statefulset"}},
      {"kube_statefulset_status_replicas_ready", false, {"namespace", "statefulset"}},
      {"kube_daemonset_status_number_ready", false, {"namespace", "daemonset"}},
      {"kube_pod_status_ready", false, {"namespace", "pod", "condition"}},
      {"kube_node_spec_unschedulable", false, {"node"}},
      {"kube_node_status_condition", false, {"node", "condition", "status"}},
      {"kube_endpoint_address_available", false, {"namespace", "endpoint"}},
  };
  const auto it = std::find_if(table->begin(), table->end(), [&](const KnownMetric& m) { return m.name == name; });
  return it == table->end() ? nullptr : &*it;
}

}  // namespace wavetank::importing
