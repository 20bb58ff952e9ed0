// A fleet as the page that it is read from.
#pragma once

#include <string>
#include <vector>

#include "capacity/fleet/fleet.h"

namespace wavetank::capacity {

// YAML that ParseFleet() reads as the same fleet: times to the millisecond, shares and exponents to four digits.
// `notes` come first, as comments.
std::string FleetText(const Fleet& fleet, const std::vector<std::string>& notes = {});

}  // namespace wavetank::capacity
