// What `why` answers of an event log beside endpoints: failed requests by their root cause, and causal chains.
#pragma once

#include <optional>
#include <string>

namespace wavetank::cli {

struct LogQuestion {
  std::string log, at, endpoint, proxy;  // endpoint and proxy: why it was sent that address last, or lost it
  std::optional<int64_t> push, nack;     // why there was this push, this refusal
  bool json = false;
};

// The exit code.
int AnswerChain(const LogQuestion& question);
int AnswerFailures(const LogQuestion& question);

}  // namespace wavetank::cli
