// x-kubernetes-validations: the rules in CEL that the schema of a CustomResourceDefinition lays on its objects.
// apiextensions-apiserver: pkg/apiserver/schema/cel/{validation,values}.go
//
// Fault model: rules and objects are from anybody. All rules of one object together take at most so many steps; what a
// rule asks for and nobody here has (cel_functions.cc) leaves that rule unasked, as Unasked() tells its author.
#pragma once

#include <string>
#include <vector>

#include "fakes/kube/objects/api_error.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

struct RuleVerdict {
  std::vector<FieldError> errors;
  std::vector<std::string> warnings;  // of what was so before, where the release lets that be
};

// `old`: what the object replaces; null: nothing. `ratchets`: rules about what has not changed do not refuse
// (CRDValidationRatcheting, on since Kubernetes 1.30).
RuleVerdict CheckSchemaRules(const nlohmann::json& schema, const nlohmann::json& object, const nlohmann::json& old,
                             bool ratchets);

// Whether it, or what is in it, has any.
bool HasSchemaRules(const nlohmann::json& schema);

struct RuleProblem {
  std::string path;  // ".properties[spec].x-kubernetes-validations[0].rule"
  std::string rule, why;
  bool refused = false;  // it is no expression; else it is not evaluated here
};
// What a definition's schema says that is no rule, or none that is evaluated. O(schema).
std::vector<RuleProblem> FindRuleProblems(const nlohmann::json& schema);

}  // namespace wavetank::fakekube::http
