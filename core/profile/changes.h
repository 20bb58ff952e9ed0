// The names of what differs between releases of Istio. Each has a row in core/profile/releases.cc, which says what is
// so with it, and since when. A room asks for one of them, never for a version.
#pragma once

#include <cstdint>

#include "core/profile/profile.h"

namespace wavetank::pilot {

enum class Change : uint8_t {
  kGatewayOncePerCla,
  kTlsSimpleDropsCrossNetwork,
  kGracefulSecretUpdate,
  kUpstreamEnvoy,
  kDelimitedStatNames,
  kNoRemainingCircuitBreakerMetrics,
  kMetadataDiscovery,
  kPeerMetadataFilter,
  kLocalityWeightsWhenNeeded,
  kOneInboundPassthrough,
  kInboundClustersStay,
  kConfigPathsOfV1,
  kOwnTlsKeepsAlpn,
  kExternalServicesMarked,
  kAutoSni,
  kSystemRootByDefault,
  kDnsJitter,
  kDnsQueriesPerPort,
  kNoMetadataOfNoService,
  kHandshakeTimeout,
  kAcceptsOneByOne,
  kSmallTlsInspector,
  kNoIstioAuthn,
  kTlsInspectedByNameAlone,
  kNoInspectionTimeSaid,
  kProxies100Continue,
  kTracesTellCluster,
  kInboundRetries,
  kIngressChainsNameSidecar,
  kAbsoluteDomains,
  kNoRetriesOf503,
  kPodByNameAlone,
  kHiddenServicesKeepShards,
  kGatewayPortListed,
  kNodePortAddressesForgotten,
  kResolvedGatewaysDecide,
  kNetworkChangeReachesAll,
  kGatewaysKeepTheirCluster,
  kUnknownNetworkUsesGateways,
  kMtlsByClusterPolicy,
  kNotReadyEndpointsStay,
  kPodLabelsReachEndpoints,
  kEntryEndpointsNamed,
  kDnsEndpointsInShards,
  kTrustDomainPerCluster,
  kSwapLosesEndpoints,
  kSwapLosesGateways,
  kDeletedClustersHearNothing,
  kAddressesByController,
  kClusterLocalBySpecificity,
  kStandardAppProtocols,
  kDestinationsImported,
  kPeerAuthenticationsInScopes,
  kTargetsOnServiceUpdates,
  kTargetsOfOwnNamespace,
  kExternalNameAliases,
  kTrafficDistribution,
  kTrafficDistributionByZone,
  kTrafficDistributionOfNamespaces,
  kDeltaByDefault,
};

}  // namespace wavetank::pilot
