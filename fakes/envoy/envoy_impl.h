// The inside of an Envoy: what its parts share. Internal to this folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/base/random.h"
#include "fakes/envoy/ads_client.h"
#include "fakes/envoy/cluster_runtime.h"
#include "fakes/envoy/config_store.h"
#include "fakes/envoy/downstream.h"
#include "fakes/envoy/envoy.h"
#include "fakes/envoy/router.h"
#include "fakes/envoy/string_map.h"

namespace wavetank::envoysim {

// As the names of a subscription are.
inline void SortUnique(std::vector<std::string>* names) {
  std::sort(names->begin(), names->end());
  names->erase(std::unique(names->begin(), names->end()), names->end());
}

class Envoy::Impl final : public AdsClient::Handler {
 public:
  Impl(DataPlane& plane, EnvoyContext& context, const EnvoyOptions& options);
  ~Impl() override;

  void Start();
  void Stop(StopKind kind);
  void Drain();

  // --- for the data plane

  DataPlane& plane() { return plane_; }
  Host& host() { return host_; }
  Fabric& fabric() { return plane_.fabric(); }
  const EnvoyOptions& options() const { return options_; }
  NameId trace_name() const { return trace_name_; }
  bool running() const { return running_; }
  bool live() const { return live_; }
  bool draining() const { return draining_; }
  bool connected() const { return ads_ != nullptr && ads_->connected(); }
  // Grows with every change of clusters, listeners or routes in use; what was remembered before is void.
  uint32_t epoch() const { return epoch_; }
  // Grows with every change of a secret.
  uint32_t secrets_epoch() const { return secrets_epoch_; }

  // An active cluster, made ready for traffic; nullptr: unknown or still warming for the first time. O(1) after first
  // use.
  ClusterRuntime* Cluster(std::string_view name);
  std::shared_ptr<const RouteTable> Routes(std::string_view name) const;
  // The listener in force for a redirected or direct connection; nullptr: none. `restores`: whether the one that the
  // connection arrived at looks for where it was sent before a redirect.
  std::shared_ptr<const ListenerConfig> FindListener(uint16_t bound_port, const SocketAddress& destination,
                                                     bool* restores) const;
  TlsParty Party(const std::shared_ptr<const TlsContext>& context) const;

  RandomStream NewStream(std::string_view purpose) const;
  RandomStream& random() { return random_; }
  uint64_t& Counter(std::string_view name);
  uint64_t counter(std::string_view name) const;

  void Attach(DownstreamConnection* connection);
  void Detach(DownstreamConnection* connection);

  RouteCache& route_cache() { return route_cache_; }

  // Adds what it knows of itself to *entry and writes the lines; the end of what they are about.
  void WriteAccessLogs(const AccessLogs& logs, AccessLogEntry* entry) {
    entry->hostname = std::string_view(options_.name).substr(0, options_.name.find('.'));
    if (!plane_.collects_access_logs()) return;  // not any more
    envoysim::WriteAccessLogs(logs, *entry, entry->end,
                              [this](const AccessLogLine& line) { plane_.on_access_log()(context_, line); });
  }

  Acceptor& outbound() { return outbound_; }
  Acceptor& inbound() { return inbound_; }
  Acceptor& direct() { return direct_; }

  std::string_view accepted_version(XdsType type) const {
    return ads_ == nullptr ? std::string_view() : ads_->version(type);
  }
  std::vector<EndpointStatus> Endpoints();
  std::vector<std::string> ClusterNames() const;
  std::vector<std::string> ListenerNames() const;
  std::vector<std::string> RouteNames() const;

 private:
  class ListenSocket final : public Acceptor {
   public:
    ListenSocket(Impl& envoy, uint16_t port) : envoy_(envoy), port_(port) {}
    ConnectionHandler* Accept(ConnectionId connection, const AcceptInfo& info) override;

   private:
    Impl& envoy_;
    const uint16_t port_;  // 0: the destination's own
  };

  struct SecretState {
    std::string name;
    Secret secret;
    bool ready = false;
  };
  // A response on its way through the main thread.
  struct Queued {
    XdsType type;
    SotwResponse sotw;  // its body is null if the response is a delta
    std::shared_ptr<const DeltaDiscoveryResponse> delta;
    uint32_t stream = 0;  // AdsClient::stream() when it came

    const std::string& version() const;
    const std::string& nonce() const;
    size_t resources() const;
    size_t bytes() const;
    std::string_view resource(size_t i) const;  // encoded, without its Any
    std::string_view type_url(size_t i) const;
  };
  // A listener that was removed or replaced keeps its RDS subscriptions until it is drained.
  struct DrainingListener {
    std::shared_ptr<const ListenerConfig> config;
    TimerId timer = kNoTimer;
  };
  struct WarmingCluster {
    std::shared_ptr<const ClusterConfig> config;
    bool needs_endpoints = false;
    Time gives_up_at = Time::max();  // on endpoints
  };
  struct WarmingListener {
    std::shared_ptr<const ListenerConfig> config;
    bool rds_given_up = false;
    TimerId timeout = kNoTimer;
  };
  // The addresses behind a DNS cluster's names.
  struct DnsName {
    std::vector<IpAddress> addresses;
    TimerId timer = kNoTimer;
  };
  struct DnsState {
    std::shared_ptr<const ClusterConfig> config;
    std::vector<DnsName> names;  // by endpoint of the configuration
    bool answered = false;       // any of them, if only with an error
  };
  // A response that is accepted, but not in force before everything in it is warm.
  struct Pending {
    bool set = false;
    int64_t resources = 0;
    std::string version, nonce;
  };
  // Guards callbacks that may outlive this object or this life.
  struct Life {
    Impl* envoy;
  };
  template <typename T>
  struct Changes {
    std::vector<std::shared_ptr<const T>> upserts;  // new or different
    std::vector<std::string> removals;
    std::vector<std::shared_ptr<const T>> some;  // see given()
    bool all = false;
    std::string errors;        // "NAME: WHY", one a line
    std::string first_error;   // the WHY of the first
    bool undecodable = false;  // nothing of the response counts
    std::shared_ptr<const NamedSet<T>> next;

    // All accepted resources, changed or not, sorted by name: `all` that are in `next`, or some.
    const std::vector<std::shared_ptr<const T>>& given() const { return all ? next->items() : some; }
  };
  // Sorted by name; nullptr removes.
  using ActiveChanges = std::vector<std::pair<std::string, std::shared_ptr<const ActiveCluster>>>;
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
  // What a response's endpoints change in one set of active EDS clusters.
  struct Activation {
    std::shared_ptr<const NamedSet<ActiveCluster>> from, to;  // `to` is null if nothing changes
    std::shared_ptr<const Changes<EndpointTable>> endpoints;
    ActiveChanges changes;
  };
  // What was worked out of a response for Envoys in one state, kept with its body: thousands of Envoys take the same
  // step.
  struct Meaning;

  // --- xDS (xds_apply.cc)
  void FillNode(envoy::config::core::v3::Node* node) override { context_.FillNode(node); }
  void OnResponse(XdsType type, SotwResponse response) override;
  void OnDeltaResponse(XdsType type, std::shared_ptr<const DeltaDiscoveryResponse> response) override;
  void OnConnected() override;
  void OnDisconnected(const absl::Status& status) override;
  void Enqueue(Queued queued);
  void ProcessNext();
  void Process(const Queued& queued);
  // What a response changes in `current`. SotW CDS and LDS name everything there is; the others only add. `wanted`,
  // if given, says which names were asked for.
  template <typename T, typename DecodeFn>
  std::shared_ptr<const Changes<T>> Diff(const Queued& queued, const std::shared_ptr<const NamedSet<T>>& current,
                                         bool whole, const ResourceNames& wanted, DecodeFn decode);
  // The same for a response that repeats most of `current`, or that changes some of it and adds nothing; null: it may
  // be of another kind. Looks only into resources that are not those of `current`.
  template <typename T, typename DecodeFn>
  std::shared_ptr<const Changes<T>> Update(const ResponseBody& body, const std::shared_ptr<const NamedSet<T>>& current,
                                           bool whole, const ResourceNames& wanted, DecodeFn decode);
  template <typename T, typename DecodeFn>
  Changes<T> WorkOut(const Queued& queued, const std::shared_ptr<const NamedSet<T>>& current, bool whole,
                     const ResourceNames& wanted, DecodeFn decode, bool* same_for_all);
  // Why a resource that is right in itself cannot be used here; empty: it can.
  std::string Objection(const ClusterConfig&) const { return {}; }
  std::string Objection(const EndpointTable&) const { return {}; }
  std::string Objection(const RouteTable& routes) const { return UnknownCluster(routes.validated); }
  std::string Objection(const ListenerConfig& listener) const { return UnknownCluster(listener.validated); }
  // Whether Objection() looks at this Envoy at all.
  static bool MayObject(const ClusterConfig&) { return false; }
  static bool MayObject(const EndpointTable&) { return false; }
  static bool MayObject(const RouteTable& routes) { return !routes.validated.empty(); }
  static bool MayObject(const ListenerConfig& listener) { return !listener.validated.empty(); }
  std::string UnknownCluster(const std::vector<ClusterUse>& uses) const;
  void RefuseTakenAddresses(Changes<ListenerConfig>* changes);
  std::string ApplyClusters(const Queued& queued);
  std::string ApplyEndpoints(const Queued& queued);
  std::string ApplyListeners(const Queued& queued);
  std::string ApplyRoutes(const Queued& queued);
  std::string ApplySecrets(const Queued& queued);
  void Conclude(const Queued& queued, const std::string& errors);
  void InForce(XdsType type, int64_t resources, std::string_view version, std::string_view nonce);

  // --- clusters
  void WarmCluster(const std::shared_ptr<const ClusterConfig>& config);
  void AwaitEndpoints();
  void GiveUpOnEndpoints();
  bool FirstPhaseWarms() const;
  bool ClusterReady(const WarmingCluster& warming) const;
  // `endpoints_came`: because of a response of EDS.
  void PromoteClusters(bool endpoints_came = false);
  void PromoteFirstClusters();  // those of EDS, if there are none yet and all are ready
  void SetActive(ActiveChanges changes);
  // `from`, a set of those clusters that `of` names, after `changes`; null if they change nothing.
  std::shared_ptr<const NamedSet<ActiveCluster>> NextActive(const NamedSet<ActiveCluster>& from,
                                                            const ActiveChanges& changes,
                                                            absl::FunctionRef<bool(const ActiveCluster&)> of);
  void Adopt(ActiveSets active, const ActiveChanges& changes);
  Activation WorkOutActivation(const Changes<EndpointTable>& endpoints);
  void RetireRuntime(const std::string& name);
  std::shared_ptr<const ActiveCluster> Activate(const std::shared_ptr<const ClusterConfig>& config);
  const ResourceNames& EdsNames() const;
  std::vector<WarmingCluster>::iterator FindWarming(std::string_view name);  // lower bound
  void ClustersMayBeWarm();
  void AskForListeners();
  void ResolveDns(const std::shared_ptr<const ClusterConfig>& config);
  void ResolveName(const std::shared_ptr<const ClusterConfig>& config, size_t endpoint);
  void DnsAnswered(const std::shared_ptr<const ClusterConfig>& config, size_t endpoint,
                   const absl::StatusOr<DnsAnswer>& answer);
  std::shared_ptr<const EndpointTable> DnsTable(const DnsState& state);
  DnsState* FindDns(std::string_view cluster) const;
  DnsState* FindDns(const ClusterConfig& config) const;  // of exactly this configuration
  void CancelDns(const DnsState& state);
  void ForgetDns(std::string_view cluster);

  // --- listeners
  void WarmListener(const std::shared_ptr<const ListenerConfig>& config);
  bool ListenerReady(const WarmingListener& warming) const;
  void PromoteListeners();
  ResourceNames RdsNames() const;
  void WantRoutes();
  void DrainListener(const std::shared_ptr<const ListenerConfig>& listener);
  void CheckLive();
  void DrainStale();

  // --- secrets
  // Those over ADS are asked for by AskForSecrets().
  void NeedSecrets(const std::vector<std::string>& names);
  void AskForSecrets();
  bool SecretsReady(const std::vector<std::string>& names) const;
  const SecretState* FindSecret(std::string_view name) const;
  void OnSecret(const std::string& name, absl::StatusOr<Secret> secret);

  Duration Draw(const LatencyRange& range);
  void Trace(TraceKind kind, XdsType type, int64_t a = 0, int64_t b = 0, std::string_view detail = {});
  void LoadBootstrap();

  DataPlane& plane_;
  EnvoyContext& context_;
  Host& host_;
  const EnvoyOptions options_;
  NameId trace_name_;
  RandomStream random_;
  ListenSocket outbound_, inbound_, direct_;
  std::shared_ptr<Life> life_;

  bool running_ = false;
  bool started_ads_ = false;
  bool live_ = false;
  bool draining_ = false;
  bool lds_subscribed_ = false;
  bool applying_clusters_ = false;  // some of a CDS response are not looked at yet
  bool eds_waits_ = false;          // for the first clusters of other types
  bool lds_received_ = false;
  bool cds_received_ = false;
  uint32_t epoch_ = 1;
  uint32_t secrets_epoch_ = 1;
  uint32_t lives_ = 0;

  std::unique_ptr<AdsClient> ads_;
  std::vector<Queued> queue_;
  bool processing_ = false;
  TimerId main_thread_timer_ = kNoTimer;
  TimerId start_timer_ = kNoTimer;
  TimerId init_timer_ = kNoTimer;

  // What the control plane said last.
  std::shared_ptr<const NamedSet<ClusterConfig>> clusters_;
  std::shared_ptr<const NamedSet<EndpointTable>> endpoints_;
  std::shared_ptr<const NamedSet<ListenerConfig>> listeners_;
  std::shared_ptr<const NamedSet<RouteTable>> routes_;
  // What is in use.
  ActiveSets active_;
  std::shared_ptr<const NamedSet<ListenerConfig>> listening_;
  std::shared_ptr<const ConfigStore::ListenerIndex> by_address_;
  // What is neither yet; empty almost always. Clusters sorted by name.
  std::vector<WarmingCluster> warming_clusters_;
  // One for all of them, at the earliest gives_up_at or before: a timer each would be a thousand for a full push.
  TimerId warming_timer_ = kNoTimer;
  std::vector<WarmingListener> warming_listeners_;
  std::vector<DrainingListener> draining_listeners_;
  Pending pending_cds_, pending_lds_;
  std::vector<SecretState> secrets_;
  bool more_secrets_over_ads_ = false;  // than are asked for
  std::vector<std::unique_ptr<DnsState>> dns_;

  StringMap<std::unique_ptr<ClusterRuntime>> runtimes_;
  std::vector<std::unique_ptr<ClusterRuntime>> retired_;
  RouteCache route_cache_;
  DownstreamConnection* connections_ = nullptr;  // list
  std::unique_ptr<StringMap<uint64_t>> counters_;
};

}  // namespace wavetank::envoysim
