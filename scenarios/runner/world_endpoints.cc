#include "scenarios/runner/world_endpoints.h"

#include <algorithm>

#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "sim/pod_process.h"
#include "sim/world.h"

namespace wavetank::scenario {

std::vector<WorldView::ProxyEndpoints> EndpointsIn(const sim::World& world, const std::string& cluster,
                                                   const std::string& ns, const std::string& app,
                                                   const std::string& host, int port) {
  std::vector<WorldView::ProxyEndpoints> out;
  const std::string name = fmt::format("outbound|{}||{}", port, host);
  for (const sim::PodProcess* pod : world.Pods(cluster, ns, app)) {
    if (pod->envoy() == nullptr) continue;
    WorldView::ProxyEndpoints& list = out.emplace_back();
    list.proxy = pod->name();
    for (const envoysim::EndpointStatus& endpoint : pod->envoy()->Endpoints()) {
      if (endpoint.cluster == name || endpoint.cluster.starts_with(name + "."))
        list.addresses.push_back(endpoint.address);
    }
    std::sort(list.addresses.begin(), list.addresses.end());
  }
  return out;
}

}  // namespace wavetank::scenario
