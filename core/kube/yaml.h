// YAML 1.1 as Kubernetes' tools read it (sigs.k8s.io/yaml): a tree of JSON values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace YAML {
class Node;
}

namespace wavetank::kube {

// Hostile input: InvalidArgument "<file>:<line>:<column>: what; remedy" for trees deeper than 100 or larger than two
// million values after aliases are expanded, and for keys that are no text.
absl::StatusOr<nlohmann::json> YamlToJson(const YAML::Node& node, const std::string& file);

// yaml-cpp recurses on its own: what nests absurdly must be refused before it is parsed.
absl::Status CheckYamlNesting(std::string_view text, const std::string& file);

// The documents of a text. Throws YAML::Exception where it is no YAML, and where text stands behind a document's end
// that begins no other one, of which yaml-cpp makes empty documents without end. O(text).
std::vector<YAML::Node> LoadYamlDocuments(const std::string& text);

// One document; an empty one is null.
absl::StatusOr<nlohmann::json> ParseYaml(std::string_view text, const std::string& file);

}  // namespace wavetank::kube
