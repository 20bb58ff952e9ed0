// Rules of pods and templates of pods that look at one part of them each (kubernetes 1.27:
// pkg/apis/core/validation/validation.go).
#pragma once

#include <string>

#include "fakes/kube/validation/field_checks.h"

namespace wavetank::fakekube {

// Of a container at the field `at`, whose pod has the node's network or not: sources of variables, propagation of
// mounts, resources that there are none of, handlers, privileges.
void CheckContainerParts(const nlohmann::json& container, bool host_network, const std::string& at,
                         FieldErrors* errors);
// Of a PodSpec at `at`: volumes of two types, tolerations, topology, names of hosts, DNS.
void CheckPodParts(const nlohmann::json& spec, const std::string& at, FieldErrors* errors);

}  // namespace wavetank::fakekube
