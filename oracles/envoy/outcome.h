// What a case came to on one of the two Envoys, and how two of them are compared.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "oracles/envoy/case.h"

namespace wavetank::envoydiff {

// One request as the client and the proxy's access log tell it.
struct RequestOutcome {
  int code = 0;  // 0: connection refused or closed without an answer
  std::string body;
  std::string headers;  // those that the case wants to see
  bool logged = false;  // by an HTTP connection manager; what follows is empty otherwise
  std::string flags, details, route, cluster, upstream, failure, filter_chain;
  int attempts = 0;
  double seconds = 0;  // until the client had its answer
  // All but the upstream host, which the body of an answer tells if it matters. Without the body: what arithmetic
  // decides, whichever host a random start chooses.
  std::string Key(bool with_body = true) const;
};

struct Outcome {
  std::vector<std::string> ads;                       // messages to the server: "CDS v='v1' n='n1' [a b] error 13: ..."
  std::vector<std::vector<RequestOutcome>> requests;  // by "requests" step
  std::vector<std::string> clusters, listeners, routes, endpoints;  // in force at the end, sorted
  std::map<std::string, uint64_t> stats;
  std::vector<std::string> unknown_stats;                // that the real one has not
  std::map<std::string, std::vector<std::string>> logs;  // lines by file, as access_logs.h makes them comparable
};

// Differences in words, one each; empty if the two agree. Counts of equal outcomes are equal; those of the bodies among
// them, which tell the host, may differ by one (round robin starts at a random host). Case::counts_about: all counts
// may. In a statistical case they may differ by 4.5 standard deviations of the difference of two binomial counts.
// Medians of times may differ by half, and by what a busy machine does. A case in which nothing was seen that can
// differ is a difference of its own.
std::vector<std::string> Compare(const Case& c, const Outcome& simulated, const Outcome& real);

// How many steps' requests agree before one's do not.
size_t StepsThatAgree(const Case& c, const Outcome& simulated, const Outcome& real);

}  // namespace wavetank::envoydiff
