// What a policy says it is attached to, in place of a selector (istio.io/api: type/v1beta1, PolicyTargetReference).
#pragma once

#include <string>

namespace wavetank::config {

struct PolicyTarget {
  std::string group, kind, name, ns;
  friend bool operator==(const PolicyTarget&, const PolicyTarget&) = default;
};

}  // namespace wavetank::config
