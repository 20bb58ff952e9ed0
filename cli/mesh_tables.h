// A mesh in tables: what `apply` and `replay --until` print.
#pragma once

#include <vector>

#include "scenarios/survey/mesh_survey.h"

namespace wavetank::cli {

void PrintServices(const std::vector<scenario::ServiceRow>& services);
// One table per proxy; in a mesh of more than 24 one for all that hold the same. What every proxy has of itself
// (inbound, agent) tells nothing about the mesh: only with `all`.
void PrintEndpoints(const std::vector<scenario::ProxyEndpoints>& endpoints, bool all);
// One row per client and Service; of more than 24 clients one for all of a cluster that fare alike, with sums.
void PrintReachability(const std::vector<scenario::ReachabilityRow>& rows);

}  // namespace wavetank::cli
