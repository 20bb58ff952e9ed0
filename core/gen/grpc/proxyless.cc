#include "core/gen/grpc/proxyless.h"

#include "core/gen/rds/sidecar_routes.h"
#include "core/push/push_context.h"

namespace wavetank::pilot {
namespace {

class ProxylessGenerator final : public Generator {
 public:
  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request) override {
    GeneratedResources out;
    switch (watched.type) {
      case XdsType::kLds:
        out.resources = BuildProxylessListeners(proxy, *request.push, watched.resource_names);
        break;
      case XdsType::kRds:
        out.resources = BuildProxylessRoutes(proxy, *request.push, watched.resource_names);
        break;
      case XdsType::kCds:
        out.resources = BuildProxylessClusters(proxy, *request.push, watched.resource_names);
        break;
      default:
        out.send = false;
    }
    return out;
  }
};

}  // namespace

std::unique_ptr<Generator> MakeProxylessGenerator() { return std::make_unique<ProxylessGenerator>(); }

std::vector<Resource> BuildProxylessRoutes(const Proxy& proxy, const PushContext& push,
                                           const std::vector<std::string>& names) {
  std::vector<Resource> out;
  SidecarRoutes routes(proxy, push, nullptr, Time{});
  for (const std::string& name : names) {
    const auto key = ParseSubsetKey(name);
    if (key && !key->hostname.empty() && key->port != 0) out.push_back(routes.BuildForPort(name, key->port));
  }
  return out;
}

}  // namespace wavetank::pilot
