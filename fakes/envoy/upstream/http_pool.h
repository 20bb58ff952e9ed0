// The pooled connections of one host of a cluster in use: requests wait for one, are given one, or are told why not.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/host.h"
#include "fakes/envoy/config/cluster_config.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/tls/tls.h"
#include "fakes/envoy/upstream/dial.h"

namespace wavetank::envoysim {

class ClusterRuntime;
class TlsSessionCache;
class UpstreamConnection;
struct HostRuntime;

enum class StreamId : uint64_t {};  // a request in a router
inline constexpr StreamId kNoStream{0};

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
  kConnectError,
};
std::string_view ResetReasonName(ResetReason reason);  // "remote connection failure"

// Of a connection that came to nothing, beside the reason.
struct TransportFailure {
  std::string_view text;     // as in %UPSTREAM_TRANSPORT_FAILURE_REASON%
  std::string_view finding;  // TlsOutcome::finding
  bool of_host = false;      // of an overflow: at a connection that stood, whose host logs name
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

// What logs say of a connection's TLS session; empty without one.
struct UpstreamSession {
  TlsTerms terms;
  std::shared_ptr<const CertificateChain> server, own;
  uint64_t number = 0;  // NumberOfSession()
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
  uint64_t number() const { return dial_.number(); }
  bool multiplexes() const { return pool_.protocol() == HttpProtocol::kHttp2; }
  // URI SANs of its TLS session, the server's and its own; empty without one.
  const std::string& server_identity() const { return server_identity_; }
  const std::string& client_identity() const { return client_identity_; }
  const UpstreamSession& session() const { return session_; }
  // The server will take no further request; it closes when the present ones are done.
  void GoAway();
  // Nothing else is on it, and it closes when that is done.
  bool ends_with_stream() const { return draining_ && streams_.size() == 1; }
  // The stream goes by another name from now on.
  void Rename(StreamId from, StreamId to);
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
  std::string server_identity_, client_identity_;
  UpstreamSession session_;
  std::shared_ptr<TlsSessionCache> sessions_;  // of the context that it began with
};

}  // namespace wavetank::envoysim
