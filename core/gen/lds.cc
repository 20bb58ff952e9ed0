#include "core/gen/lds.h"

#include <algorithm>
#include <utility>

#include "core/gen/gateway_listeners.h"
#include "core/gen/inbound_listeners.h"
#include "core/gen/outbound_listeners.h"
#include "core/model/push_context.h"

namespace wavetank::pilot {
namespace {

bool Concerns(const Proxy& proxy, ConfigKind kind) {
  switch (kind) {
    case ConfigKind::kWorkloadEntry:
    case ConfigKind::kSecret:
      return false;
    case ConfigKind::kGateway:
      return proxy.IsRouter();
    default:
      return true;
  }
}

bool NeedsPush(const Proxy& proxy, const PushRequest& request) {
  if (!request.full) return false;
  return request.configs_updated.empty() ||
         std::any_of(request.configs_updated.begin(), request.configs_updated.end(),
                     [&](const ConfigKey& key) { return Concerns(proxy, key.kind); });
}

class LdsGenerator : public Generator {
 public:
  GeneratedResources Generate(const Proxy& proxy, const WatchedResource& /*watched*/,
                              const PushRequest& request) override {
    GeneratedResources out;
    if (!NeedsPush(proxy, request)) {
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
      out.resources.push_back({listener.name, std::make_shared<const std::string>(EncodeListener(listener))});
    }
  }
};

}  // namespace

std::unique_ptr<Generator> MakeLdsGenerator() { return std::make_unique<LdsGenerator>(); }

}  // namespace wavetank::pilot
