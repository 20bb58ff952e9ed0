// What every proxy was sent last of endpoints, clusters and listeners. Bytes that many proxies share are read once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/bytes.h"
#include "core/base/ip.h"
#include "core/model/proxy.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {
struct DeltaDiscoveryResponse;
struct DiscoveryResponse;
}  // namespace wavetank::pilot

namespace wavetank::sim {

// One ClusterLoadAssignment.
struct Assignment {
  struct Endpoint {
    SocketAddress address;
    uint32_t weight = 1, priority = 0;
    friend bool operator==(const Endpoint&, const Endpoint&) = default;
  };
  BytesRef bytes;
  std::string cluster;
  std::vector<Endpoint> endpoints;      // those with an IP address, in order
  SocketAddress twice;                  // the first that stands there twice; empty: none
  bool weighted = false;                // a locality's weight is not that of its endpoints: locality load balancing
  mutable std::vector<int8_t> foreign;  // a checker's memory, by network: 0 not looked, 1 no, 2 yes

  bool Holds(const SocketAddress& address) const;
};
using AssignmentRef = std::shared_ptr<const Assignment>;

// "outbound|5000|v1|helloworld.sample.svc.cluster.local". `host` empty: no such name.
struct SubsetName {
  std::string_view direction, port, subset, host;
};
SubsetName ReadSubsetName(std::string_view cluster);

class Held {
 public:
  using OnAssignment = std::function<void(const std::string& proxy, const Assignment& now, const Assignment* before)>;
  void Apply(const std::string& proxy, const pilot::DiscoveryResponse& response, const OnAssignment& tell);
  void Apply(const std::string& proxy, const pilot::DeltaDiscoveryResponse& response, const OnAssignment& tell);
  void Forget(const std::string& proxy) { proxies_.erase(proxy); }

  struct Proxy {
    std::map<std::string, AssignmentRef, std::less<>> assignments;  // by cluster
    // Resources by type, as the last response of state of the world had them, or as deltas have left them.
    std::map<pilot::XdsType, pilot::ResourceList> lists;
    std::map<pilot::XdsType, std::map<std::string, BytesRef, std::less<>>> deltas;

    // By name; O(resources).
    std::map<std::string_view, BytesRef> Resources(pilot::XdsType type) const;
  };
  const std::map<std::string, Proxy, std::less<>>& proxies() const { return proxies_; }
  const Proxy* Find(std::string_view proxy) const;  // null: it was sent nothing

 private:
  AssignmentRef Read(const pilot::Resource& resource);
  void Take(const std::string& name, Proxy& proxy, const pilot::ResourceList& resources, const OnAssignment& tell);

  std::map<std::string, Proxy, std::less<>> proxies_;
  absl::flat_hash_map<const void*, AssignmentRef> read_;  // by the bytes, which they keep
  size_t sweep_at_ = 1024;
};

}  // namespace wavetank::sim
