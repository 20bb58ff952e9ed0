#include "core/registry/multicluster/held_back_updater.h"

namespace wavetank::pilot {

HeldBackUpdater::Said& HeldBackUpdater::Of(const ShardKey& shard, std::string_view hostname, std::string_view ns) {
  Said& said = said_[{shard, std::string(hostname)}];
  said.ns = ns;
  return said;
}

void HeldBackUpdater::Open() {
  open_ = true;
  for (auto& [key, said] : std::exchange(said_, {}))
    updater_.EdsUpdate(key.first, key.second, said.ns, std::move(said.endpoints));
}

void HeldBackUpdater::EdsUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                                EndpointList endpoints) {
  if (open_) return updater_.EdsUpdate(shard, hostname, ns, std::move(endpoints));
  Of(shard, hostname, ns).endpoints = std::move(endpoints);
}

void HeldBackUpdater::EdsCacheUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                                     EndpointList endpoints) {
  if (open_) return updater_.EdsCacheUpdate(shard, hostname, ns, std::move(endpoints));
  Of(shard, hostname, ns).endpoints = std::move(endpoints);
}

void HeldBackUpdater::SvcUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns, Event event) {
  if (open_) return updater_.SvcUpdate(shard, hostname, ns, event);
  if (event == Event::kDelete) {
    said_.erase({shard, std::string(hostname)});
  } else {
    Of(shard, hostname, ns);  // one without endpoints has none
  }
}

void HeldBackUpdater::ConfigUpdate(PushRequest request) {
  if (open_) updater_.ConfigUpdate(std::move(request));
}

void HeldBackUpdater::ProxyUpdate(const ClusterId& cluster, std::string_view ip) {
  if (open_) updater_.ProxyUpdate(cluster, ip);
}

void HeldBackUpdater::RemoveShard(const ShardKey& shard) {
  if (open_) updater_.RemoveShard(shard);
}

}  // namespace wavetank::pilot
