#include "core/gen/lds.h"

#include "core/gen/gateway_listeners.h"
#include "core/gen/inbound_listeners.h"
#include "core/gen/needs_push.h"
#include "core/gen/outbound_listeners.h"
#include "core/model/push_context.h"

namespace wavetank::pilot {
namespace {

class LdsGenerator : public Generator {
 public:
  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& /*watched*/,
                              const PushRequest& request) override {
    GeneratedResources out;
    if (!request.full || !AnyConcerns(XdsType::kLds, request.configs_updated, proxy)) {
      out.send = false;
      return out;
    }
    ListenerScope scope(proxy, *request.push);
    if (proxy.IsRouter()) {
      Append(BuildGatewayListeners(scope), out);
    } else if (request.push->mesh().proxy_listen_port > 0) {
      Append(BuildOutboundListeners(scope), out);
      Append(BuildInboundListeners(scope), out);
    }
    return out;
  }

 private:
  static void Append(const std::vector<Listener>& listeners, GeneratedResources& out) {
    for (const Listener& listener : listeners) {
      out.resources.push_back({listener.name, EncodeListener(listener)});
    }
  }
};

}  // namespace

std::unique_ptr<Generator> MakeLdsGenerator() { return std::make_unique<LdsGenerator>(); }

}  // namespace wavetank::pilot
