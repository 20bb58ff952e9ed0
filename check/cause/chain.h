// The causal chain of an event: back from what was seen, stage by stage, to the inputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "check/cause/story.h"

namespace wavetank::check {

struct Chain {
  struct Hop {
    Time at{};
    std::string what;
    std::optional<size_t> input;  // its index, if it is one
  };
  std::vector<Hop> hops;  // the input first, what was asked about last
};

// Push number `number` of an istiod; one chain for each istiod that made a push of that number. NotFound says how many
// there were.
absl::StatusOr<std::vector<Chain>> ChainsOfPush(const Story& story, int64_t number);
// The how-manieth response that was refused, from 1.
absl::StatusOr<Chain> ChainOfNack(const Story& story, int64_t number);
// The last time until `at` that the proxy was sent the address ("10.2.0.7" or with a port), or lost it. NotFound: it
// was never sent it.
absl::StatusOr<Chain> ChainOfEndpoint(const Story& story, const std::string& address, const std::string& proxy,
                                      Time at);

}  // namespace wavetank::check
