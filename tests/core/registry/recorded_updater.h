// What registries tell their istiod, in words, and the endpoint index that comes of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/model/xds_updater.h"

namespace wavetank::pilot {

class RecordedUpdater final : public XdsUpdater {
 public:
  void EdsUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                 EndpointList endpoints) override {
    Say("eds", shard, hostname, endpoints);
    index.UpdateServiceEndpoints(shard, hostname, ns, std::move(endpoints));
  }
  void EdsCacheUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                      EndpointList endpoints) override {
    Say("cache", shard, hostname, endpoints);
    index.UpdateServiceEndpoints(shard, hostname, ns, std::move(endpoints));
  }
  // As DiscoveryServer::SvcUpdate: a service that goes takes its shard with it.
  void SvcUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns, Event event) override {
    static constexpr const char* kEvents[] = {"added", "updated", "deleted"};
    said.push_back("service " + Short(hostname) + " " + kEvents[static_cast<int>(event)]);
    if (event == Event::kDelete) index.DeleteServiceShard(shard, hostname, ns, false);
  }
  void ConfigUpdate(PushRequest request) override {
    std::string text = request.full ? "full" : "incremental";
    for (const std::string_view reason : ReasonNames(request.reasons)) text += " " + std::string(reason);
    for (const ConfigKey& key : request.configs_updated) text += " " + Short(key.name);
    said.push_back(text);
  }
  void ProxyUpdate(const ClusterId&, std::string_view ip) override { said.push_back("proxy " + std::string(ip)); }
  void RemoveShard(const ShardKey& shard) override {
    said.push_back("shard of " + shard.cluster.str() + " removed");
    index.DeleteShard(shard);
  }

  std::vector<std::string> Take() { return std::exchange(said, {}); }
  // "address:port" of one shard, in its order.
  std::vector<std::string> Addresses(const ShardKey& shard, const std::string& hostname, const std::string& ns) const {
    std::vector<std::string> out;
    const EndpointShards* const shards = index.Find(hostname, ns);
    if (shards == nullptr || !shards->shards.contains(shard)) return out;
    for (const IstioEndpoint& endpoint : *shards->shards.at(shard)) {
      out.push_back(endpoint.address + ":" + std::to_string(endpoint.endpoint_port));
    }
    return out;
  }

  std::vector<std::string> said;
  EndpointIndex index;

 private:
  // "web.shop" of web.shop.svc.cluster.local.
  static std::string Short(std::string_view hostname) {
    return std::string(hostname.substr(0, hostname.find(".svc.")));
  }
  void Say(const char* what, const ShardKey&, std::string_view hostname, const EndpointList& endpoints) {
    said.push_back(std::string(what) + " " + Short(hostname) + " " + std::to_string(endpoints.size()));
  }
};

}  // namespace wavetank::pilot
