// EXPR, the one small language of --holds, --shows and `always`: an expectation as scenarios have it, or an invariant.
//
//   no-foreign-pod-address                      the invariant, from beginning to end
//   requests: {flow: from-cluster1, failed: 0}  a row of scenarios/README.md; the whole log is its step
//   always: {endpoints: {...}}
//   not: {requests: {failed: 0}}                what is not so
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "check/cause/story.h"
#include "scenarios/language/scenario.h"

namespace wavetank::check {

struct Question {
  scenario::Expectation expectation;
  bool negated = false;
  std::string text;
};

// `option`: for messages, which name place and remedy. InvalidArgument: it is none, or names no flow of the story.
absl::StatusOr<Question> ParseQuestion(std::string_view option, const std::string& text, const Story& story);
// "it is not so that ..."
Question Not(Question question);

struct Answer {
  bool judged = true;  // false: nothing was sent of what it is about
  bool holds = false;
  std::string found;             // what was seen
  Time at{};                     // when an invariant was broken
  std::vector<uint64_t> inputs;  // its causes, by their numbers in the story
  // What it is a case of, without names, addresses and times: of requests what most failures met, of an invariant which
  // of its bugs and what kind of input was its last cause. Two answers of different ones have different causes.
  std::string signature;
  size_t done = 0;  // inputs that had been done then
  Duration virtual_time{};
};

// Does those of the story's inputs that `keep` names (indices, ascending), waits until the mesh is at rest and judges.
// Ends as soon as the answer cannot change any more.
absl::StatusOr<Answer> Ask(const Question& question, const Story& story, const std::vector<size_t>& keep);

}  // namespace wavetank::check
