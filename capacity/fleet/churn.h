// A fleet's churn as changes that one istiod sees.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "capacity/fleet/fleet.h"
#include "capacity/queue/istiod_queue.h"

namespace wavetank::capacity {

// In order of time, from the fleet's seed: each kind of churn draws for itself, so that one more changes no other.
// `seed_offset` makes another sample of the same fleet; `faster` divides every interval. ResourceExhausted: more
// changes than can be looked at; says how many.
absl::StatusOr<std::vector<ChangeEvent>> Churn(const Fleet& fleet, uint64_t seed_offset = 0, double faster = 1);

}  // namespace wavetank::capacity
