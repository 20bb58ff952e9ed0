// Hosts that are served within their own cluster only (istiod: pilot/pkg/model/cluster_local.go).
#pragma once

#include <string_view>

#include "core/config/mesh/mesh_config.h"
#include "core/push/host_match.h"

namespace wavetank::pilot {

// kube-system, the API server's Service and istiod are cluster-local unless serviceSettings say otherwise.
class ClusterLocalHosts {
 public:
  // `most_specific`: a setting of false holds for its hosts too, not only against the defaults.
  ClusterLocalHosts(const config::MeshConfig& mesh, std::string_view domain_suffix, bool most_specific = false);
  bool Contains(std::string_view hostname) const {
    const bool* so = hosts_.MostSpecific(hostname);
    return so != nullptr && *so;
  }

 private:
  HostTable<bool> hosts_;
};

}  // namespace wavetank::pilot
