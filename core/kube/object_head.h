// What an object is and what its metadata say, read without taking its body.
#pragma once

#include "absl/status/statusor.h"
#include "core/kube/object.h"

namespace wavetank::kube {

// As Object::FromJson(), with the same errors, but `body` is only looked at: the object's own body stays null.
absl::StatusOr<ObjectRef> ReadHead(const nlohmann::json& body);

// As Object::FromJson(), of a body that ReadHead() accepted and that has not become deeper since.
// InvalidArgument as there.
absl::StatusOr<ObjectRef> FromReadBody(nlohmann::json body);

// Deeper than any object may be.
bool NestedTooDeep(const nlohmann::json& body);

}  // namespace wavetank::kube
