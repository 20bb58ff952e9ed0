// Comparison of JSON trees, exact: no field is left out, nothing is tolerated. The only orders made canonical are the
// two that docs/golden-cases.md names, and that of several access logs, which istiod leaves to a map.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace wavetank::golden {

struct Difference {
  // "outbound|80||a.example.filter_chains[2].name": resources of an array by their name, then fields and indices.
  std::string path;
  std::string expected, actual;  // as compact JSON; empty if the value is missing on that side
};

// At most `limit` differences, in order of the expected tree. Complexity: linear in both trees.
std::vector<Difference> Compare(const nlohmann::json& expected, const nlohmann::json& actual, size_t limit);

// Sorts the endpoints of each locality, the per-port passthrough chains of virtualInbound and the access logs of one
// place in one xDS resource.
void MakeCanonical(nlohmann::json& resource);
// `name`, or a ClusterLoadAssignment's `cluster_name`; empty if it has none.
std::string ResourceName(const nlohmann::json& resource);

// Lines of both texts, the changed ones with three lines around them, as `diff -u` prints them; empty if equal.
std::string UnifiedDiff(std::string_view expected, std::string_view actual, std::string_view expected_name,
                        std::string_view actual_name);

}  // namespace wavetank::golden
