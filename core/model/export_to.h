// Reads exportTo, of configurations and of a Service's annotation (istiod: pkg/config/visibility).
#pragma once

#include <string>
#include <vector>

#include "core/model/service.h"

namespace wavetank::pilot {

// "*", ".", "~" or names of namespaces.
ExportTo ParseExportTo(const std::vector<std::string>& targets);

}  // namespace wavetank::pilot
