// A cluster in use by one Envoy: hosts, load balancer, connection pools, circuit breakers, outlier detection. Made when
// traffic first needs it, so that idle Envoys cost nothing.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/host.h"
#include "fakes/envoy/config/cluster_config.h"
#include "fakes/envoy/config/config_store.h"
#include "fakes/envoy/lb/load_balancer.h"
#include "fakes/envoy/process/process.h"
#include "fakes/envoy/process/secrets.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/tls/tls.h"
#include "fakes/envoy/upstream/cluster_stats.h"
#include "fakes/envoy/upstream/health_checker.h"
#include "fakes/envoy/upstream/http_pool.h"

namespace wavetank::envoysim {

// What became of a try, for outlier detection. kTcpConnected: all that a tcp_proxy will ever know.
enum class OutlierResult : uint8_t { kHttpCode, kConnected, kTcpConnected, kConnectFailed, kTimeout, kReset };

// What clusters in use need of the Envoy that they are in.
struct UpstreamContext {
  Process& process;
  Secrets& secrets;
  PoolUser& streams;
};

// What holds a connection to a host beside its pools.
class HostUser {
 public:
  // The connection is to end.
  virtual void OnHostFailed() = 0;

 protected:
  ~HostUser() = default;
};

// What is known by requests: it stays until none of them does. A pointer to it that says so.
template <typename T>
class Held {
 public:
  Held() = default;
  Held(T* held) : held_(held) {  // NOLINT(google-explicit-constructor): a pointer like another
    if (held_ != nullptr) ++held_->holders;
  }
  Held(const Held& o) : Held(o.held_) {}
  Held& operator=(const Held& o) {
    Held copy(o);
    std::swap(held_, copy.held_);
    return *this;
  }
  ~Held() {
    if (held_ != nullptr) --held_->holders;
  }
  operator T*() const { return held_; }  // NOLINT(google-explicit-constructor)
  T* operator->() const { return held_; }

 private:
  T* held_ = nullptr;
};

struct HostRuntime {
  uint32_t id = 0;  // unique in its cluster
  SocketAddress address;
  std::shared_ptr<const std::vector<SocketAddress>> more_addresses;  // tried when that one does not answer; null: none
  std::string locality, hostname;
  std::string workload;  // LbEndpoint::workload
  std::shared_ptr<const StringPairs> metadata;
  int32_t index = -1;   // in the endpoint table or among named hosts; -1: removed from the cluster, or of ORIGINAL_DST
  bool chosen = false;  // of ORIGINAL_DST: since the last clean-up
  int socket = -1;      // index into socket_matches
  LbHost lb;
  CheckedHost checked;
  std::shared_ptr<const EndpointCheck> check;  // LbEndpoint::check
  uint32_t connections = 0;
  // Outlier detection.
  uint32_t consecutive_5xx = 0, consecutive_gateway = 0, consecutive_local = 0;
  uint32_t ejection_backoff = 0;
  Time ejected_at{};
  std::vector<std::unique_ptr<HttpPool>> pools;
  std::vector<HostUser*> users;  // that want to know when it fails
  uint32_t holders = 0;          // Held

  bool idle() const { return lb.active_requests == 0 && connections == 0 && holders == 0; }
};

class ClusterRuntime {
 public:
  ClusterRuntime(const UpstreamContext& context, std::shared_ptr<const ActiveCluster> active);
  ~ClusterRuntime();
  ClusterRuntime(const ClusterRuntime&) = delete;
  ClusterRuntime& operator=(const ClusterRuntime&) = delete;

  const ClusterConfig& config() const { return *active_->config; }
  const std::shared_ptr<const ActiveCluster>& active() const { return active_; }
  Process& process() { return context_.process; }
  const Secrets& secrets() const { return context_.secrets; }
  PoolUser& streams() { return context_.streams; }

  // The process draws anew: so does the load balancer.
  void DrawAnew();
  // Active health checks begin; false: there is no host to ask. `first_round` is called, never within this call, when
  // each host that is there now was asked once: only then is the cluster ready for traffic. `had_connections`: its
  // predecessor of the same name had. Envoy: upstream_impl.cc, onInitDone, finishInitialization
  bool StartChecks(bool had_connections, Callback first_round);
  // Of a health check: the host's state is another, or it is what it was.
  void OnChecked(HostRuntime& host, bool changed, bool passed);
  // An answer of the host's said x-envoy-immediate-health-check-fail.
  void FailNow(HostRuntime& host);
  bool had_connections() const { return had_connections_ || stats_[static_cast<size_t>(ClusterStat::kCxTotal)] > 0; }
  // Same configuration, other endpoints. Hosts that stay keep their connections and counters.
  void Update(std::shared_ptr<const ActiveCluster> active);
  // The cluster was removed or replaced: existing requests finish, connections close when idle.
  void Retire();
  bool retired() const { return retired_; }
  bool idle() const;
  // The process is about to die: what waits for a connection gets none any more.
  void BeginEnd() { ends_ = true; }
  bool ends() const { return ends_; }
  void Abort(StopKind kind);

  // nullptr: no healthy upstream. `original_dst`: of the downstream connection.
  HostRuntime* PickHost(const LoadBalancer::Context& context, const SocketAddress& original_dst);
  // The same with hosts named by HostRuntime::id in `avoid`, and without some priorities (null: none).
  HostRuntime* PickHost(std::optional<uint64_t> hash, const std::vector<uint32_t>& avoid, uint32_t reselections,
                        const std::vector<bool>* without, const SocketAddress& original_dst);
  // The host of that name, if it is known and well. Of kDynamicForward.
  HostRuntime* PickNamed(const std::string& name);
  // It is known, or known elsewhere, or (no addresses) no more.
  void SetNamed(const std::string& name, const std::vector<SocketAddress>& addresses);
  // Nothing: the host is in none any more.
  std::optional<uint32_t> PriorityOf(const HostRuntime& host) const;
  bool AnyBut(const std::vector<bool>& priorities) const { return lb_.has_value() && lb_->AnyBut(priorities); }
  HttpPool& Pool(HostRuntime& host, HttpProtocol protocol, const std::vector<std::string>& alpn, uint64_t alpn_id,
                 SocketOptions options);
  const TransportSocket& Socket(const HostRuntime& host) const;
  // What a connection to the host says first. `alpn` overrides the context's list unless empty.
  std::shared_ptr<const FirstFlight> Flight(const HostRuntime& host, FirstFlight::Kind plain,
                                            const std::vector<std::string>& alpn,
                                            const SocketOptions& options = {}) const;
  // The same of a health check's connection.
  std::shared_ptr<const FirstFlight> FlightOfCheck(const HostRuntime& host, FirstFlight::Kind plain) const;

  void Report(HostRuntime& host, OutlierResult result, uint32_t code);

  // An answer of that code: the request's, or one that is followed by another try.
  void CountCode(uint16_t code, bool retried, bool internal = false);
  // What CountCode() counted, by Envoy's names: "upstream_rq_200", "retry.upstream_rq_503",
  // "external.upstream_rq_2xx"...
  std::map<std::string, uint64_t> CodeCounters() const;
  // Gauges: "membership_total", "upstream_cx_active", "circuit_breakers.default.rq_open", ...
  std::map<std::string, uint64_t> Gauges() const;
  // How a handshake with one of its hosts ended.
  void CountHandshake(const TlsOutcome& outcome);
  // An error of TLS (tls/tls.h) in the words of this Envoy's release.
  std::string Worded(std::string_view error);
  // The transport failure of a connection that was reset in its handshake.
  std::string ResetInHandshake();
  // A connection is gone, and so many requests with it.
  void CountDestroyed(bool local, size_t requests);

  void Count(ClusterStat stat, int64_t delta = 1) { stats_[static_cast<size_t>(stat)] += static_cast<uint64_t>(delta); }
  const ClusterStats& stats() const { return stats_; }
  // What was counted is kept elsewhere.
  void ForgetCounts();

  uint32_t holders = 0;  // Held
  // Circuit breakers.
  uint32_t active_requests = 0, pending_requests = 0, connections = 0, retries = 0;
  uint32_t MaxRetries() const { return config().circuit_breakers.MaxRetries(active_requests + pending_requests); }

  void BeginRequest(HostRuntime& host) { ++host.lb.active_requests, ++active_requests; }
  void EndRequest(HostRuntime& host);
  void ConnectionClosed(HostRuntime& host);

  // What it balances over: its endpoints, and hosts that are gone from them but well.
  const std::shared_ptr<const EndpointTable>& table() const { return table_; }
  const std::vector<HostRuntime*>& hosts() const { return by_index_; }  // in the table's order
  // Of a host that is known by its name.
  bool Ejected(const SocketAddress& address) const;
  // Of all its hosts, in order.
  std::vector<SocketAddress> Addresses() const;
  NameId trace_name();

 private:
  HostRuntime* AddHost(const SocketAddress& address);
  std::vector<HostRuntime*> ById() const;
  void SetTable(std::shared_ptr<const EndpointTable> table);
  // Together with the hosts that stay although they are gone from it.
  std::shared_ptr<const EndpointTable> WithKept(std::shared_ptr<const EndpointTable> table);
  // Of a context with the secrets in force: with others it begins anew.
  std::shared_ptr<TlsSessionCache> Sessions(const TransportSocket& socket, const TlsParty& party) const;
  std::shared_ptr<FirstFlight> FlightBy(const TransportSocket& socket, FirstFlight::Kind plain,
                                        const std::vector<std::string>& alpn, const SocketOptions& options) const;
  void AskNew();                   // hosts that are not asked yet
  void Return(HostRuntime& host);  // of an ejected one
  void DrainLater(const HostRuntime& host);
  void RebuildLb();
  void HealthChanged();
  // `detected`, `enforced`: how each is counted.
  void ConsecutiveFailures(HostRuntime& host, uint32_t enforcing, ClusterStat detected, ClusterStat enforced);
  void Eject(HostRuntime& host);
  // Those hosts' connections drain.
  void DrainFailed();
  void ArmInterval();
  void OnInterval();
  HostRuntime* OriginalHost(const SocketAddress& address);
  void ArmCleanup();
  void CleanUp();

  const UpstreamContext context_;
  std::shared_ptr<const ActiveCluster> active_;
  std::shared_ptr<const EndpointTable> table_;
  std::optional<LoadBalancer> lb_;
  absl::flat_hash_map<SocketAddress, std::unique_ptr<HostRuntime>> hosts_;
  std::map<std::string, std::unique_ptr<HostRuntime>> named_;  // of kDynamicForward, in their place
  std::vector<std::unique_ptr<HostRuntime>> leaving_;          // removed, but still in use
  std::vector<HostRuntime*> by_index_;
  uint32_t next_host_id_ = 1;
  ClusterStats stats_{};
  struct CodeCount {
    uint16_t code = 0;
    uint64_t external = 0, internal = 0, retried = 0;
  };
  std::vector<CodeCount> codes_;  // few
  struct ContextSessions {
    std::shared_ptr<const TlsContext> context;  // held, so that no other gets its place
    x509::Fingerprint certificate = 0, trusted_ca = 0;
    std::shared_ptr<TlsSessionCache> sessions;
  };
  mutable std::vector<ContextSessions> sessions_;  // one for each transport socket that was used
  bool retired_ = false, ends_ = false;
  NameId trace_name_ = kNoName;
  // Outlier detection and the update merge window.
  Time created_{};
  Time last_update_{};
  bool updated_once_ = false;
  uint32_t ejected_ = 0;
  TimerId interval_timer_ = kNoTimer;
  TimerId merge_timer_ = kNoTimer;
  TimerId cleanup_timer_ = kNoTimer;
  std::vector<uint32_t> failed_;  // HostRuntime::id, ejected or failed a moment ago
  TimerId failed_timer_ = kNoTimer;
  // Active health checks.
  bool had_connections_ = false;
  size_t unasked_ = 0;  // checks until the first round is over
  Callback first_round_;
  TimerId first_round_timer_ = kNoTimer;
  std::unique_ptr<HealthChecker> checker_;  // goes before its hosts
};

}  // namespace wavetank::envoysim
