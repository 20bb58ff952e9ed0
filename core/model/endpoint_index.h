// Endpoints of every service, by the registry they came from (istiod: pilot/pkg/model/endpointshards.go).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/model/endpoint.h"
#include "core/model/push_request.h"

namespace wavetank::pilot {

struct ShardKey {
  ClusterId cluster;
  Provider provider = Provider::kKubernetes;
  // istiod sorts shards by provider, then cluster, as text: ShardKey.String() is "Provider/cluster".
  friend bool operator<(const ShardKey& a, const ShardKey& b);
  friend bool operator==(const ShardKey&, const ShardKey&) = default;
};

using EndpointList = std::vector<IstioEndpoint>;
using EndpointListRef = std::shared_ptr<const EndpointList>;

// All shards of one service. Read by generators, changed by EndpointIndex only.
struct EndpointShards {
  std::map<ShardKey, EndpointListRef> shards;           // in key order
  std::set<std::string, std::less<>> service_accounts;  // of all endpoints; survive scaling to zero
  uint64_t version = 0;                                 // grows with every change of this service
};

// Complexity: an update costs O(endpoints of that service), independent of the number of services.
class EndpointIndex {
 public:
  // What a change of a shard asks for (istiod: PushType).
  enum class PushType : uint8_t { kNone, kIncremental, kFull };

  // Replaces one shard; without endpoints it goes. A service that was not known, or whose service accounts change, asks
  // for a full push. istiod: pilot/pkg/xds/eds.go, edsCacheUpdate.
  PushType UpdateServiceEndpoints(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                                  EndpointList endpoints);

  const EndpointShards* Find(std::string_view hostname, std::string_view ns) const;

  // Removes one shard of a service; with `preserve_keys` the service's entry stays though it is empty.
  void DeleteServiceShard(const ShardKey& shard, std::string_view hostname, std::string_view ns, bool preserve_keys);
  // Removes a registry from every service.
  void DeleteShard(const ShardKey& shard);

  // By namespace, then host: for printing and digests. O(n log n).
  std::vector<std::pair<std::string, const EndpointShards*>> Sorted() const;  // key "<ns>/<host>"

  size_t EndpointCount() const;  // of all services; O(services)

 private:
  // A host's services by namespace: nearly always one.
  using ByNamespace = std::vector<std::pair<std::string, std::unique_ptr<EndpointShards>>>;
  static ByNamespace::const_iterator In(const ByNamespace& services, std::string_view ns);

  absl::flat_hash_map<std::string, ByNamespace> by_host_;
  uint64_t version_ = 0;
};

}  // namespace wavetank::pilot
