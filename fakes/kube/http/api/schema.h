// What the schema of a CustomResourceDefinition does to its objects: fields that it does not know are dropped, what it
// gives a default gets it, and what it forbids is refused, in kube-apiserver's words (apiextensions-apiserver:
// pkg/apiserver/schema/{pruning,defaulting}, pkg/apiserver/validation; kube-openapi: pkg/validation).
//
// Fault model: schemas and objects are from anybody. Both have the nesting that the API lets in; patterns are matched
// in linear time (RE2), and one that is none matches everything.
#pragma once

#include <string>
#include <vector>

#include "fakes/kube/objects/api_error.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

// Drops what the schema does not know; apiVersion, kind and metadata of the object itself stay. The paths of what went:
// "spec.hosst". O(object).
std::vector<std::string> PruneBySchema(const nlohmann::json& schema, nlohmann::json* object);

void SetSchemaDefaults(const nlohmann::json& schema, nlohmann::json* object);

// Known: type, required, properties, additionalProperties, items, enum, pattern, lengths, bounds, multipleOf, nullable,
// allOf, anyOf, oneOf, not, x-kubernetes-int-or-string. Not looked at here: rules in CEL (schema_rules.h).
// Empty: it may be so.
std::vector<FieldError> ValidateBySchema(const nlohmann::json& schema, const nlohmann::json& object);

}  // namespace wavetank::fakekube::http
