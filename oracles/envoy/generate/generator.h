// Cases by seed.
#pragma once

#include <cstdint>

#include "nlohmann/json_fwd.hpp"

namespace wavetank::envoydiff {

// A case as case files have it (oracles/envoy/case.h), always the same for a seed.
nlohmann::json GenerateCase(uint64_t seed);

}  // namespace wavetank::envoydiff
