// Which metrics a simulated mesh can be held against. Whatever is not here is counted by name.
#pragma once

#include <string_view>
#include <vector>

namespace wavetank::importing {

struct KnownMetric {
  std::string_view name;
  bool counter = false;
  // The labels that tell its series apart; the others tell who was scraped.
  std::vector<std::string_view> labels;
};

// Of istiods: summed over the replicas of a cluster.
// istiod: pilot/pkg/xds/monitoring.go, security/pkg/server/ca/monitoring.go, pkg/kube/inject/monitoring.go
// Of kube-state-metrics: its documentation of each kind.
// Null: none of these.
const KnownMetric* FindKnownMetric(std::string_view name);

// Of proxies: requests, which become claims of their own. istio: docs/reference/config/metrics
inline constexpr std::string_view kRequestsTotal = "istio_requests_total";

inline bool OfKubeStateMetrics(std::string_view name) { return name.starts_with("kube_"); }

}  // namespace wavetank::importing
