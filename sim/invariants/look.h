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

// After an API server's fault its clients' watches are back by then: they wait for up to twice the 30 s of client-go's
// longest back-off (core/kube/informer.cc), and list.
inline constexpr Duration kWatchIsBack = 65s;

// Clusters whose API servers, or lines from istiods, had a fault a moment ago, so that watchers may not be back.
class Disturbances {
 public:
  // Of every trace event.
  void See(const World& world, const TraceEvent& event);
  // Now, or kWatchIsBack ago or less.
  bool Recent(const World& world, const std::string& cluster);
  bool AnyRecent(const World& world);

 private:
  std::map<std::string, Time> until_;
};

// Namespace and name of the Service that an xDS cluster is of; empty: of none in a cluster.
std::pair<std::string, std::string> ServiceOf(std::string_view xds_cluster);
// Whether an endpoint that a proxy had in `xds_cluster` has a reason to be there now: a ready pod of the Service, or a
// gateway before some. True where that cannot be told.
bool Stands(const World& world, std::string_view xds_cluster, const IpAddress& ip);

// An istiod that serves: its name in traces, and the cluster that it runs in.
struct ServingIstiod {
  std::string name, cluster;
  const pilot::Istiod* istiod = nullptr;
};
std::vector<ServingIstiod> ServingIstiods(const World& world);
// Ranges of a cluster's pods, of one IP family or of both.
std::vector<IpPrefix> PodRanges(const WorldCluster& cluster);
bool AnyContains(const std::vector<IpPrefix>& ranges, const IpAddress& ip);
// Nothing goes from one cluster to the other; also if one of them is none of the world's.
bool LineIsCut(const World& world, std::string_view a, std::string_view b);
// Its clients learn what changes now: it answers them, and not from the past.
bool TellsClients(const fakekube::ApiServer& api);
// The Kubernetes registries of an istiod that have synced and whose API server answers it, and not from the past: the
// cut line, the server that is gone and the one that is stale are the world's doing.
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

// A known bug by its name (catalogue.h): whether the simulated release loses endpoints and gateways of a cluster whose
// remote Secret changes, until istiod starts again.
inline constexpr std::string_view kSwapBug = "swap-loses-endpoints";
bool LosesBySwap(const World& world);

// The known bug of a release that forgets the addresses of gateways at node ports at the next change of networks, and
// whether the cluster has such a gateway.
inline constexpr std::string_view kNodePortBug = "node-port-gateway-forgotten";
bool ForgetsNodePorts(const World& world, const std::string& cluster);

}  // namespace wavetank::sim
