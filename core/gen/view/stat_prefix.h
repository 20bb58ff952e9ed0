// Statistics names made from the patterns of mesh config (istiod: pilot/pkg/networking/telemetry/telemetry.go).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/service.h"
#include "core/profile/profile.h"

namespace wavetank::pilot {

// %SERVICE%, %SERVICE_NAME%, %SERVICE_FQDN%, %SUBSET_NAME%, %TARGET_PORT%, %SERVICE_PORT% and %SERVICE_PORT_NAME%
// replaced, in this order, as far as the release knows them. `target_port`: 0 where istiod has none to tell; nullopt
// where it leaves %TARGET_PORT% as it is.
std::string BuildStatPrefix(std::string_view pattern, std::string_view host, std::string_view subset, const Port& port,
                            const ServiceAttributes& attributes, const Profile& profile,
                            std::optional<uint32_t> target_port = 0);

}  // namespace wavetank::pilot
