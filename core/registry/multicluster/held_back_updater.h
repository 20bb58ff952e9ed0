// What a registry tells its istiod, held back until it may be heard: of each service what was said last.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/model/xds_updater.h"

namespace wavetank::pilot {

class HeldBackUpdater final : public XdsUpdater {
 public:
  // `updater` must outlive it.
  explicit HeldBackUpdater(XdsUpdater& updater) : updater_(updater) {}

  // Says the endpoints of all services; from now on everything passes. What else was held back a full push makes up
  // for.
  void Open();

  void EdsUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                 EndpointList endpoints) override;
  void EdsCacheUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                      EndpointList endpoints) override;
  void SvcUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns, Event event) override;
  void ConfigUpdate(PushRequest request) override;
  void ProxyUpdate(const ClusterId& cluster, std::string_view ip) override;
  void RemoveShard(const ShardKey& shard) override;

 private:
  struct Said {
    std::string ns;
    EndpointList endpoints;
  };
  Said& Of(const ShardKey& shard, std::string_view hostname, std::string_view ns);

  XdsUpdater& updater_;
  bool open_ = false;
  std::map<std::pair<ShardKey, std::string>, Said> said_;  // by shard and service
};

}  // namespace wavetank::pilot
