// The filters that verify JWTs for a workload's RequestAuthentications: Envoy's, and Istio's, which keeps what the
// tokens say (istiod: pilot/pkg/security/authn/v1beta1/policy_applier.go, pilot/pkg/networking/plugin/authn).
#pragma once

#include <string>

#include "core/model/proxy.h"

namespace wavetank::pilot {

class PushContext;

// Encoded HttpConnectionManager.http_filters fields of inbound listeners and gateways; empty without rules.
std::string MakeJwtFilters(const Proxy& proxy, const PushContext& push);

}  // namespace wavetank::pilot
