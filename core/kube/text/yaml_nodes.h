// Trees of YAML whose values are looked at one by one, each with its line and column: scenarios, kubeconfigs. What is
// read as a whole is read by yaml.h.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace YAML {
class Node;
}

namespace wavetank::kube {

// Plain scalars are what ParseYaml makes of them; keys stay as they are written, a mapping's own keys come before those
// that it merges, and of tags `!!str` alone counts. InvalidArgument "<file>:<line>:<column>: what; remedy" for trees
// deeper than bounds::kDepth or larger than bounds::kValues after aliases are expanded, and for keys that are no text.
absl::StatusOr<nlohmann::json> YamlToJson(const YAML::Node& node, const std::string& file);

// The documents of a text. Throws YAML::Exception where it is no YAML, and where text stands behind a document's end
// that begins no other one, of which yaml-cpp makes empty documents without end. O(text).
std::vector<YAML::Node> LoadYamlDocuments(const std::string& text);

}  // namespace wavetank::kube
