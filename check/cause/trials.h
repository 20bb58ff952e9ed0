// Answers of several parts of a story at once, each in a process of its own.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "check/cause/question.h"

namespace wavetank::check {

// One answer for each of `parts`, in their order. Errors are those of Ask(), and of the processes.
absl::StatusOr<std::vector<Answer>> AskAll(const Question& question, const Story& story,
                                           const std::vector<std::vector<size_t>>& parts, int at_a_time);

// Processors of this machine.
int Processors();

}  // namespace wavetank::check
