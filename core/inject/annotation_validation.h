// The annotations that must be right before a pod is injected (istiod: pkg/kube/inject/validate.go).
#pragma once

#include "absl/status/status.h"
#include "core/kube/object.h"

namespace wavetank::pilot {

// InvalidArgument names every annotation whose value cannot be used.
absl::Status ValidateInjectionAnnotations(const kube::Labels& annotations);

}  // namespace wavetank::pilot
