// What Kubernetes' library makes of texts: quantities, addresses and ranges of addresses, versions.
// Kubernetes: staging/src/k8s.io/apiserver/pkg/cel/library/{quantity,ip,cidr,semverlib}.go
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cel/cel_functions.h"
#include "core/base/cel/cel_value.h"

namespace wavetank::cel {

bool IsQuantity(std::string_view text);
CelValue MakeQuantity(std::string_view text);
CelValue MakeIp(std::string_view text);
CelValue MakeCidr(std::string_view text);
// `normal`: "v1.01" is taken for 1.1.0.
CelValue MakeSemver(std::string_view text, bool normal);

// A member function of such an object, which is the first of `of`. A failure: it is none, or has no such function.
CelValue ObjectCall(CelFunction function, const CelMap& object, const std::vector<CelValue>& of);
// Nothing: they are not both of one of these kinds.
std::optional<bool> SameObjects(const CelMap& a, const CelMap& b);
// As string() has it; nothing: it is none of these.
std::optional<std::string> ObjectText(const CelMap& object);

}  // namespace wavetank::cel
