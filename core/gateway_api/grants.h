// ReferenceGrants: which namespaces let others refer to what is in them
// (istiod: pilot/pkg/config/kube/gatewaycommon/references.go).
#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/gateway_api/objects.h"

namespace wavetank::gatewayapi {

class Grants {
 public:
  explicit Grants(const std::vector<kube::ObjectRef>& reference_grants);

  // An object of kind `from` in `from_ns` may refer to `name` of kind `to` in `to_ns`.
  bool Allows(const std::string& from, const std::string& from_ns, const GroupKind& to, const std::string& to_ns,
              const std::string& name) const;

 private:
  using Key = std::tuple<std::string, std::string, GroupKind, std::string, std::string>;  // the name last, "": any
  std::set<Key> allowed_;
};

}  // namespace wavetank::gatewayapi
