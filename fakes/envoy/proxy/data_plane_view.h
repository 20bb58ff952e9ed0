// What is in use in one Envoy: clusters, listeners and routes in force, and the connections that it has accepted. The
// xDS side (xds/) puts things in force here; connections and requests find them here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "fakes/envoy/access_log/istio_stats.h"
#include "fakes/envoy/config/config_store.h"
#include "fakes/envoy/process/process.h"
#include "fakes/envoy/process/secrets.h"
#include "fakes/envoy/proxy/data_plane.h"
#include "fakes/envoy/proxy/downstream.h"
#include "fakes/envoy/proxy/http_stats.h"
#include "fakes/envoy/proxy/router.h"
#include "fakes/envoy/upstream/cluster_runtime.h"
#include "fakes/envoy/upstream/dns_cache.h"
#include "fakes/envoy/upstream/endpoint_status.h"

namespace wavetank::envoysim {

// The clusters in use. Those of EDS stand apart: Envoys of one view have the same, whatever inbound clusters each has
// of its own, so that what new endpoints change is worked out once for all of them.
struct ActiveSets {
  std::shared_ptr<const NamedSet<ActiveCluster>> eds, others;  // no name is in both

  const std::shared_ptr<const ActiveCluster>* Find(std::string_view name) const {
    const auto* found = eds->Find(name);
    return found != nullptr ? found : others->Find(name);
  }
  std::vector<std::shared_ptr<const ActiveCluster>> All() const;  // sorted by name; none if the sets are null
};

// Sorted by name; nullptr removes.
using ActiveChanges = std::vector<std::pair<std::string, std::shared_ptr<const ActiveCluster>>>;

class DataPlaneView {
 public:
  DataPlaneView(DataPlane& plane, Process& process, Secrets& secrets);

  // A life begins and ends; `kind` is how its connections do.
  void Begin();
  void End(StopKind kind);
  // Process::DrawAnew, and all that drew from it.
  void DrawAnew(uint64_t as);

  DataPlane& plane() { return plane_; }
  Process& process() { return process_; }
  const Secrets& secrets() const { return secrets_; }
  Host& host() { return process_.host(); }
  Fabric& fabric() { return process_.fabric(); }
  const EnvoyOptions& options() const { return process_.options(); }
  uint32_t life() const { return process_.life(); }
  NameId trace_name() const { return process_.trace_name(); }
  bool draining() const { return process_.draining(); }
  EnvoyRelease release() const { return process_.release(); }
  RandomStream& random() { return process_.random(); }
  uint64_t& Counter(std::string_view name) { return process_.Counter(name); }
  // Grows with every change of clusters, listeners or routes in use; what was remembered before is void.
  uint32_t epoch() const { return epoch_; }
  RouteCache& route_cache() { return route_cache_; }

  // An active cluster, made ready for traffic; nullptr: unknown or still warming for the first time. O(1) after first
  // use.
  ClusterRuntime* Cluster(std::string_view name);
  // A cluster that warms and needs to be in use for that.
  std::unique_ptr<ClusterRuntime> MakeRuntime(std::shared_ptr<const ActiveCluster> active);
  // It is about to become active, and then goes on as it is.
  void KeepReady(std::unique_ptr<ClusterRuntime> runtime);
  // The cache of that name; the first that asks for it says what it is like.
  DnsCache& Names(const DnsCacheConfig& config);
  std::shared_ptr<const RouteTable> Routes(std::string_view name) const;
  // The listener in force for a redirected or direct connection; nullptr: none. `restores`: whether the one that the
  // connection arrived at looks for where it was sent before a redirect.
  std::shared_ptr<const ListenerConfig> FindListener(uint16_t bound_port, const SocketAddress& destination,
                                                     bool* restores) const;

  void Attach(DownstreamConnection* connection);
  void Detach(DownstreamConnection* connection);

  // What filters keep here until the process ends, by their keys.
  std::shared_ptr<FilterState>& filter_state(uint64_t key) { return filter_states_[key]; }
  // When the listeners in force came into force.
  Time listening_since() const { return listening_since_; }

  // Of its own workload, as its node's metadata says.
  const PeerInfo* peer() const;
  IstioCounters& istio_counters() { return istio_counters_; }

  // Adds what it knows of the Envoy to *entry and writes the lines; the end of what they are about.
  void WriteAccessLogs(const AccessLogs& logs, AccessLogEntry* entry);

  // --- what is in force

  const ActiveSets& active() const { return active_; }
  bool has_runtimes() const { return !runtimes_.empty() || !retired_.empty(); }
  // Return the clusters with traffic that are gone for good.
  std::vector<std::string> SetActive(ActiveChanges changes);
  std::vector<std::string> Adopt(ActiveSets active, const ActiveChanges& changes);
  // `from`, a set of those clusters that `of` names, after `changes`; null if they change nothing.
  std::shared_ptr<const NamedSet<ActiveCluster>> NextActive(const NamedSet<ActiveCluster>& from,
                                                            const ActiveChanges& changes,
                                                            absl::FunctionRef<bool(const ActiveCluster&)> of);
  const std::shared_ptr<const NamedSet<ListenerConfig>>& listening() const { return listening_; }
  void SetListening(std::shared_ptr<const NamedSet<ListenerConfig>> listening);
  // Connections of listeners and chains that are no more begin to drain.
  void DrainStale();
  const std::shared_ptr<const NamedSet<RouteTable>>& routes() const { return routes_; }
  void SetRoutes(std::shared_ptr<const NamedSet<RouteTable>> routes);

  // What ECDS gives filters, by name; nullptr: nothing any more.
  void SetExtension(const std::string& name, std::shared_ptr<const ExtensionFilter> filter);
  const std::map<std::string, std::shared_ptr<const ExtensionFilter>>& extensions() const { return extensions_; }
  // The chain of a connection manager that leaves filters to ECDS, as it is now. Requests keep the one that they began
  // with.
  using Filters = std::shared_ptr<const std::vector<HttpFilterLink>>;
  Filters FiltersOf(const HttpConnectionManager& manager);

  // --- for dumps and tests

  std::vector<EndpointStatus> Endpoints() const;
  std::vector<EndpointsInUse> EndpointTables() const;
  std::vector<std::string> ClusterNames() const;
  std::vector<std::string> ListenerNames() const;
  std::vector<std::string> RouteNames() const;
  uint64_t counter(std::string_view name) const;
  // All of them, and gauges, by Envoy's names; those too that are 0.
  std::map<std::string, uint64_t> AllStats() const;

  // Of the connection managers with a stat_prefix ("http.PREFIX."), of one at a listener
  // ("listener.ADDRESS.http.PREFIX."), and of a listener ("listener.ADDRESS.").
  HttpStats& http_stats(const std::string& prefix);
  ListenerStats& listener_stats(const std::string& prefix);

 private:
  bool MeasuresForIstio() const;
  void AddClusterStats(std::map<std::string, uint64_t>* out) const;

  // Its counts become the process's: a successor of that name goes on from them.
  void Fold(ClusterRuntime* runtime);
  // Whether it is gone for good.
  bool RetireRuntime(const std::string& name);
  // Clusters in use follow their changes; `gone`: those that are no more.
  void AdoptInRuntimes(const ActiveChanges& changes, std::vector<std::string>* gone);

  DataPlane& plane_;
  Process& process_;
  Secrets& secrets_;
  ActiveSets active_;
  std::shared_ptr<const NamedSet<ListenerConfig>> listening_;
  std::shared_ptr<const ConfigStore::ListenerIndex> by_address_;
  std::shared_ptr<const NamedSet<RouteTable>> routes_;
  StringMap<std::unique_ptr<ClusterRuntime>> runtimes_;
  StringMap<std::unique_ptr<ClusterRuntime>> ready_;  // KeepReady()
  std::vector<std::unique_ptr<ClusterRuntime>> retired_;
  std::map<std::string, std::unique_ptr<DnsCache>> names_;
  RouteCache route_cache_;
  StringMap<std::unique_ptr<HttpStats>> http_stats_;
  StringMap<std::unique_ptr<ListenerStats>> listener_stats_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<FilterState>> filter_states_;
  std::map<std::string, std::shared_ptr<const ExtensionFilter>> extensions_;
  // By their managers, which listeners in force or connections hold; void with every change of either.
  absl::flat_hash_map<const HttpConnectionManager*, Filters> chains_;
  Time listening_since_{};
  mutable const PeerInfo* peer_ = nullptr;  // null: nobody has asked yet
  mutable std::string istio_version_;
  IstioCounters istio_counters_;
  DownstreamConnection* connections_ = nullptr;  // list
  uint32_t epoch_ = 1;
};

// Where connections to an Envoy arrive.
class ListenSocket final : public Acceptor {
 public:
  ListenSocket(DataPlaneView& envoy, uint16_t port) : envoy_(envoy), port_(port) {}
  ConnectionHandler* Accept(ConnectionId connection, const AcceptInfo& info) override;

 private:
  DataPlaneView& envoy_;
  const uint16_t port_;  // 0: the destination's own
};

}  // namespace wavetank::envoysim
