#include "core/gen/rds/rds.h"

#include "core/gen/rds/gateway_routes.h"
#include "core/gen/rds/patch_routes.h"
#include "core/gen/rds/sidecar_routes.h"
#include "core/gen/view/needs_push.h"
#include "core/push/push_context.h"
#include "core/xds/resource_pool.h"

namespace wavetank::pilot {
namespace {

class RdsGenerator : public Generator {
 public:
  explicit RdsGenerator(const RdsOptions& options) : cache_(options.cache) {}

  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& watched, const PushRequest& request) override {
    GeneratedResources out;
    if (!request.full || !AnyConcerns(XdsType::kRds, request.configs_updated, proxy)) {
      out.send = false;
      return out;
    }
    const std::shared_ptr<const EnvoyPatches> patches = request.push->envoy_filters().For(proxy);
    if (proxy.IsRouter()) {
      out.resources = BuildGatewayRoutes(proxy, *request.push, patches.get(), watched.resource_names, &buffer_);
      out.send = !out.resources.empty();
      return out;
    }
    if (shared_.push.lock() != request.push) shared_ = {request.push, {}};
    // What is shared is shared among proxies that no EnvoyFilter tells apart.
    const bool patched = PatchesRoutes(patches.get());
    SidecarRoutes routes(proxy, *request.push, cache_, request.start, patched ? nullptr : &shared_, patches.get());
    for (const std::string& name : watched.resource_names) out.resources.push_back(routes.Build(name));
    out.resources = pool_.Same(std::move(out.resources));
    out.cached = routes.cache_hits();
    out.send = !out.resources.empty();  // a client that only gave names up is not answered
    return out;
  }

 private:
  XdsCache* cache_;
  SharedRoutes shared_;
  ResourcePool pool_;
  std::string buffer_;
};

}  // namespace

std::unique_ptr<Generator> MakeRdsGenerator(const RdsOptions& options) {
  return std::make_unique<RdsGenerator>(options);
}

}  // namespace wavetank::pilot
