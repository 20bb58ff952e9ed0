// Builds the clusters of one proxy (istiod: pilot/pkg/networking/core/v1alpha3/{cluster,cluster_builder}.go).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/gen/cds/cluster_policy.h"
#include "core/gen/view/traffic_policy.h"
#include "core/model/proxy.h"
#include "core/push/sidecar_scope.h"
#include "core/xds/generator.h"

namespace wavetank::pilot {

class PushContext;

struct InboundCluster {
  Resource cluster;
  std::vector<std::string> hosts;  // of the services behind it
};

class ClusterBuilder {
 public:
  using Cluster = envoy_cluster::Cluster;

  // Both must outlive the builder.
  ClusterBuilder(const Proxy& proxy, const PushContext& push);

  // One port of a service: its cluster, then one per subset of `rule` (may be null). Empty if the service's endpoints
  // are to be resolved by DNS and there are none.
  std::vector<Resource> Outbound(const Service& service, const Port& port, const ConsolidatedDestRule* rule) const;

  // The same for an AUTO_PASSTHROUGH gateway, which forwards what is encrypted already: no TLS, named by SNI.
  std::vector<Resource> SniDnat(const Service& service, const Port& port, const ConsolidatedDestRule* rule) const;

  // "inbound|port||": the ports of the proxy's own workload, or of its Sidecar's ingress listeners. By port.
  std::vector<InboundCluster> Inbound() const;

  Resource BlackHole() const;
  Resource Passthrough() const;
  std::vector<Resource> InboundPassthrough() const;  // one per IP family of the proxy
  Resource ExternalSds() const;                      // the socket that serves "sds://" credentials

  bool supports_ipv4() const { return supports_ipv4_; }
  bool supports_ipv6() const { return supports_ipv6_; }

 private:
  enum class Mode { kOutbound, kSniDnat };

  std::vector<Resource> WithSubsets(Mode mode, const Service& service, const Port& port,
                                    const ConsolidatedDestRule* rule) const;
  std::string Name(Mode mode, const config::Subset* subset, const Service& service, const Port& port) const;
  std::unique_ptr<ClusterDraft> NewDynamic(std::string name, const Service& service, const Port& port) const;
  // Null: no endpoints (DNS).
  std::unique_ptr<ClusterDraft> NewOutbound(std::string name, Cluster::DiscoveryType type, const Service& service,
                                            const Port& port, const Labels& subset_labels) const;
  void ApplyOutboundPolicy(Mode mode, const Service& service, const Port& port, const EffectivePolicy& policy,
                           const config::TrafficPolicy* own_policy, const config::Subset* subset,
                           const config::DestinationRule* rule, ClusterDraft& draft) const;
  std::unique_ptr<InlineEndpoints> DnsEndpoints(const Service& service, int port, const Labels& subset_labels) const;
  Cluster::DiscoveryType DiscoveryTypeOf(const Service& service) const;
  void SetUpstreamProtocol(const Port& port, bool sniffs, ClusterDraft& draft) const;
  void AddMetadataExchange(ClusterDraft& draft) const;
  // Ended so that Envoy takes no part of it for another name. istiod: util.DelimitedStatsPrefix.
  std::string StatName(std::string name) const;
  // The name under which its statistics are kept, where that is not the cluster's.
  void NameStats(const std::string& name, Cluster& cluster) const;
  ClusterDraft NewPassthrough() const;
  // What a Sidecar says of the port; null: nothing.
  const config::ConnectionPoolSettings* InboundPoolOfSidecar(int port) const;
  Resource InboundFor(int port_number, const std::string& bind, uint32_t endpoint_port, const ServiceInstance& instance,
                      const std::vector<const ServiceInstance*>& all) const;
  std::vector<InboundCluster> InboundForIngressListeners() const;
  // The proxy has both IP families, and istiod is told to use them.
  bool IsDualStack() const;

  const Proxy& proxy_;
  const PushContext& push_;
  const config::MeshConfig& mesh_;
  bool supports_ipv4_ = false, supports_ipv6_ = false;
  std::string dns_resolver_;  // Cluster.typed_dns_resolver_config, encoded; empty: Envoy's own default
};

}  // namespace wavetank::pilot
