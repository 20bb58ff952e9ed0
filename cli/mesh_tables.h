// A mesh in tables: what `apply` and `replay --until` print.
#pragma once

#include <vector>

#include "scenarios/survey/mesh_survey.h"

namespace wavetank::cli {

void PrintServices(const std::vector<scenario::ServiceRow>& services);
// One table per proxy. What every proxy has of itself (inbound, agent) tells nothing about the mesh: only with `all`.
void PrintEndpoints(const std::vector<scenario::EndpointRow>& endpoints, bool all);

}  // namespace wavetank::cli
