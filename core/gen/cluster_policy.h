// Traffic policy on a cluster: connection pools, outlier detection, load balancing, HTTP/2
// (istiod: pilot/pkg/networking/core/v1alpha3/{cluster,cluster_builder}.go).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/destination_rule.h"
#include "core/config/mesh_config.h"
#include "core/gen/eds_load_assignment.h"
#include "core/gen/locality.h"
#include "core/model/endpoint.h"
#include "core/model/service.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/extensions/upstreams/http/v3/http_protocol_options.pb.h"

namespace wavetank::pilot {

namespace envoy_cluster = ::envoy::config::cluster::v3;

// Endpoints that are part of the cluster itself: those of DNS clusters. `instances` keeps what `assignment` points to.
struct InlineEndpoints {
  std::vector<ServiceInstance> instances;
  LoadAssignment assignment;
};

// A cluster in the making.
struct ClusterDraft {
  envoy_cluster::Cluster cluster;
  std::optional<::envoy::extensions::upstreams::http::v3::HttpProtocolOptions> http;
  std::unique_ptr<InlineEndpoints> endpoints;

  ::envoy::extensions::upstreams::http::v3::HttpProtocolOptions& Http() { return http ? *http : http.emplace(); }
  bool IsHttp2() const;
  void UseHttp2();
  // Whatever protocol the client spoke.
  void UseDownstreamProtocol();
  bool IsOriginalDst() const { return cluster.type() == envoy_cluster::Cluster::ORIGINAL_DST; }

  // Puts the parts together; the draft is spent.
  envoy_cluster::Cluster Build() &&;
};

void SetDuration(Duration from, google::protobuf::Duration* to);

// Also sets the mesh's connect timeout, keepalive and the limits that take the place of Envoy's low defaults.
void ApplyConnectionPool(const config::MeshConfig& mesh, const config::ConnectionPoolSettings* pool,
                         ClusterDraft& draft);

// True if an outbound cluster speaks HTTP/2 though its port does not say so.
bool ShouldUpgradeToH2(const config::MeshConfig& mesh, const config::ConnectionPoolSettings* pool, const Port& port);

void ApplyOutlierDetection(const config::OutlierDetection* outlier, ClusterDraft& draft);

// After ApplyOutlierDetection, since failover depends on it.
void ApplyLoadBalancer(const config::MeshConfig& mesh, const config::LoadBalancerSettings* lb,
                       const LocalityParts& proxy_locality, const Labels& proxy_labels, ClusterDraft& draft);

}  // namespace wavetank::pilot
