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
#include "fakes/envoy/upstream/dial.h"
#include "fakes/envoy/upstream/health_checker.h"

namespace wavetank::envoysim {

class ClusterRuntime;
class HttpPool;
class UpstreamConnection;

enum class StreamId : uint64_t {};  // a request in a router
inline constexpr StreamId kNoStream{0};

enum class ClusterStat : uint8_t {
  kCxTotal,
  kCxConnectFail,
  kCxConnectTimeout,
  kCxNoneHealthy,
  kCxOverflow,
  kRqTotal,
  kRqRetry,
  kRqRetrySuccess,
  kRqRetryOverflow,
  kRqRetryLimitExceeded,
  kRqTimeout,
  kRqPerTryTimeout,
  kRqPerTryIdleTimeout,
  kRqPendingOverflow,
  kRqActiveOverflow,
  kLbHealthyPanic,
  kMembershipChange,
  kEjectionsActive,
  kEjectionsEnforcedTotal,
  kEjectionsOverflow,
  kSslHandshake,
  kSslConnectionError,
  kSslFailVerifyError,
  kSslFailVerifySan,
  kSslFailVerifyNoCert,
  kSslFailVerifyCertHash,
  kCxDestroy,
  kCxDestroyLocal,
  kCxDestroyRemote,
  kCxDestroyWithActiveRq,
  kCxDestroyLocalWithActiveRq,
  kCxDestroyRemoteWithActiveRq,
  kCxHttp1Total,
  kCxHttp2Total,
  kCxMaxRequests,
  kCxCloseNotify,
  kCxMaxDurationReached,
  kCxIdleTimeout,
  kCxProtocolError,
  kRqPendingTotal,
  kRqCancelled,
  kRqPendingFailureEject,
  kRqTxReset,
  kRqRetryBackoffExponential,
  kRqRetryBackoffRatelimited,
  kRqMaxDurationReached,
  kEjectionsDetected5xx,
  kEjectionsDetectedGateway,
  kEjectionsDetectedLocal,
  kEjectionsEnforced5xx,
  kEjectionsEnforcedGateway,
  kEjectionsEnforcedLocal,
  kHealthCheckAttempt,
  kHealthCheckSuccess,
  kHealthCheckFailure,
  kHealthCheckPassiveFailure,
  kHealthCheckNetworkFailure,
  kHealthCheckVerifyCluster,
  kUpdateAttempt,
  kUpdateSuccess,
  kCount,
};
// "upstream_cx_total", "ssl.handshake", ...
std::string_view ClusterStatName(ClusterStat stat);

using ClusterStats = std::array<uint64_t, static_cast<size_t>(ClusterStat::kCount)>;

// Why a stream could not be served or was reset. Envoy: include/envoy/http/codec.h, StreamResetReason
enum class ResetReason : uint8_t {
  kNone,
  kOverflow,
  kLocalConnectionFailure,
  kRemoteConnectionFailure,
  kConnectionTimeout,
  kConnectionTermination,
  kRemoteReset,
  kRemoteRefusedStream,
  kLocalReset,
  kProtocolError,
};
std::string_view ResetReasonName(ResetReason reason);  // "remote connection failure"

// What became of a try, for outlier detection. kTcpConnected: all that a tcp_proxy will ever know.
enum class OutlierResult : uint8_t { kHttpCode, kConnected, kTcpConnected, kConnectFailed, kTimeout, kReset };

// Of a connection that came to nothing, beside the reason.
struct TransportFailure {
  std::string_view text;     // as in %UPSTREAM_TRANSPORT_FAILURE_REASON%
  std::string_view finding;  // TlsOutcome::finding
};

// Whose streams pools serve.
class PoolUser {
 public:
  virtual void OnPoolReady(StreamId stream, UpstreamConnection* connection, Duration lead) = 0;
  virtual void OnPoolFailure(StreamId stream, ResetReason reason, const TransportFailure& failure, Duration lead) = 0;
  // `finding`: of a connection that the server hung up on, TlsOutcome::finding.
  virtual void OnUpstreamReset(StreamId stream, ResetReason reason, std::string_view finding) = 0;

 protected:
  ~PoolUser() = default;
};

// What clusters in use need of the Envoy that they are in.
struct UpstreamContext {
  Process& process;
  Secrets& secrets;
  PoolUser& streams;
};

// What differs between connections to one host. Envoy: TransportSocketOptions
struct SocketOptions {
  std::shared_ptr<const AnnouncedAddresses> announced;  // for whom they are, if the PROXY protocol is to say so
  std::string server_name, verified_name;               // in place of the transport socket's; empty: as that has them

  bool operator==(const SocketOptions& o) const {
    if ((announced == nullptr) != (o.announced == nullptr)) return false;
    if (announced != nullptr &&
        (announced->source != o.announced->source || announced->destination != o.announced->destination)) {
      return false;
    }
    return server_name == o.server_name && verified_name == o.verified_name;
  }
};

// Who holds a connection to a host beside its pools.
class HostUser {
 public:
  // The connection is to end.
  virtual void OnHostFailed() = 0;

 protected:
  ~HostUser() = default;
};

struct HostRuntime {
  uint32_t id = 0;  // unique in its cluster
  SocketAddress address;
  std::shared_ptr<const std::vector<SocketAddress>> more_addresses;  // tried when that one does not answer; null: none
  std::string locality, hostname;
  std::shared_ptr<const StringPairs> metadata;
  int32_t index = -1;   // in the endpoint table; -1: removed from the cluster, or of ORIGINAL_DST
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

  bool idle() const { return lb.active_requests == 0 && connections == 0; }
};

// The pooled connections of one host for one protocol and one list of ALPN offers.
class HttpPool {
 public:
  HttpPool(ClusterRuntime& cluster, HostRuntime& host, HttpProtocol protocol, const std::vector<std::string>& alpn,
           uint64_t alpn_id, SocketOptions options);
  ~HttpPool();

  bool Is(HttpProtocol protocol, uint64_t alpn_id, const SocketOptions& options) const {
    return protocol_ == protocol && alpn_id_ == alpn_id && options_ == options;
  }
  HostRuntime& host() { return host_; }
  ClusterRuntime& cluster() { return cluster_; }
  HttpProtocol protocol() const { return protocol_; }

  // Serves the stream now (PoolUser::OnPoolReady), when a connection is free, or not at all (OnPoolFailure).
  void NewStream(StreamId stream, Duration lead);
  // The stream waits no more.
  void CancelPending(StreamId stream);
  // No new stream goes to existing connections; idle ones close.
  void Drain();
  // The same of those that stand now: what comes later is served by others.
  void DrainExisting();
  // The Envoy dies.
  void Abort(StopKind kind);

  bool empty() const { return connections_.empty() && pending_.empty(); }
  // Connections that were silent for too long close, as they would have when they were; nobody looked until now.
  void CloseOverdue();
  // Nothing is in it, and no call into it is under way: it may go.
  bool idle() const { return empty() && calls_ == 0; }

 private:
  friend class UpstreamConnection;
  // While one exists the pool stays.
  class Call {
   public:
    explicit Call(HttpPool& pool) : pool_(pool) { ++pool_.calls_; }
    ~Call() { --pool_.calls_; }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    HttpPool& pool_;
  };
  bool Overdue(const UpstreamConnection& connection) const;
  void CloseOverdue(UpstreamConnection* connection);
  // Those that stand take nothing more; idle ones close.
  void RetireStanding();
  // Opens what is wanted for the streams that wait, as far as the cluster may have more connections.
  void ConnectForPending(Duration lead);
  // False: the cluster has as many as it may have; a pool without any gets one all the same.
  bool Connect(Duration lead);
  // Whether one more request is too many for the cluster; counts.
  bool Overflows();
  void ServePending(UpstreamConnection* connection);
  void OnConnectionReady(UpstreamConnection* connection);
  void OnConnectFailed(UpstreamConnection* connection, ResetReason reason, const TransportFailure& failure);
  void OnClosed(UpstreamConnection* connection);
  void Serve(UpstreamConnection* connection, StreamId stream, Duration lead);
  void Remove(UpstreamConnection* connection);
  std::shared_ptr<const FirstFlight> Flight();

  ClusterRuntime& cluster_;
  HostRuntime& host_;
  const HttpProtocol protocol_;
  const std::vector<std::string> alpn_;
  const uint64_t alpn_id_;
  const SocketOptions options_;
  std::shared_ptr<const FirstFlight> flight_;
  uint32_t flight_epoch_ = 0;
  std::vector<std::unique_ptr<UpstreamConnection>> connections_;
  std::vector<UpstreamConnection*> ready_;  // idle HTTP/1.1, or HTTP/2 with room; the last one is used next
  std::deque<StreamId> pending_;
  bool draining_ = false;             // its host is gone: what becomes idle closes
  uint64_t connecting_capacity_ = 0;  // streams that connections will take which do not stand yet
  uint32_t calls_ = 0;
};

// One pooled connection.
class UpstreamConnection final : public ConnectionHandler {
 public:
  explicit UpstreamConnection(HttpPool& pool);

  ConnectionId id() const { return dial_.id(); }
  bool multiplexes() const { return pool_.protocol() == HttpProtocol::kHttp2; }
  // The server will take no further request; it closes when the present ones are done.
  void GoAway();
  // The request was answered.
  void Done(StreamId stream);
  // The router gives the request up, or the server did; HTTP/1.1 can only close.
  void Reset(StreamId stream, bool by_server = false);

 private:
  friend class HttpPool;
  void OnConnected(ConnectionId connection) override;
  void OnTls(ConnectionId connection, const TlsOutcome& outcome) override;
  void OnFirstFlight(ConnectionId, const std::shared_ptr<const FirstFlight>&, Duration) override {}
  void OnRequest(ConnectionId, ExchangeId, const RequestSpec&, Duration) override {}
  void OnHttp2Notice(ConnectionId connection, const Http2Notice& notice) override;
  void OnClose(ConnectionId connection, CloseKind kind, std::string_view detail) override;
  void Release(StreamId stream);
  void Ready();
  // No further request on it; it closes when the present ones are done.
  void Drain();
  // How many more streams it takes now. Envoy: ActiveClient::currentUnusedCapacity
  uint64_t Room() const;
  // Puts it where new streams find it, or takes it away from there.
  void List();
  void Unlist();

  HttpPool& pool_;
  Dial dial_;
  // How long it may be silent, and old. Nobody waits for the default, an hour of silence: it is looked at when the
  // connection is wanted next.
  void ArmLimits();
  void ArmIdle();
  void CancelTimers();
  // Nothing is under way on it.
  void CloseIdle();

  TimerId connect_timer_ = kNoTimer, idle_timer_ = kNoTimer, age_timer_ = kNoTimer;
  bool ready_ = false;
  bool draining_ = false;
  bool shaking_hands_ = false;
  bool listed_ = false;  // in pool_.ready_
  uint32_t at_most_;     // streams at a time, as configured
  uint32_t at_a_time_;   // ... as far as the server allows it, too
  uint64_t remaining_;   // streams until it has served its time
  Time idle_since_{};
  std::vector<StreamId> streams_;
  std::string finding_;  // the server will hang up on what is said: why
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
  void Abort(StopKind kind);

  // nullptr: no healthy upstream. `original_dst`: of the downstream connection.
  HostRuntime* PickHost(const LoadBalancer::Context& context, const SocketAddress& original_dst);
  // The same with hosts named by HostRuntime::id in `avoid`, and without some priorities (null: none).
  HostRuntime* PickHost(std::optional<uint64_t> hash, const std::vector<uint32_t>& avoid, uint32_t reselections,
                        const std::vector<bool>* without, const SocketAddress& original_dst);
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
  // The transport failure of a connection that was reset in its handshake.
  std::string_view ResetInHandshake();
  // A connection is gone, and so many requests with it.
  void CountDestroyed(bool local, size_t requests);

  void Count(ClusterStat stat, int64_t delta = 1) { stats_[static_cast<size_t>(stat)] += static_cast<uint64_t>(delta); }
  const ClusterStats& stats() const { return stats_; }
  void set_stats(const ClusterStats& stats) { stats_ = stats; }

  // Circuit breakers.
  uint32_t active_requests = 0, pending_requests = 0, connections = 0, retries = 0;

  void BeginRequest(HostRuntime& host) { ++host.lb.active_requests, ++active_requests; }
  void EndRequest(HostRuntime& host);
  void ConnectionClosed(HostRuntime& host);

  // What it balances over: its endpoints, and hosts that are gone from them but well.
  const std::shared_ptr<const EndpointTable>& table() const { return table_; }
  const std::vector<HostRuntime*>& hosts() const { return by_index_; }  // in the table's order
  // Of all its hosts, in order.
  std::vector<SocketAddress> Addresses() const;
  NameId trace_name();

 private:
  HostRuntime* AddHost(const SocketAddress& address);
  void SetTable(std::shared_ptr<const EndpointTable> table);
  // Together with the hosts that stay although they are gone from it.
  std::shared_ptr<const EndpointTable> WithKept(std::shared_ptr<const EndpointTable> table);
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
  std::vector<std::unique_ptr<HostRuntime>> leaving_;  // removed, but still in use
  std::vector<HostRuntime*> by_index_;
  uint32_t next_host_id_ = 1;
  ClusterStats stats_{};
  struct CodeCount {
    uint16_t code = 0;
    uint64_t external = 0, internal = 0, retried = 0;
  };
  std::vector<CodeCount> codes_;  // few
  bool retired_ = false;
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
