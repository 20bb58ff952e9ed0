#include "core/gateway_api/control/conversion.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/gateway_api/classes.h"
#include "core/gateway_api/gateways.h"
#include "core/gateway_api/grants.h"
#include "core/gateway_api/policies/backend_tls.h"
#include "core/gateway_api/routes/routes.h"

namespace wavetank::gatewayapi {

Outputs Convert(const Inputs& in) {
  Outputs out;
  AddClassStatuses(in, out);
  const Grants grants(in.Of("ReferenceGrant"));
  ConvertedGateways gateways = ConvertGateways(in, grants);
  ConvertedRoutes routes = ConvertRoutes(in, grants, gateways.parents);
  ConvertedPolicies policies = ConvertBackendTls(in);
  CountRoutes(routes.attachments, gateways.statuses);
  out.configs = std::move(gateways.configs);
  out.configs.insert(out.configs.end(), routes.configs.begin(), routes.configs.end());
  out.configs.insert(out.configs.end(), policies.configs.begin(), policies.configs.end());
  std::sort(out.configs.begin(), out.configs.end(), [](const kube::ObjectRef& a, const kube::ObjectRef& b) {
    return std::tie(a->kind, a->meta.ns, a->meta.name) < std::tie(b->kind, b->meta.ns, b->meta.name);
  });
  out.statuses.merge(gateways.statuses);
  out.statuses.merge(routes.statuses);
  out.statuses.merge(policies.statuses);
  return out;
}

}  // namespace wavetank::gatewayapi
