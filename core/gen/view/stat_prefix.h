// Statistics names made from the patterns of mesh config (istiod: pilot/pkg/networking/telemetry/telemetry.go).
#pragma once

#include <string>
#include <string_view>

#include "core/model/service.h"

namespace wavetank::pilot {

// %SERVICE%, %SERVICE_FQDN%, %SUBSET_NAME%, %SERVICE_PORT% and %SERVICE_PORT_NAME% replaced, in this order.
std::string BuildStatPrefix(std::string_view pattern, std::string_view host, std::string_view subset, const Port& port,
                            const ServiceAttributes& attributes);

}  // namespace wavetank::pilot
