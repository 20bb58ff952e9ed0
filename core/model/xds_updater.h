// What registries tell the discovery server (istiod: pilot/pkg/model/push_context.go, XDSUpdater).
#pragma once

#include <string_view>

#include "core/model/endpoint_index.h"
#include "core/model/push_request.h"

namespace wavetank::pilot {

enum class Event : uint8_t { kAdd, kUpdate, kDelete };

class XdsUpdater {
 public:
  virtual ~XdsUpdater() = default;
  // Endpoints of one service in one registry have changed; pushes what the change asks for.
  virtual void EdsUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                         EndpointList endpoints) = 0;
  // The same without a push: another event of the same change will push.
  virtual void EdsCacheUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                              EndpointList endpoints) = 0;
  // A service came, changed or went in one registry.
  virtual void SvcUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns, Event event) = 0;
  virtual void ConfigUpdate(PushRequest request) = 0;
  // Something about the pod at this address has changed: push to its proxy alone, at once.
  virtual void ProxyUpdate(const ClusterId& cluster, std::string_view ip) = 0;
  // A registry is gone.
  virtual void RemoveShard(const ShardKey& shard) = 0;
};

}  // namespace wavetank::pilot
