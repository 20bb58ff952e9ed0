// What the control plane has said to one Envoy, and what of it is on its way into force: responses wait for the main
// thread, clusters and listeners warm, names are resolved, secrets awaited. What is in force is the DataPlaneView's.
// Envoy: source/common/upstream/{cluster_manager_impl,cds_api_helper}.cc, listener_manager_impl.cc
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/envoy/config/config_store.h"
#include "fakes/envoy/process/process.h"
#include "fakes/envoy/process/secrets.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/xds/ads_client.h"

namespace wavetank::envoysim {

// As the names of a subscription are.
inline void SortUnique(std::vector<std::string>* names) {
  std::sort(names->begin(), names->end());
  names->erase(std::unique(names->begin(), names->end()), names->end());
}

class XdsState final : public AdsClient::Handler {
 public:
  XdsState(Process& process, Secrets& secrets, DataPlaneView& view);

  // A life: Begin(), then, once the process has started, Start(). `on_live` is called when the first configuration is
  // in force.
  void Begin(std::function<void()> on_live);
  void Start();
  void End(StopKind kind);

  // A secret has come.
  void OnSecret();

  bool connected() const { return ads_ != nullptr && ads_->connected(); }
  std::string_view accepted_version(XdsType type) const {
    return ads_ == nullptr ? std::string_view() : ads_->version(type);
  }

 private:
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
    // In use since its hosts are asked for the first time (active health checks); null: not yet.
    std::unique_ptr<ClusterRuntime> runtime;
    bool asked = false;  // all of them were, or there is none
  };
  struct WarmingListener {
    std::shared_ptr<const ListenerConfig> config;
    bool rds_given_up = false, ecds_given_up = false;
    TimerId timeout = kNoTimer, ecds_timeout = kNoTimer;
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
    XdsState* xds;
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
  void FillNode(envoy::config::core::v3::Node* node) override { process_.context().FillNode(node); }
  void OnResponse(XdsType type, SotwResponse response) override;
  void OnDeltaResponse(XdsType type, std::shared_ptr<const DeltaDiscoveryResponse> response) override;
  void OnConnected() override;
  void OnDisconnected(const absl::Status& status) override;
  void Enqueue(Queued queued);
  void ProcessNext();
  void Apply(const Queued& queued);
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
  // In which order the routes of a response with a bad one are looked at.
  std::vector<size_t> OrderOfRoutes(const Queued& queued, const std::vector<std::string>& names);
  std::string UnknownCluster(const std::vector<ClusterUse>& uses) const;
  void RefuseTakenAddresses(Changes<ListenerConfig>* changes);
  std::string ApplyClusters(const Queued& queued);
  // What a delta response takes away stays, of some types.
  static Queued WithoutRemovals(const Queued& queued);
  std::string ApplyEndpoints(const Queued& queued);
  void GoOnWithoutEndpoints();
  std::string ApplyListeners(const Queued& queued);
  std::string ApplyRoutes(const Queued& queued);
  void GiveUpOnRoutes();
  std::string ApplySecrets(const Queued& queued);
  std::string ApplyExtensions(const Queued& queued);
  absl::Status TakeExtension(std::string_view resource);
  // In the order in which their filters stand.
  std::vector<std::string> ExtensionNames() const;
  void CountExtension(std::string_view name, std::string_view what);
  void Conclude(const Queued& queued, const std::string& errors);
  void InForce(XdsType type, int64_t resources, std::string_view version, std::string_view nonce);

  // --- clusters
  void WarmCluster(const std::shared_ptr<const ClusterConfig>& config);
  void AwaitEndpoints();
  void GiveUpOnEndpoints();
  bool FirstPhaseWarms() const;
  bool ClusterReady(const WarmingCluster& warming) const;
  // The same but for its hosts' first health checks.
  bool HasWhatItNeeds(const WarmingCluster& warming) const;
  // First health checks begin where all else is there, and go on with the endpoints that are known by now.
  void CheckHosts();
  // `endpoints_came`: because of a response of EDS.
  void PromoteClusters(bool endpoints_came = false);
  void PromoteFirstClusters();  // those of EDS, if there are none yet and all are ready
  void SetActive(ActiveChanges changes);
  void Adopt(ActiveSets active, const ActiveChanges& changes);
  Activation WorkOutActivation(const Changes<EndpointTable>& endpoints);
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
  // Routes that nobody asked for before are asked for, in this order.
  void NoteRoutesOf(const ListenerConfig& listener);
  void WantExtensions();
  void Forget(WarmingListener& warming);  // its timers
  // What it waits for it is given no longer than so; 0: for good.
  void GiveUpAfter(Duration timeout, WarmingListener* warming, TimerId WarmingListener::*timer,
                   bool WarmingListener::*given_up);
  bool HasRoutes(const ListenerConfig& listener) const;
  bool HasExtensions(const ListenerConfig& listener) const;
  void DrainListener(const std::shared_ptr<const ListenerConfig>& listener);
  void CheckLive();

  void AskForSecrets();
  void Trace(TraceKind kind, XdsType type, int64_t a = 0, int64_t b = 0, std::string_view detail = {});
  void LoadBootstrap();

  Process& process_;
  Secrets& secrets_;
  DataPlaneView& view_;
  Host& host_;
  ConfigStore& configs_;
  std::function<void()> on_live_;
  std::shared_ptr<Life> life_;

  bool lds_subscribed_ = false;
  bool applying_clusters_ = false;  // some of a CDS response are not looked at yet
  bool eds_waits_ = false;          // for the first clusters of other types
  bool lds_received_ = false;
  bool cds_received_ = false;

  std::unique_ptr<AdsClient> ads_;
  std::vector<Queued> queue_;
  bool processing_ = false;
  TimerId main_thread_timer_ = kNoTimer;
  TimerId init_timer_ = kNoTimer;

  // What the control plane said last; of routes, that is what is in force.
  std::shared_ptr<const NamedSet<ClusterConfig>> clusters_;
  std::shared_ptr<const NamedSet<EndpointTable>> endpoints_;
  std::shared_ptr<const NamedSet<ListenerConfig>> listeners_;
  // What is neither yet; empty almost always. Clusters sorted by name.
  std::vector<WarmingCluster> warming_clusters_;
  // One for all of them, at the earliest gives_up_at or before: a timer each would be a thousand for a full push.
  TimerId warming_timer_ = kNoTimer;
  std::vector<WarmingListener> warming_listeners_;
  std::vector<std::string> asked_extensions_;         // by ECDS, in the order of asking
  std::map<std::string, Hash128> latest_extensions_;  // that were not refused before they were tried, by name
  std::set<std::string> extensions_;  // names of filters about which ECDS has answered, if only with a mistake
  std::vector<DrainingListener> draining_listeners_;
  // The route subscriptions that there are, numbered in the order in which they began.
  std::map<std::string, uint64_t, std::less<>> route_subscriptions_;
  uint64_t next_route_subscription_ = 0;
  Pending pending_cds_, pending_lds_;
  std::vector<std::unique_ptr<DnsState>> dns_;
};

}  // namespace wavetank::envoysim
