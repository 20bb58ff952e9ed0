// How istiod treats Kubernetes multi-cluster services (istiod: pilot/pkg/features/experimental.go).
#pragma once

#include <string>

namespace wavetank::pilot {

struct McsOptions {
  bool discovery = false;      // ENABLE_MCS_SERVICE_DISCOVERY: endpoints are for their own cluster unless exported
  bool host = false;           // ENABLE_MCS_HOST: imported Services have a host of the clusterset
  bool cluster_local = false;  // ENABLE_MCS_CLUSTER_LOCAL: cluster.local means the client's own cluster
  bool auto_export = false;    // ENABLE_MCS_AUTO_EXPORT: a ServiceExport for every Service
  std::string group = "multicluster.x-k8s.io", version = "v1alpha1";  // MCS_API_GROUP, MCS_API_VERSION

  // Each is on only if those before it are.
  bool Hosts() const { return discovery && host; }
  bool ClusterLocal() const { return Hosts() && cluster_local; }
};

}  // namespace wavetank::pilot
