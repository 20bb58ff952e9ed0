// Clocks of several sources, put right by what two of them show: replicas of istiod that handle the same changes.
#pragma once

#include <functional>
#include <string>

#include "import/evidence/evidence.h"

namespace wavetank::importing {

// Moves the times of each replica whose clock is off by more than watches lag, and notes by how much and of how many
// events it is known. `given`: replicas whose skew the user told; they stay as they are. O(inputs * log inputs).
void AlignClocks(Evidence& evidence, const std::function<bool(const std::string& replica)>& given);

// Notes where no source tells of more than a day between what one and another tell: a log of both lasts as long, though
// a wrong clock may be all of it. O(n log n) of inputs and claims.
void NoteLongSilence(Evidence& evidence);

}  // namespace wavetank::importing
