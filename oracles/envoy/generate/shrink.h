// Makes a case that differs smaller.
#pragma once

#include <functional>

#include "nlohmann/json.hpp"

namespace wavetank::envoydiff {

// Leaves out elements of lists and members of objects, large ones first, as long as `still` says of what is left that
// it is as interesting as before; asks it at most `tries` times. The result is interesting if `start` is.
nlohmann::json ShrinkCase(nlohmann::json start, int tries, const std::function<bool(const nlohmann::json&)>& still);

}  // namespace wavetank::envoydiff
