// Traffic policy on a cluster: connection pools, outlier detection, load balancing, HTTP/2
// (istiod: pilot/pkg/networking/core/v1alpha3/{cluster,cluster_builder}.go).
#pragma once

#include "core/config/kinds/destination_rule.h"
#include "core/config/mesh/mesh_config.h"
#include "core/gen/cds/cluster_draft.h"
#include "core/gen/eds/locality.h"
#include "core/profile/profile.h"

namespace wavetank::pilot {

// Also sets the mesh's connect timeout, keepalive and the limits that take the place of Envoy's low defaults.
// `budget`: of retries; null: none.
void ApplyConnectionPool(const config::MeshConfig& mesh, const config::ConnectionPoolSettings* pool,
                         const Profile& profile, ClusterDraft& draft, const config::RetryBudget* budget = nullptr);

// True if an outbound cluster speaks HTTP/2 though its port does not say so.
bool ShouldUpgradeToH2(const config::MeshConfig& mesh, const config::ConnectionPoolSettings* pool, const Port& port,
                       const Profile& profile);

// A ring or Maglev's table takes the place of the load balancer. istiod: ApplyRingHashLoadBalancer.
void ApplyConsistentHash(const config::ConsistentHash& hash, ::envoy::config::cluster::v3::Cluster& cluster);

void ApplyOutlierDetection(const config::OutlierDetection* outlier, ClusterDraft& draft);

// After ApplyOutlierDetection, since failover depends on it.
// `round_robin`: where nothing else is said (Features).
void ApplyLoadBalancer(const config::MeshConfig& mesh, const config::LoadBalancerSettings* lb, const Service& service,
                       const LocalityParts& proxy_locality, const Labels& proxy_labels, const Profile& profile,
                       bool round_robin, ClusterDraft& draft);

}  // namespace wavetank::pilot
