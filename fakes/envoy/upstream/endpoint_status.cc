#include "fakes/envoy/upstream/endpoint_status.h"

#include <string_view>
#include <utility>

namespace wavetank::envoysim {

std::string HealthFlags(const EndpointStatus& endpoint) {
  const std::pair<bool, std::string_view> flags[] = {
      {endpoint.failed_active_hc, "/failed_active_hc"},
      {endpoint.outlier_ejected, "/failed_outlier_check"},
      {!endpoint.healthy, "/failed_eds_health"},
      {endpoint.degraded_active_hc, "/degraded_active_hc"},
      {endpoint.pending_dynamic_removal, "/pending_dynamic_removal"},
      {endpoint.pending_active_hc, "/pending_active_hc"},
      {endpoint.excluded_via_immediate_hc_fail, "/excluded_via_immediate_hc_fail"},
      {endpoint.active_hc_timeout, "/active_hc_timeout"},
  };
  std::string out;
  for (const auto& [set, name] : flags) {
    if (set) out += name;
  }
  return out;
}

}  // namespace wavetank::envoysim
