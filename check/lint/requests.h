// Requests of every application to every Service, sent in a fork, so that the mesh stays as it is.
#pragma once

#include <string>
#include <vector>

#include "check/mesh/mesh.h"
#include "check/rules/rule.h"

namespace wavetank::check {

struct RequestsSent {
  std::vector<RequestOutcome> outcomes;
  std::vector<std::string> notes;  // what was not tried, and why
};

// Of clients with a sidecar, at most 400 pairs of client and Service, 20 requests each. Refusals on purpose (of
// authorization, of a route that does not take "/", of an injected fault) do not count as failures: other rules know
// them.
RequestsSent SendRequests(const Mesh& mesh);

}  // namespace wavetank::check
