// Which updates concern which type of resource (istiod: skippedCdsConfigs, skippedEdsConfigs, ldsNeedsPush,
// rdsNeedsPush and ndsNeedsPush in pilot/pkg/xds/).
#pragma once

#include <set>

#include "core/model/proxy.h"
#include "core/model/push_request.h"

namespace wavetank::pilot {

// Some resource of the type may depend on a configuration of the kind. For CDS, EDS, LDS, RDS and NDS.
bool Concerns(XdsType type, ConfigKind kind, const Proxy& proxy);

// An update that names no configuration concerns everything.
bool AnyConcerns(XdsType type, const std::set<ConfigKey>& updated, const Proxy& proxy);

}  // namespace wavetank::pilot
