// The first input of a log after which something does not hold any more.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "check/cause/question.h"

namespace wavetank::check {

struct Bisection {
  std::optional<size_t> input;  // its index; nothing: it holds to the end
  std::string before, found;    // what was seen after the inputs before it, and after it
  Time at{};                    // of an invariant: when it was broken
  size_t trials = 0;
};

// Worlds of the first inputs alone, brought to rest; `at_a_time` of them in processes of their own. Asked is the
// boundary between a beginning that holds and one that does not: of several, one. FailedPrecondition: it holds after
// none of the beginnings that were tried.
absl::StatusOr<Bisection> Bisect(const Question& question, const Story& story, int at_a_time,
                                 const std::function<void(std::string_view)>& progress);

}  // namespace wavetank::check
