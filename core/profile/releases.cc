#include "core/profile/releases.h"

namespace wavetank::pilot {

const std::vector<Release>& Releases() {
  static const auto* const rows =
      new std::vector<Release>{{Profile().base, Profile().istio, Profile().envoy, "1.27.16"},
                               {"istio-1.24", "1.24.6", "1.32", "1.27.16"},
                               {"istio-1.30.1", "1.30.1", "1.38", "1.33.5"},
                               {"istio-1.30", "1.30.3", "1.38", "1.33.5"}};
  return *rows;
}

const Release& ReleaseOf(const Profile& profile) {
  for (const Release& release : Releases()) {
    if (release.name == profile.base) return release;
  }
  return Releases().front();
}

const std::vector<ProfileRow>& ProfileRows() {
  static const auto* const rows = new std::vector<ProfileRow>{
      {Change::kGatewayOncePerCla, "gateway-once-per-cla",
       "each east-west gateway stands once in a ClusterLoadAssignment, not once per locality group", "", "",
       "https://github.com/istio/istio/issues/56355"},
      {Change::kTlsSimpleDropsCrossNetwork, "tls-simple-drops-cross-network",
       "a DestinationRule with TLS mode SIMPLE keeps cross-network endpoints out, as DISABLE does", "1.20", "",
       "https://github.com/istio/istio/issues/46555"},
      {Change::kGracefulSecretUpdate, "graceful-secret-update",
       "a changed remote Secret starts the new registry and syncs it before the old one is removed", "1.30", "",
       "https://github.com/istio/istio/issues/36365"},
      {Change::kUpstreamEnvoy, "upstream-envoy",
       "what a stock Envoy does not know is left out (istio.alpn, metadata exchange, istio.stats)", "", "", ""},
      {Change::kDelimitedStatNames, "delimited-stat-names",
       "every cluster has an alt_stat_name, and names of statistics end in ';', so that Envoy finds no other name in "
       "them",
       "1.23", "", "https://github.com/istio/istio/issues/52887"},
      {Change::kNoRemainingCircuitBreakerMetrics, "no-remaining-circuit-breaker-metrics",
       "circuit breakers do not count what remains of their limits (track_remaining)", "1.29", "",
       "https://github.com/istio/istio/blob/1.30.3/releasenotes/notes/disable-track-remaining-cb-metrics.yaml"},
      {Change::kMetadataDiscovery, "metadata-exchange-discovery",
       "a peer that tells nothing in the TCP metadata exchange is looked up by its address", "1.20", "", ""},
      {Change::kPeerMetadataFilter, "peer-metadata-filter",
       "HTTP metadata is exchanged by the filter peer_metadata, which has taken the place of the one in a null Wasm VM",
       "1.19", "", "", "1.19", "1.21"},
      {Change::kLocalityWeightsWhenNeeded, "locality-weights-when-needed",
       "locality_weighted_lb_config is set where localities are weighted or fail over alone; elsewhere it got in the "
       "way of LEAST_REQUEST",
       "1.24", "", "https://github.com/istio/istio/issues/52898"},
      {Change::kOneInboundPassthrough, "one-inbound-passthrough",
       "InboundPassthroughCluster serves both IP families, without a match on prefixes", "1.23", "",
       "https://github.com/istio/istio/issues/51503"},
      {Change::kInboundClustersStay, "inbound-clusters-stay",
       "inbound clusters are never cleaned up (cleanup_interval)", "1.23", "", ""},
      {Change::kConfigPathsOfV1, "config-paths-of-v1",
       "metadata names configuration of the networking group at version v1", "1.24", "", ""},
      {Change::kOwnTlsKeepsAlpn, "own-tls-keeps-alpn",
       "a cluster whose DestinationRule says SIMPLE or MUTUAL tells istio.alpn to leave its ALPN alone", "1.19", "",
       ""},
      {Change::kExternalServicesMarked, "external-services-marked",
       "clusters of services outside the mesh say so in their metadata", "1.20", "", ""},
      {Change::kAutoSni, "auto-sni",
       "SIMPLE and MUTUAL without sni take server name, and without subjectAltNames the name to be checked, from the "
       "request",
       "1.20", "", "https://istio.io/latest/news/releases/1.20.x/announcing-1.20/upgrade-notes/"},
      {Change::kSystemRootByDefault, "system-root-by-default",
       "SIMPLE and MUTUAL without caCertificates check the server by the system's roots, not at all before", "1.20", "",
       "https://istio.io/latest/news/releases/1.20.x/announcing-1.20/upgrade-notes/"},
      {Change::kDnsJitter, "dns-jitter", "names of DNS clusters are resolved again up to 100 ms late", "1.25", "",
       "https://github.com/istio/istio/issues/52877"},
      {Change::kDnsQueriesPerPort, "dns-queries-per-port", "c-ares changes its port after 100 questions", "1.25", "",
       "https://github.com/istio/istio/issues/53577"},
      {Change::kNoMetadataOfNoService, "no-metadata-of-no-service",
       "an inbound cluster of a Sidecar's ingress without service has no empty list of services", "1.19", "", ""},
      {Change::kHandshakeTimeout, "handshake-timeout", "outbound and gateway listeners give up a handshake after 15 s",
       "1.24", "", "https://github.com/istio/istio/issues/56320"},
      {Change::kAcceptsOneByOne, "accepts-one-by-one",
       "listeners that bind accept one connection for each event of their socket", "1.26", "", ""},
      {Change::kSmallTlsInspector, "small-tls-inspector", "the TLS inspector begins with a buffer of 512 bytes", "1.23",
       "", "https://github.com/istio/istio/issues/51928"},
      {Change::kNoIstioAuthn, "no-istio-authn", "the network filter istio_authn is gone", "1.20", "", ""},
      {Change::kTlsInspectedByNameAlone, "tls-inspected-by-name-alone",
       "outbound listeners that look for HTTP do not look for TLS too", "1.19", "", ""},
      {Change::kNoInspectionTimeSaid, "no-inspection-time-said",
       "outbound listeners that inspect nothing say that they wait for nothing", "1.19", "", ""},
      {Change::kProxies100Continue, "proxies-100-continue", "100 Continue is passed on", "1.23", "",
       "https://github.com/istio/istio/issues/36278"},
      {Change::kTracesTellCluster, "traces-tell-cluster", "spans have a tag istio.cluster_id", "1.21", "",
       "https://github.com/istio/istio/issues/48471"},
      {Change::kInboundRetries, "inbound-retries",
       "a server's proxy tries twice more what its application has not seen; not for gRPC", "1.24", "",
       "https://github.com/istio/istio/issues/51704", "1.24", "1.27"},
      {Change::kIngressChainsNameSidecar, "ingress-chains-name-sidecar",
       "filter chains of a Sidecar's ingress name it in their metadata", "1.24", "", ""},
      {Change::kAbsoluteDomains, "absolute-domains",
       "virtual hosts know their services by the absolute name too, which ends in a dot", "1.27", "",
       "https://github.com/istio/istio/issues/56007"},
      {Change::kNoRetriesOf503, "no-retries-of-503",
       "the default retry policy leaves 503 alone, which the application may have answered", "1.24", "",
       "https://github.com/istio/istio/issues/50506"},
      {Change::kPodByNameAlone, "pod-by-name-alone",
       "a proxy's pod is found by the name in its node id, no more by its address", "1.27", "",
       "https://github.com/istio/istio/pull/56502"},
      {Change::kHiddenServicesKeepShards, "hidden-services-keep-shards",
       "a Service that is exported to nobody (~) starts no push, and its EndpointSlices are passed over", "1.25", "",
       "https://github.com/istio/istio/issues/54120"},
      {Change::kGatewayPortListed, "gateway-port-listed",
       "a Service with the label of a network is its gateway only if it lists the gateway's port", "1.29", "",
       "https://github.com/istio/istio/pull/58131"},
      {Change::kNodePortAddressesForgotten, "node-port-addresses-forgotten",
       "of a NodePort gateway its nodes' addresses are not kept, so that the next reload of networks drops it", "1.30",
       "", "https://github.com/istio/istio/pull/58743"},
      {Change::kResolvedGatewaysDecide, "resolved-gateways-decide",
       "there are several networks if a gateway's name resolves; DNS clusters get the names themselves", "1.19", "",
       "https://github.com/istio/istio/pull/46088"},
      {Change::kNetworkChangeReachesAll, "network-change-reaches-all",
       "a change of networks reaches all gateway Services of a cluster, not the first that changes", "1.25", "", ""},
      {Change::kGatewaysKeepTheirCluster, "gateways-keep-their-cluster",
       "gateways in EDS say in istio.workload their own cluster, not the client's", "1.21", "",
       "https://github.com/istio/istio/blob/1.21.0/releasenotes/notes/network-gw-metadata.yaml"},
      {Change::kUnknownNetworkUsesGateways, "unknown-network-uses-gateways",
       "a proxy without network reaches every network that has gateways through them", "1.30", "",
       "https://github.com/istio/istio/issues/58613"},
      {Change::kMtlsByClusterPolicy, "mtls-by-cluster-policy",
       "whether endpoints take mTLS is a matter of the cluster's own traffic policy: only ISTIO_MUTUAL does, and a "
       "subset's cluster asks its subset alone",
       "1.20", "", "https://github.com/istio/istio/pull/46678"},
      {Change::kNotReadyEndpointsStay, "not-ready-endpoints-stay",
       "endpoints that are not ready stay in the index, with their identities, and are not sent", "1.25", "",
       "https://github.com/istio/istio/issues/54715"},
      {Change::kPodLabelsReachEndpoints, "pod-labels-reach-endpoints",
       "a changed label of a running pod reaches its endpoints", "1.25", "", ""},
      {Change::kEntryEndpointsNamed, "entry-endpoints-named",
       "endpoints of a ServiceEntry are workloads with its name, a number and its namespace", "1.30", "",
       "https://github.com/istio/istio/pull/58951"},
      {Change::kDnsEndpointsInShards, "dns-endpoints-in-shards",
       "endpoints of ServiceEntries that DNS resolves stand in the index, and their clusters know networks and "
       "gateways",
       "1.20", "", "https://github.com/istio/istio/pull/45506"},
      {Change::kTrustDomainPerCluster, "trust-domain-per-cluster",
       "identities of a remote cluster are of the trust domain of its own mesh config", "1.29", "",
       "https://github.com/istio/istio/pull/58455"},
      {Change::kSwapLosesEndpoints, "swap-loses-endpoints",
       "when the registry of a changed remote Secret takes over, the clean-up after the old one removes the new one's "
       "endpoints; and the new one itself, if its time to sync was over before it had",
       "1.30", "1.30.4", "https://github.com/istio/istio/issues/61043"},
      {Change::kSwapLosesGateways, "swap-loses-gateways",
       "gateways that the new registry of a changed remote Secret brings stay unknown until something else reloads "
       "networks; if its time to sync was over before it had, those that come later too",
       "1.30", "1.30.4", "https://github.com/istio/istio/issues/60920"},
      {Change::kSwapWaitsForItself, "swap-waits-for-itself",
       "the new registry of a changed remote Secret starts when its time to sync is over (30 s), and the clean-up "
       "after "
       "the old one then takes it out, until istiod starts again",
       "1.30", "1.30.3", "https://github.com/istio/istio/issues/60612"},
      {Change::kDeletedClustersHearNothing, "deleted-clusters-hear-nothing",
       "the registry of a deleted cluster does not put its endpoints back when meshNetworks change", "1.21", "", ""},
      {Change::kAddressesByController, "addresses-by-controller",
       "ServiceEntries without addresses get the next ones of 240.240.0.0/16, in the order in which they come; none is "
       "given twice, and agents that answer DNS need not ask for them",
       "1.25", "", ""},
      {Change::kClusterLocalBySpecificity, "cluster-local-by-specificity",
       "of serviceSettings the most specific host decides, also one that says clusterLocal: false", "1.24", "",
       "https://github.com/istio/istio/issues/52367"},
      {Change::kStandardAppProtocols, "standard-app-protocols",
       "appProtocol kubernetes.io/h2c, ws and wss are HTTP/2, HTTP and HTTPS", "1.19", "", ""},
      {Change::kDestinationsImported, "destinations-imported",
       "where VirtualServices lead is imported without a Sidecar too, also a Service of the namespace itself that is "
       "exported "
       "to nobody",
       "1.22", "", ""},
      {Change::kPeerAuthenticationsInScopes, "peer-authentications-in-scopes",
       "PeerAuthentications belong to the scopes of proxies: a changed one makes scopes anew, and reaches those alone "
       "that see a service of its namespace",
       "1.30", "", "https://github.com/istio/istio/pull/59331"},
      {Change::kTargetsOnServiceUpdates, "targets-on-service-updates",
       "which services a proxy serves is asked again when a service has changed, not at every push", "1.23", "", ""},
      {Change::kTargetsOfOwnNamespace, "targets-of-own-namespace",
       "which services a proxy serves is asked again when a service of its own namespace has changed", "1.26", "",
       "https://github.com/istio/istio/pull/55476"},
      {Change::kExternalNameAliases, "external-name-aliases",
       "an ExternalName Service is another name of its target, with neither cluster nor listener of its own", "1.21",
       "", "https://github.com/istio/istio/issues/37331"},
      {Change::kTrafficDistribution, "traffic-distribution",
       "trafficDistribution PreferClose, or the annotation networking.istio.io/traffic-distribution, orders endpoints "
       "by nearness, those that are not ready included",
       "1.25", "", "https://github.com/istio/istio/issues/53354"},
      {Change::kTrafficDistributionByZone, "distribution-by-zone-or-node",
       "PreferSameZone and PreferSameNode are known, and PreferClose looks no further than the zone", "1.27", "",
       "https://github.com/istio/istio/issues/55848"},
      {Change::kTrafficDistributionOfNamespaces, "namespaces-distribute-traffic",
       "the annotation networking.istio.io/traffic-distribution of a namespace holds for its Services and "
       "ServiceEntries",
       "1.30", "", ""},
      {Change::kDeltaByDefault, "delta-by-default",
       "agents and their proxies speak delta xDS, unless ISTIO_DELTA_XDS says false", "1.22", "",
       "https://istio.io/latest/news/releases/1.22.x/announcing-1.22/upgrade-notes/"},
      {Change::kGatewayApiNames, "gateway-api-names",
       "names of what is made of Gateway API objects have '~' between their parts, and routes of one gateway and host "
       "are "
       "named after these",
       "1.28", "", ""},
      {Change::kGatewayApiGrpcRoutes, "gateway-api-grpc-routes", "GRPCRoutes of the Gateway API are served", "1.20", "",
       "https://istio.io/latest/news/releases/1.20.x/announcing-1.20/change-notes/"},
      {Change::kGatewayApiListenerSets, "gateway-api-listener-sets", "ListenerSets of the Gateway API are served",
       "1.30", "", "https://gateway-api.sigs.k8s.io/geps/gep-1713/"},
      {Change::kGatewayPodsByName, "gateway-pods-by-name",
       "Deployments that istiod makes of Gateways select their pods by gateway.networking.k8s.io/gateway-name, no "
       "longer "
       "by istio.io/gateway-name; their Services are of both IP families where these are there",
       "1.24", "", "https://istio.io/latest/news/releases/1.24.x/announcing-1.24/upgrade-notes/"},
      {Change::kNameBeforeNamespace, "name-before-namespace",
       "services and configurations that were made within one second come by name, then by namespace, not by both with "
       "a dot between; EnvoyFilters alone still do",
       "1.23", "", "https://github.com/istio/istio/pull/50761"},
      {Change::kHiddenEndpointsUngrouped, "hidden-endpoints-ungrouped",
       "endpoints that a gateway's network view hides leave no empty locality behind", "1.20", "",
       "https://github.com/istio/istio/pull/45733"},
      {Change::kMcsConfinesWithoutDefinitions, "mcs-confines-without-definitions",
       "with ENABLE_MCS_SERVICE_DISCOVERY a cluster in which ServiceExports are not defined exports nothing, and not "
       "everything",
       "1.19", "", ""},
      {Change::kAddressesByFamily, "addresses-by-ip-family",
       "of a Service's addresses a proxy is told those of its own IP families, and none of another cluster that it "
       "could "
       "not reach",
       "1.30", "", "https://github.com/istio/istio/pull/59245"},
      {Change::kGatewaysByFamily, "gateways-by-ip-family",
       "a proxy of one IP family has no gateways of the other. Of proxies that istiod's cache serves alike the first "
       "one's family counts for all",
       "1.30", "", "https://github.com/istio/istio/pull/59767"},
      {Change::kNamesOfReadyPods, "names-of-ready-pods",
       "name tables have the addresses of a headless Service's ready pods alone", "1.25", "",
       "https://github.com/istio/istio/pull/54711"},
      {Change::kDeltaRemembersAll, "delta-remembers-all",
       "of proxies that speak delta xDS istiod remembers all that they hold, not what the last push had: so it removes "
       "all that went",
       "1.22", "", ""},
      {Change::kLimitsByProcessors, "limits-by-processors",
       "PILOT_PUSH_THROTTLE and PILOT_MAX_REQUESTS_PER_SECOND are 15 and five for each processor, 100 at most, where "
       "nothing positive is said; 100 and 25 before",
       "1.21", "", "https://github.com/istio/istio/blob/1.30.3/releasenotes/notes/pilot-autoscale.yaml"},
      {Change::kRotationJitter, "rotation-jitter",
       "agents renew certificates up to a hundredth of their life sooner or later (SECRET_GRACE_PERIOD_RATIO_JITTER)",
       "1.24", "", ""},
      {Change::kDualStack, "dual-stack",
       "ISTIO_DUAL_STACK of istiod: listeners, inbound clusters and endpoints have addresses of both IP families", "",
       "", "https://istio.io/latest/docs/setup/additional-setup/dual-stack/"},
      {Change::kExternalsOfBothFamilies, "externals-of-both-families",
       "ServiceEntries without addresses are listened for at both wildcards by proxies of both IP families", "1.20", "",
       ""},
      {Change::kOutboundOfBothFamilies, "outbound-of-both-families",
       "outbound listeners of a proxy of both IP families stand at both wildcards, whatever ISTIO_DUAL_STACK says",
       "1.21", "", ""},
      {Change::kAllAddressesTold, "all-addresses-told",
       "virtual hosts and name tables know all addresses that a Service has in the proxy's cluster: of the first one's "
       "IP family, with ISTIO_DUAL_STACK of both",
       "1.23", "", ""},
      {Change::kEndpointsOfSeveralAddresses, "endpoints-of-several-addresses",
       "with ISTIO_DUAL_STACK a pod of two addresses is one endpoint with additional_addresses, for Services of both "
       "IP "
       "families; before, an endpoint for each address",
       "1.24", "", ""},
  };
  return *rows;
}

}  // namespace wavetank::pilot
