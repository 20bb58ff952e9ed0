// A moment of a run as a person names it. One clock counts: virtual time since the world's beginning, as every output
// prints it; or a step by its name, and how long after it began.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::scenario {

struct Moment {
  std::string step;   // empty: the world's beginning
  Duration offset{};  // since then
};

// "30s", "1m30s", "'scaled to 3'+2s", "scaled to 3+2s", "scaled to 3". `steps`: the names that there are; part of a
// name will do if only one holds it. InvalidArgument names `option` and what may be written; a step that is not there
// is answered with those that are.
absl::StatusOr<Moment> ParseMoment(std::string_view option, std::string_view text,
                                   const std::vector<std::string>& steps);

}  // namespace wavetank::scenario
