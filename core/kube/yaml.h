// YAML 1.1 as Kubernetes' tools read it (sigs.k8s.io/yaml on gopkg.in/yaml.v2, whose parser is a port of libyaml, which
// reads here): values of JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace wavetank::kube {

struct YamlDocument {
  nlohmann::json value;         // never null: a document of nothing is none
  int line = 0;                 // where it begins, from 1
  std::vector<int> item_lines;  // of a mapping's sequence "items": where each begins
};

// The documents of a text, in O(text). InvalidArgument "<file>:<line>:<column>: what; remedy": it is no YAML, nests
// deeper than bounds::kDepth, or holds more than bounds::kValues after aliases are expanded, or has keys that are no
// text.
absl::StatusOr<std::vector<YamlDocument>> ParseYamlDocuments(std::string_view text, const std::string& file);

// The first document; an empty text is null.
absl::StatusOr<nlohmann::json> ParseYaml(std::string_view text, const std::string& file);

// What a scalar that is written plainly means: null, a boolean, a number, else itself. Infinities and what is no number
// are text, as JSON has no word for them.
nlohmann::json ResolveYamlScalar(std::string_view text);

}  // namespace wavetank::kube
