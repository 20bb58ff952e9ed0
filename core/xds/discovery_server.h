// istiod's discovery server: hears of changes, debounces them, builds push contexts and pushes to connected proxies
// (istiod: pilot/pkg/xds/discovery.go, ads.go, eds.go).
//
// The way of an event, each step with its trace record and under the event's cause:
//   EdsUpdate/ConfigUpdate (kConfigUpdate) -> debouncer (kDebounced) -> push context of a full push
//   (kPushContextReady) -> push queue (kPushQueued, kPushDequeued) -> generation -> kXdsSent -> ... kXdsAck.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/base/observers.h"
#include "core/base/random.h"
#include "core/model/xds_updater.h"
#include "core/push/push_context.h"
#include "core/xds/cache.h"
#include "core/xds/connection.h"
#include "core/xds/connection_event.h"
#include "core/xds/debouncer.h"
#include "core/xds/generator.h"
#include "core/xds/push_observer.h"
#include "core/xds/push_queue.h"
#include "core/xds/rate_limiter.h"
#include "core/xds/stream.h"
#include "core/xds/workload_registrar.h"

namespace wavetank::pilot {

class DiscoveryServer final : public XdsUpdater {
 public:
  struct Options {
    std::string name = "istiod";  // in the trace
    Debouncer::Options debounce;
    int push_throttle = 100;           // PILOT_PUSH_THROTTLE: push events under way at a time
    int64_t requests_per_second = 25;  // PILOT_MAX_REQUESTS_PER_SECOND: new streams; 0 is no limit
    Duration request_patience = 1s;    // how long a new stream may wait for its turn
    bool xds_auth = true;              // XDS_AUTH
    bool identity_check = true;        // PILOT_ENABLE_XDS_IDENTITY_CHECK
    bool cache = true;                 // PILOT_ENABLE_XDS_CACHE
    // --clusterAliases: a proxy that says the first belongs to the cluster that istiod knows by the second.
    std::map<ClusterId, ClusterId> cluster_aliases;
    // How a proxy is called in the trace; by default "pod.namespace@cluster".
    std::function<std::string(const Proxy&)> proxy_name;
    // In what order connections join the push queue: istiod's is that of a Go map. Without, in order of connecting.
    std::optional<RandomStream> push_order;
    LogSink log;  // may be empty
  };
  // What a push context is made from, now. Its `endpoints` is set by the server.
  using EnvironmentSource = std::function<Environment()>;

  DiscoveryServer(Host& host, EnvironmentSource environment, Options options);
  // Ends nothing in order: streams that are still there get no word. See Shutdown.
  ~DiscoveryServer() override;
  DiscoveryServer(const DiscoveryServer&) = delete;
  DiscoveryServer& operator=(const DiscoveryServer&) = delete;

  // `generator` must outlive the server. A type without one is accepted and never answered.
  void SetGenerator(XdsType type, Generator* generator) { generators_[static_cast<size_t>(type)] = generator; }
  // For proxies whose metadata name this GENERATOR; types without one of their own use those of all proxies. istiod:
  // findGenerator.
  void SetGenerator(std::string_view name, XdsType type, Generator* generator);
  // Null for none; else it outlives the server.
  void SetRegistrar(WorkloadRegistrar* registrar) { registrar_ = registrar; }
  WorkloadRegistrar* registrar() const { return registrar_; }
  // Null for none.
  void SetObserver(PushObserver* observer) { observer_ = observer; }

  // Until then every stream is refused as Unavailable.
  void SetReady() { ready_ = true; }
  bool ready() const { return ready_; }
  // Refuses what comes and ends all streams with `status`.
  void Shutdown(const absl::Status& status);

  // A new stream; messages may be sent on it at once. Destroying the handle is the client's hanging up; it may outlive
  // the server. `stream` must live until then, or until it was closed.
  // With `authenticate` the peer's identities come from there.
  std::unique_ptr<AdsConnection> Connect(Peer peer, AdsStream& stream, AuthenticatePeer authenticate = nullptr);

  // XdsUpdater
  void EdsUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                 EndpointList endpoints) override;
  void EdsCacheUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                      EndpointList endpoints) override;
  void SvcUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns, Event event) override;
  void ConfigUpdate(PushRequest request) override;
  void ProxyUpdate(const ClusterId& cluster, std::string_view ip) override;
  void RemoveShard(const ShardKey& shard) override;

  // Events that came in, and of these how many were given to the connections (not: sent).
  uint64_t inbound_updates() const { return debouncer_.inbound(); }
  uint64_t committed_updates() const { return debouncer_.committed(); }
  // Nothing waits or is under way, neither events nor pushes.
  bool Idle() const { return debouncer_.idle() && queue_.empty() && in_flight_ == 0; }

  EndpointIndex& endpoints() { return endpoints_; }
  const EndpointIndex& endpoints() const { return endpoints_; }
  XdsCache& cache() { return cache_; }
  const XdsCache& cache() const { return cache_; }
  // Of the last full push; made on the spot if there was none.
  const PushContextRef& push_context();
  // Null if there was none.
  const PushContextRef& last_push_context() const { return push_context_; }
  uint64_t pushes() const { return pushes_; }
  // By order of connecting; only those whose node is known.
  std::vector<const Connection*> Clients() const;

  // Told while such things happen; a callback must not connect or hang up.
  Observers<const ConnectionEvent&> on_connection_event;

  // For Connection.
  Host& host() { return host_; }
  const Options& options() const { return options_; }
  std::weak_ptr<char> life() const { return alive_; }  // for what may outlive the server
  PushObserver& observer() { return observer_ != nullptr ? *observer_ : no_observer_; }
  Generator* FindGenerator(XdsType type, const Proxy& proxy) const;
  std::string NewConnectionId(std::string_view proxy_id);
  std::string NewNonce();
  NameId ProxyTraceName(const Proxy& proxy);
  NameId TypeTraceName(XdsType type) const { return type_names_[static_cast<size_t>(type)]; }
  void OnConnected(const std::shared_ptr<Connection>& connection);
  void OnInitialized(const Connection& connection);
  void OnClosed(const std::shared_ptr<Connection>& connection);
  void OnPushDone(const std::shared_ptr<Connection>& connection);

 private:
  class Handle;
  using ConnectionRef = std::shared_ptr<Connection>;

  // What istiod's log says of pushes; nothing without a log.
  void LogDebounced(const PushRequest& request);
  void LogPushing(const PushRequest& request) const;
  // `known`: the service had an entry before.
  void LogEndpoints(const ShardKey& shard, std::string_view hostname, std::string_view ns, bool none, bool known,
                    EndpointIndex::PushType push) const;
  EndpointIndex::PushType UpdateEndpoints(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                                          EndpointList endpoints);
  void ClearCacheOf(std::string_view hostname, std::string_view ns);
  Environment CurrentEnvironment();
  void Push(PushRequest request, Callback done);
  void DropCache(const PushRequest& request);
  std::vector<ConnectionRef> InPushOrder();
  void StartPush(PushRequest request, Callback done);
  void NoteQueued(const Connection& connection);
  void SendPushes();

  Host& host_;
  const EnvironmentSource environment_;
  const Options options_;
  std::optional<RandomStream> push_order_;
  NameId trace_name_;
  std::array<NameId, kXdsTypes> type_names_{};
  using Generators = std::array<Generator*, kXdsTypes>;
  Generators generators_{};
  std::map<std::string, Generators, std::less<>> named_generators_;
  PushObserver no_observer_;
  PushObserver* observer_ = nullptr;
  WorkloadRegistrar* registrar_ = nullptr;

  EndpointIndex endpoints_;
  XdsCache cache_;
  PushContextRef push_context_;
  Debouncer debouncer_;
  PushQueue<Connection> queue_;
  int in_flight_ = 0;
  bool sending_ = false;
  RateLimiter limiter_;
  bool ready_ = false, shut_down_ = false;

  std::map<uint64_t, ConnectionRef> streams_;                           // all that are open
  std::map<uint64_t, ConnectionRef> clients_;                           // those whose node is known
  absl::flat_hash_map<std::string, std::set<uint64_t>> clients_by_ip_;  // by their first address
  uint64_t next_stream_ = 1, next_connection_ = 1, next_nonce_ = 1, pushes_ = 0;
  std::string nonce_prefix_;
  // For the log: the reasons of what the debouncer holds, in their order, and when the last came; lines so far.
  std::vector<std::string_view> gathered_;
  Time last_gathered_{};
  uint64_t debounced_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
