// EnvoyFilters' patches to listeners and what is inside (istiod:
// pilot/pkg/networking/core/v1alpha3/envoyfilter/listener_patch.go, listener_builder.go patchListeners).
#pragma once

#include <string>
#include <vector>

#include "core/push/policies/envoy_filters.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

// Encoded listeners of one context, patched and then named. `may_add`: patches may add listeners.
std::vector<Resource> PatchListeners(const EnvoyPatches& patches, config::EnvoyFilter::Context context,
                                     const std::vector<std::string>& encoded, bool may_add);

}  // namespace wavetank::pilot
