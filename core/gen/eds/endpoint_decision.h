// Why an endpoint is in an assignment or not: what LoadAssignmentBuilder and MtlsChecker decided, filter by filter.
// They fill it in where they decide, so what is told is what was done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/endpoint_index.h"

namespace wavetank::pilot {

// In the order in which an endpoint passes them: the one that refuses it has been reached, those after it have not.
enum class EndpointFilter : uint8_t {
  kClusterLocal,     // a cluster-local or node-local service, and the shard of another cluster
  kNodeLocal,        // internalTrafficPolicy Local, and another node
  kDiscoverability,  // MCS: discoverable from its own cluster only
  kPort,             // of another port of the service
  kSubset,           // labels
  kHealth,           // not ready, or terminating
  kDraining,         // and the service does not keep persistent sessions
  kAddress,          // a host name, which EDS cannot tell, or no address and no gateway that stands for it
  kNetworkView,      // REQUESTED_NETWORK_VIEW
  kGatewayFamily,    // all its gateways are of an IP family that the proxy lacks
  kMtls,             // no mTLS, and only a gateway that wants it leads there
  kLocality,         // no target of `distribute` takes its locality
  kPassed,
};
inline constexpr int kEndpointFilters = static_cast<int>(EndpointFilter::kPassed);
std::string_view FilterName(EndpointFilter filter);

// The first thing that settles whether a client speaks mTLS to an endpoint (MtlsChecker).
enum class MtlsVerdict : uint8_t {
  kPossible,
  kRuleAsksForIt,   // DestinationRule ISTIO_MUTUAL
  kRuleDisables,    // DestinationRule DISABLE
  kRuleIsSimple,    // DestinationRule SIMPLE (istio#46555) or MUTUAL
  kNoSidecar,       // the endpoint does not speak it
  kPolicyDisables,  // PeerAuthentication DISABLE
};
constexpr bool IsDisabled(MtlsVerdict verdict) { return verdict >= MtlsVerdict::kRuleDisables; }
std::string_view VerdictText(MtlsVerdict verdict);

enum class LocalityLbMode : uint8_t { kOff, kDistribute, kFailover, kFailoverPriority };
std::string_view ModeName(LocalityLbMode mode);

// What the assignment holds for an endpoint: itself, or a gateway that stands for it and others.
struct EndpointRoute {
  bool gateway = false;
  std::string gateway_cluster;  // of a gateway
  std::string address;
  uint32_t port = 0;
  uint32_t weight = 0;  // in its locality; a gateway's is that of all that is behind it
  std::string locality;
  std::optional<uint32_t> locality_weight;
  uint32_t priority = 0;
};

struct EndpointDecision {
  ShardKey shard;
  const IstioEndpoint* endpoint = nullptr;  // the index's
  EndpointFilter refused_by = EndpointFilter::kPassed;
  // From the network view on:
  std::optional<MtlsVerdict> mtls;
  bool mtls_off_by_address = false;  // mTLS is possible, but another endpoint of the same address and port lacks it
  bool own_network = true;           // of the proxy, or it cannot be told
  bool through_gateways = false;     // else reached directly
  uint32_t weight = 0;               // scaled so that gateways can share it; 0 before it was asked
  std::vector<EndpointRoute> routes;
};

// Why the whole is empty.
enum class AssignmentRefusal : uint8_t { kNone, kServiceUnknown, kNotEds, kNoSuchPort, kNoShards };
std::string_view RefusalText(AssignmentRefusal refusal);

struct AssignmentExplanation {
  AssignmentRefusal refusal = AssignmentRefusal::kNone;
  ServiceRef service;          // as the proxy sees it; null: it does not
  bool multi_network = false;  // there are gateways, hence networks matter
  std::string rule;            // "namespace/name" of the DestinationRule that applies; empty: none
  bool outlier_detection = false;
  LocalityLbMode locality_lb = LocalityLbMode::kOff;
  std::vector<EndpointDecision> endpoints;  // all of the service, in order of shards
};

}  // namespace wavetank::pilot
