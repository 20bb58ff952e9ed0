// The mesh of istiod's SplitHorizonEDS and FullPush benchmarks (docs/istiod-benchmarks.md): five clusters, each a
// network of its own with three gateways, and services on port 80 with their endpoints in all of them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/gen/gen_world.h"

namespace wavetank::bench {

inline std::string Ip(const char* prefix, int n) {
  return std::string(prefix) + "." + std::to_string(n / 65536) + "." + std::to_string(n / 256 % 256) + "." +
         std::to_string(n % 256);
}
inline std::string ServiceName(int s) { return "svc-" + std::to_string(s); }

// Hands over each service's endpoints of each cluster: (cluster, service, list).
template <typename Set>
void ForEachOfFiveNetworks(int services, int endpoints_per_service, Set&& set) {
  for (int c = 0; c < 5; ++c) {
    const std::string cluster = "cluster-" + std::to_string(c);
    std::shared_ptr<const pilot::EndpointProfile> versions[2];
    for (int v = 0; v < 2; ++v) {
      pilot::EndpointProfile p =
          pilot::GenWorld::Workload(cluster, "region-" + std::to_string(c) + "/zone-" + std::to_string(c));
      p.labels = {{"app", "svc"},
                  {"version", v == 0 ? "v1" : "v2"},
                  {"security.istio.io/tlsMode", "istio"},
                  {"topology.istio.io/cluster", cluster},
                  {"topology.istio.io/network", p.network.str()}};
      versions[v] = std::make_shared<const pilot::EndpointProfile>(std::move(p));
    }
    for (int s = 0; s < services; ++s) {
      pilot::EndpointList list;
      for (int e = 0; e < endpoints_per_service / 5; ++e) {
        list.push_back({Ip("10", s * 1000 + e), 8080, 0, pilot::HealthStatus::kHealthy, versions[e % 2]});
      }
      set(cluster, ServiceName(s), std::move(list));
    }
  }
}

// Services and gateways, without endpoints.
inline void AddFiveNetworks(pilot::GenWorld& world, int services) {
  for (int c = 0; c < 5; ++c) {
    for (int g = 1; g <= 3; ++g) {
      world.AddGateway("cluster-" + std::to_string(c), "203.0." + std::to_string(c) + "." + std::to_string(g));
    }
  }
  for (int s = 0; s < services; ++s) world.AddService(ServiceName(s));
}

inline std::vector<std::string> ClusterNames(int services) {
  std::vector<std::string> out;
  for (int s = 0; s < services; ++s) out.push_back("outbound|80||" + pilot::GenWorld::Host(ServiceName(s)));
  return out;
}

}  // namespace wavetank::bench
