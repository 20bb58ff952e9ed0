// What istiod's environment changes about what it generates.
#pragma once

namespace wavetank::pilot {

// By variable (core/settings/istiod_variables.tsv says what each does); istiod: pilot/pkg/features/pilot.go.
struct Features {
  bool gateways_by_namespace = false;  // PILOT_SCOPE_GATEWAY_TO_NAMESPACE
  bool http10 = false;                 // PILOT_HTTP10
};

}  // namespace wavetank::pilot
