// What `why` answers of an event log beside endpoints: failed requests by their root cause, and causal chains.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/cause/remedies.h"

namespace wavetank::cli {

struct LogQuestion {
  std::string log, at, endpoint, proxy;  // endpoint and proxy: why it was sent that address last, or lost it
  std::optional<int64_t> push, nack;     // why there was this push, this refusal
  bool json = false;
  size_t tries = 64;  // of failed requests: so many inputs are left out, one at a time
};

// The exit code.
int AnswerChain(const LogQuestion& question);
int AnswerFailures(const LogQuestion& question);

// What `check` finds, for each of `suspects`; how far it is goes to standard error.
absl::StatusOr<std::vector<std::vector<check::KnownFault>>> FaultsOf(const check::Story& story,
                                                                     const std::vector<check::Suspect>& suspects);
// `anew`: of what an input changed, so that what was there before is not it, unless there is nothing else.
std::string FaultsText(const std::vector<check::KnownFault>& faults, bool anew);
nlohmann::ordered_json FaultsJson(const std::vector<check::KnownFault>& faults);

}  // namespace wavetank::cli
