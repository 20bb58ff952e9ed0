// A place for what somebody makes of a version of a pod, so that all who need the same have one of it: many registries
// read the same pods. Beside ParsePod's view (core/kube/types.h), and gone with the object.
#pragma once

#include "core/kube/object.h"

namespace wavetank::kube {

// Of one user: core/registry/kube/endpoint_builder.cc.
Object::ViewSlot& MadeOfPod(const Object& pod);

}  // namespace wavetank::kube
