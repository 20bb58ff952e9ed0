// The least of a log that still shows something: hierarchical delta debugging over clusters, moments, inputs and what
// inputs hold.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "check/cause/question.h"

namespace wavetank::check {

struct ShrinkOptions {
  int at_a_time = 1;     // processes
  std::string progress;  // file of what was found so far, from which another run goes on; empty: none
  std::function<void(std::string_view)> say;
};

struct Shrunk {
  Story story;
  Answer answer;
  size_t trials = 0;
  bool resumed = false;
};

// `question` is true of the result and of the whole story. FailedPrecondition: it is not true of the whole story, or is
// true of no input at all.
absl::StatusOr<Shrunk> Shrink(const Question& question, const Story& story, const ShrinkOptions& options);

}  // namespace wavetank::check
