// Flows into inputs (who asked whom, at which rate; what servers answered) and claims (what came of it).
#pragma once

#include <map>
#include <string>

#include "import/evidence/traffic.h"

namespace wavetank::importing {

// What objects tell of pods: which an access log names by its name or address alone.
struct PodFacts {
  PodName name;
  std::string app, version;  // its labels
};
struct PodDirectory {
  std::map<std::string, PodFacts> by_ip;
  std::multimap<std::string, PodFacts> by_name;
  bool empty() const { return by_name.empty(); }
};

// Requests of one client for one thing are an input for each stretch of one rate: as many as there were, evenly from
// the first to the last. Each window of a flow is a claim. What a workload answered is an input when it changes by
// more than chance. Appends to `evidence`, notes included. O(windows * log windows).
void InferTraffic(const Traffic& traffic, const PodDirectory& pods, Evidence& evidence);

}  // namespace wavetank::importing
