#include "core/gen/lds/lds.h"

#include <string>
#include <vector>

#include "core/gen/extensions/patch_listeners.h"
#include "core/gen/lds/gateway_listeners.h"
#include "core/gen/lds/inbound_listeners.h"
#include "core/gen/lds/outbound_listeners.h"
#include "core/gen/lds/shared_listeners.h"
#include "core/gen/view/needs_push.h"
#include "core/push/push_context.h"
#include "core/xds/resource_pool.h"

namespace wavetank::pilot {
namespace {

using PatchContext = config::EnvoyFilter::Context;

// Listeners in the order of the answer, patched by the proxy's EnvoyFilters if it has any.
class ListenerAnswer {
 public:
  ListenerAnswer(const EnvoyPatches* patches, ResourcePool& pool) : patches_(patches), pool_(pool) {}

  void Append(PatchContext context, const std::vector<Listener>& listeners, bool may_add = true) {
    if (patches_ == nullptr) {
      for (const Listener& listener : listeners) {
        out_.push_back(pool_.Make(listener.name, EncodeListener(listener), maker_));
      }
      return;
    }
    std::vector<std::string> encoded;
    encoded.reserve(listeners.size());
    for (const Listener& listener : listeners) encoded.push_back(EncodeListener(listener));
    for (Resource& listener : PatchListeners(*patches_, context, encoded, may_add)) {
      out_.push_back(std::move(listener));
    }
  }
  void Append(PatchContext context, std::optional<Listener> listener) {
    if (listener) Append(context, {*std::move(listener)}, false);
  }

  ResourceList Take() { return pool_.Same(std::move(out_)); }

 private:
  const EnvoyPatches* patches_;
  ResourcePool& pool_;
  ResourceMaker maker_;
  ResourceList out_;
};

class LdsGenerator : public Generator {
 public:
  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& /*watched*/,
                              const PushRequest& request) override {
    GeneratedResources out;
    if (!request.full || !AnyConcerns(XdsType::kLds, request.configs_updated, proxy)) {
      out.send = false;
      return out;
    }
    out.resources = answers_.Get(proxy, request.push, [&] { return Listeners(proxy, *request.push); });
    return out;
  }

 private:
  ResourceList Listeners(const Proxy& proxy, const PushContext& push) {
    ListenerScope scope(proxy, push);
    ListenerAnswer answer(scope.patches.get(), pool_);
    if (proxy.IsRouter()) {
      answer.Append(PatchContext::kGateway, BuildGatewayListeners(scope));
      return answer.Take();
    }
    OutboundListeners outbound;
    std::vector<Listener> inbound;
    if (push.mesh().proxy_listen_port > 0) {
      outbound = BuildOutboundListeners(scope);
      inbound = BuildInboundListeners(scope);
    }
    answer.Append(PatchContext::kSidecarOutbound, outbound.of_services);
    answer.Append(PatchContext::kSidecarOutbound, std::move(outbound.http_proxy));
    answer.Append(PatchContext::kSidecarOutbound, std::move(outbound.virtual_outbound));
    answer.Append(PatchContext::kSidecarInbound, inbound);
    return answer.Take();
  }

  ResourcePool pool_;
  SharedListeners answers_;
};

}  // namespace

std::unique_ptr<Generator> MakeLdsGenerator() { return std::make_unique<LdsGenerator>(); }

}  // namespace wavetank::pilot
