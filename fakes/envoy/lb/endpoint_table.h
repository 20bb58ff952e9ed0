// A ClusterLoadAssignment compiled for load balancing: immutable, shared by all Envoys that were sent the same bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/envoy/match/hash128.h"
#include "fakes/envoy/tcp/address.h"

namespace envoy::config::endpoint::v3 {
class ClusterLoadAssignment;
}

namespace wavetank::envoysim {

// envoy.config.core.v3.HealthStatus as the load balancer sees it: UNHEALTHY, TIMEOUT and DRAINING get no
// load (but LbEndpoint::draining).
enum class EdsHealth : uint8_t { kHealthy, kDegraded, kUnhealthy };

using StringPairs = std::vector<std::pair<std::string, std::string>>;

// Where an endpoint's health is asked for, if not where its requests go.
struct EndpointCheck {
  bool disabled = false;  // it counts as well
  SocketAddress address;
  std::string hostname;  // empty: the check's own
};

struct LbEndpoint {
  SocketAddress address;
  std::shared_ptr<const std::vector<SocketAddress>> more_addresses;  // additional_addresses; null: none
  std::string hostname;  // DNS clusters: the name that `address` stands for, or is to be resolved
  uint32_t weight = 1;
  uint32_t locality = 0;  // index into EndpointTable::localities
  uint32_t priority = 0;
  EdsHealth health = EdsHealth::kHealthy;
  bool draining = false;  // unhealthy, and on its way out
  // Filter metadata "envoy.transport_socket_match", sorted by key.
  std::shared_ptr<const StringPairs> transport_socket_match;
  std::shared_ptr<const EndpointCheck> check;  // health_check_config; null: none
  std::string workload;                        // filter metadata "istio", as istiod writes it; empty: none
};

struct LbLocality {
  std::string region, zone, sub_zone;
  uint32_t weight = 0;  // 0: no load, once the cluster balances by locality weights
  uint32_t priority = 0;

  std::string Name() const;  // "region/zone/sub_zone", trailing empty parts left out
};

struct EndpointTable {
  Hash128 hash;
  std::string cluster_name;
  std::vector<LbLocality> localities;  // in the order of the assignment
  std::vector<LbEndpoint> endpoints;   // grouped by locality; of EDS each address once: the first copy wins
  uint32_t priorities = 1;
  uint32_t overprovisioning_factor = 140;
  bool weighted_priority_health = false;

  bool empty() const { return endpoints.empty(); }
};

// Where an assignment stands, hence what its addresses may be.
enum class AddressKind : uint8_t {
  kEds,     // of two copies of an address the first counts
  kStatic,  // of a STATIC cluster: all copies count
  kNames,   // STRICT_DNS, LOGICAL_DNS: host names; all copies count
};

// What makes Envoy refuse an assignment.
// Envoy: source/common/upstream/eds.cc, source/common/upstream/upstream_impl.cc (updateDynamicHostList).
absl::StatusOr<std::shared_ptr<const EndpointTable>> CompileEndpoints(
    const envoy::config::endpoint::v3::ClusterLoadAssignment& assignment, const Hash128& hash, AddressKind kind);

}  // namespace wavetank::envoysim
