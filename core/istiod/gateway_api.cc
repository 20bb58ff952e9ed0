#include "core/istiod/gateway_api.h"

#include <utility>
#include <vector>

#include "core/gateway_api/control/instances.h"
#include "core/inject/injection_webhook.h"
#include "core/istiod/istiod.h"
#include "core/registry/crd_client.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"

namespace wavetank::pilot {

std::unique_ptr<gatewayapi::Controller> MakeGatewayApi(const GatewayApiParts& parts, const IstiodOptions& options,
                                                       const std::string& revision) {
  gatewayapi::Controller::Surroundings around;
  around.instances = [discovery = &parts.discovery, registries = parts.registries](
                         const std::string& ns, const std::vector<std::string>& services, const std::set<int>& ports) {
    return gatewayapi::ResolveInstances(registries->aggregate(), discovery->endpoints(), ns, services, ports);
  };
  around.has_service = [registries = parts.registries](const std::string& hostname, const std::string& ns) {
    for (const ServiceRef& service : registries->aggregate().Services()) {
      if (service->hostname == hostname && service->attributes.ns == ns) return true;
    }
    return false;
  };
  around.mesh = parts.mesh;
  around.reads = parts.reads;
  around.injection = [webhook = &parts.webhook]() -> const InjectionConfig& { return webhook->config(); };
  around.proxy_configs = [crds = &parts.crds] {
    std::vector<kube::ObjectRef> out;
    for (const auto& [key, object] : crds->Raw(ConfigKind::kProxyConfig)) out.push_back(object);
    return out;
  };
  gatewayapi::Controller::Options with;
  with.revision = revision;
  with.cluster_id = options.cluster_id.str();
  with.domain_suffix = options.domain_suffix;
  with.profile = options.profile;
  return std::make_unique<gatewayapi::Controller>(parts.client, parts.host, parts.configs, std::move(around),
                                                  std::move(with));
}

}  // namespace wavetank::pilot
