#include "core/gateway_api/grants.h"

#include "core/base/json_access.h"

namespace wavetank::gatewayapi {

Grants::Grants(const std::vector<kube::ObjectRef>& reference_grants) {
  static const std::set<std::string> kFrom = {"Gateway",  "HTTPRoute", "GRPCRoute",
                                              "TLSRoute", "TCPRoute",  "ListenerSet"};
  static const std::set<GroupKind> kTo = {{"", "ConfigMap"}, {"", "Secret"}, {"", "Service"}};
  for (const kube::ObjectRef& grant : reference_grants) {
    const nlohmann::json& spec = At(grant->body, "spec");
    for (const nlohmann::json& from : Items(At(spec, "from"))) {
      const GroupKind kind = KindOf(from, {});
      if (kind.group != kGroup || !kFrom.contains(kind.kind)) continue;  // another controller's matter
      for (const nlohmann::json& to : Items(At(spec, "to"))) {
        const GroupKind target = KindOf(to, {});
        if (!kTo.contains(target)) continue;
        allowed_.insert({kind.kind, Text(from, "namespace"), target, grant->meta.ns, Text(to, "name")});
      }
    }
  }
}

bool Grants::Allows(const std::string& from, const std::string& from_ns, const GroupKind& to, const std::string& to_ns,
                    const std::string& name) const {
  return allowed_.contains({from, from_ns, to, to_ns, ""}) || allowed_.contains({from, from_ns, to, to_ns, name});
}

}  // namespace wavetank::gatewayapi
