// What several checkers ask of a world.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile/changes.h"
#include "sim/network/mesh_network.h"
#include "sim/world.h"

namespace wavetank::pilot {
class Connection;
class Istiod;
class Registry;
}  // namespace wavetank::pilot

namespace wavetank::sim {

// The cluster of "pod.namespace@cluster".
std::string_view ClusterOf(std::string_view proxy);
// Networks of the world's clusters, each once, with the first cluster in it.
std::vector<std::pair<NetworkIndex, std::string>> NetworksOf(const World& world);
// The network that a proxy's pod is attached to; nullopt: its cluster is none of this world's.
std::optional<NetworkIndex> NetworkOf(const World& world, std::string_view proxy);
// Whether a pod has that address in some network now.
bool IsPod(const World& world, const IpAddress& ip);

// istiods that serve, each with its name in traces and the cluster that it runs in.
struct ServingIstiod {
  std::string name, cluster;
  const pilot::Istiod* istiod = nullptr;
};
std::vector<ServingIstiod> ServingIstiods(const World& world);
// The Kubernetes registries of an istiod that have synced and whose API server answers it: the cut line and the server
// that is gone are the world's doing.
std::vector<const pilot::Registry*> LiveRegistries(const World& world, const ServingIstiod& istiod);
// Connections by the names of proxies in traces.
std::map<std::string, const pilot::Connection*> Connections(const ServingIstiod& istiod);

// "EndpointSlice/sample/helloworld-x" as trace records name objects.
struct ObjectName {
  std::string_view kind, ns, name;
};
ObjectName ReadObjectName(std::string_view text);

// Whether the simulated release has a change by which it does right what 1.18.2 does wrong.
bool Mends(const World& world, pilot::Change change);

}  // namespace wavetank::sim
