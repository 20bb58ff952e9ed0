// A client's own retries, as scenarios write them.
#pragma once

#include "nlohmann/json.hpp"
#include "scenarios/language/yaml_reader.h"
#include "sim/apps/retry.h"

namespace wavetank::scenario {

// What the row "retries" cannot say, and the row's own mistakes. Nothing if the field is not there.
void CheckRetries(const Field& f);
// Of what was checked.
sim::RetryRule RetriesOf(const nlohmann::json& retries);

}  // namespace wavetank::scenario
