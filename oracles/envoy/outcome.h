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
  // All but the upstream host, which the body of an answer tells if it matters.
  std::string Key() const;
};

struct Outcome {
  std::vector<std::string> ads;                       // messages to the server: "CDS v='v1' n='n1' [a b] error 13: ..."
  std::vector<std::vector<RequestOutcome>> requests;  // by "requests" step
  std::vector<std::string> clusters, listeners, routes, endpoints;  // in force at the end, sorted
  std::map<std::string, uint64_t> stats;
  std::map<std::string, std::vector<std::string>> logs;  // lines by file, as access_logs.h makes them comparable
};

// Differences in words, one each; empty if the two agree. Counts of equal outcomes may differ by one (round robin
// starts at a random host), or, in a statistical case, by 4.5 standard deviations of the difference of two binomial
// counts.
std::vector<std::string> Compare(const Case& c, const Outcome& simulated, const Outcome& real);

}  // namespace wavetank::envoydiff
