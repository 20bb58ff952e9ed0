// What an object is and what its metadata say, read without taking its body.
#pragma once

#include "absl/status/statusor.h"
#include "core/kube/object.h"

namespace wavetank::kube {

// As Object::FromJson(), with the same errors, but `body` is only looked at: the object's own body stays null.
absl::StatusOr<ObjectRef> ReadHead(const nlohmann::json& body);

}  // namespace wavetank::kube
