// Which JSON values are what their text says, so that a log can hold them.
#pragma once

#include "nlohmann/json.hpp"

namespace wavetank {

// Whether JsonText() and ParseJson() lead back to this very value, types of numbers included: not so for bytes that are
// no UTF-8, for numbers that are none, and for whole numbers from 0 on that are held as signed. O(value).
bool IsWhatItsTextSays(const nlohmann::json& value);

}  // namespace wavetank
