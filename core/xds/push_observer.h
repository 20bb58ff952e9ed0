// What golden recordings and reports want to know of pushes, exactly and in order. Does nothing by default.
#pragma once

#include "core/model/proxy.h"
#include "core/model/push_request.h"
#include "core/xds/messages.h"

namespace wavetank::pilot {

class PushObserver {
 public:
  virtual ~PushObserver() = default;
  // A merged request leaves the debouncer (istiod: DiscoveryServer.Push).
  virtual void OnPush(const PushRequest& /*request*/) {}
  // A push event reaches a connection; `skipped`: ProxyNeedsPush said no. Responses follow before the next event.
  virtual void OnPushEvent(const Proxy& /*proxy*/, const PushRequest& /*request*/, bool /*skipped*/) {}
  // A response is about to be sent. `watched`: the names on record as subscribed at that moment. `request.reasons` has
  // kProxyRequest alone when the client asked for it.
  virtual void OnResponse(const Proxy& /*proxy*/, const PushRequest& /*request*/, const WatchedResource& /*watched*/,
                          const DiscoveryResponse& /*response*/) {}
  virtual void OnDeltaResponse(const Proxy& /*proxy*/, const PushRequest& /*request*/,
                               const WatchedResource& /*watched*/, const DeltaDiscoveryResponse& /*response*/) {}
};

}  // namespace wavetank::pilot
