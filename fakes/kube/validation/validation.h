// What kube-apiserver refuses, in its words (422 Invalid with a cause per field, 400 for what has the wrong type):
// names, labels, and the fields of the kinds that a mesh's users write by hand. kubernetes: pkg/apis/core/validation,
// pkg/apis/apps/validation; apiextensions: pkg/apis/apiextensions/validation.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/kube/object.h"
#include "fakes/kube/objects/kinds.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// `body` is defaulted already. `previous` is the stored version, null for a new object; what is wrong with that already
// is no reason to refuse the next. O(body).
absl::Status Validate(const nlohmann::json& body, const kube::Object* previous);

// What is wrong with a name of an object of `kind`; empty if nothing is.
std::string NameProblem(const GroupKind& kind, std::string_view name);

// "etcdserver: request is too large" (500) for what etcd would not take, which holds 1.5 MiB (etcd:
// --max-request-bytes). O(body).
absl::Status CheckSize(const nlohmann::json& body);

}  // namespace wavetank::fakekube
