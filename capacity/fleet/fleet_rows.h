// The mappings of a fleet's YAML.
#pragma once

#include <vector>

#include "scenarios/language/rows.h"

namespace wavetank::capacity {

const std::vector<scenario::MappingRow>& FleetRows();
const scenario::MappingRow& FleetRow(std::string_view name);

}  // namespace wavetank::capacity
