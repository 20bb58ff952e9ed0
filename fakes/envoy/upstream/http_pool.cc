#include "fakes/envoy/upstream/http_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/assert.h"
#include "fakes/envoy/upstream/cluster_runtime.h"

namespace wavetank::envoysim {
namespace {

// Envoy: conn_pool_base.cc (ActiveClient), http2/conn_pool.cc, calculateInitialStreamsLimit
constexpr uint64_t kUnlimited = std::numeric_limits<uint32_t>::max();

FirstFlight::Kind PlainKind(HttpProtocol protocol) {
  return protocol == HttpProtocol::kHttp2 ? FirstFlight::Kind::kHttp2 : FirstFlight::Kind::kHttp1;
}

}  // namespace

std::string_view ResetReasonName(ResetReason reason) {
  switch (reason) {
    case ResetReason::kNone:
      return "";
    case ResetReason::kOverflow:
      return "overflow";
    case ResetReason::kLocalConnectionFailure:
      return "local connection failure";
    case ResetReason::kRemoteConnectionFailure:
      return "remote connection failure";
    case ResetReason::kConnectionTimeout:
      return "connection timeout";
    case ResetReason::kConnectionTermination:
      return "connection termination";
    case ResetReason::kRemoteReset:
      return "remote reset";
    case ResetReason::kRemoteRefusedStream:
      return "remote refused stream reset";
    case ResetReason::kLocalReset:
      return "local reset";
    case ResetReason::kProtocolError:
      return "protocol error";
    case ResetReason::kConnectError:
      return "remote error with CONNECT request";
  }
  return "";
}

HttpPool::HttpPool(ClusterRuntime& cluster, HostRuntime& host, HttpProtocol protocol,
                   const std::vector<std::string>& alpn, uint64_t alpn_id, SocketOptions options)
    : cluster_(cluster),
      host_(host),
      protocol_(protocol),
      alpn_(alpn),
      alpn_id_(alpn_id),
      options_(std::move(options)) {}

HttpPool::~HttpPool() = default;

std::shared_ptr<const FirstFlight> HttpPool::Flight() {
  const uint32_t epoch = cluster_.secrets().epoch();
  if (flight_ == nullptr || flight_epoch_ != epoch) {
    flight_ = cluster_.Flight(host_, PlainKind(protocol_), alpn_, options_);
    flight_epoch_ = epoch;
  }
  return flight_;
}

bool HttpPool::Overdue(const UpstreamConnection& connection) const {
  const Duration most = cluster_.config().idle_timeout;
  return most > Duration::zero() && connection.listed_ && connection.streams_.empty() &&
         cluster_.process().host().Now() - connection.idle_since_ > most;
}

void HttpPool::CloseOverdue(UpstreamConnection* connection) {
  connection->dial_.Close(CloseKind::kFin);
  cluster_.Count(ClusterStat::kCxIdleTimeout);
  cluster_.CountDestroyed(/*local=*/true, 0);
  Remove(connection);
}

void HttpPool::CloseOverdue() {
  const std::vector<UpstreamConnection*> ready = ready_;
  for (UpstreamConnection* connection : ready) {
    if (Overdue(*connection)) CloseOverdue(connection);
  }
}

void HttpPool::NewStream(StreamId stream, Duration lead) {
  const Call call(*this);
  PoolUser& router = cluster_.streams();
  const ClusterConfig& config = cluster_.config();
  while (!ready_.empty()) {
    UpstreamConnection* connection = ready_.back();
    if (Overdue(*connection)) {
      CloseOverdue(connection);
      continue;
    }
    if (Overflows()) {
      router.OnPoolFailure(stream, ResetReason::kOverflow, {{}, {}, /*of_host=*/true}, lead);
      return;
    }
    Serve(connection, stream, lead);
    return;
  }
  if (cluster_.pending_requests >= config.circuit_breakers.max_pending_requests) {
    cluster_.Count(ClusterStat::kRqPendingOverflow);
    router.OnPoolFailure(stream, ResetReason::kOverflow, {}, lead);
    return;
  }
  pending_.push_back(stream);
  ++cluster_.pending_requests;
  cluster_.Count(ClusterStat::kRqPendingTotal);
  ConnectForPending(lead);
}

bool HttpPool::Overflows() {
  if (cluster_.active_requests < cluster_.config().circuit_breakers.max_requests) return false;
  cluster_.Count(cluster_.process().release().Has(EnvoyChange::kActiveOverflowIsCounted)
                     ? ClusterStat::kRqActiveOverflow
                     : ClusterStat::kRqPendingOverflow);
  return true;
}

// What waits gets the connection, as far as that has room; the limit of requests counts again now. What waits still
// may have another. Envoy: conn_pool_base.cc, onUpstreamReady, attachStreamToClient
void HttpPool::ServePending(UpstreamConnection* connection) {
  if (cluster_.ends()) return;
  const Call call(*this);
  std::vector<StreamId> refused;
  // What it is served may be over at once, and the connection with it.
  const auto stands = [&] {
    return std::any_of(connections_.begin(), connections_.end(), [&](const auto& c) { return c.get() == connection; });
  };
  while (!pending_.empty() && stands() && connection->listed_) {
    const StreamId stream = pending_.front();
    pending_.pop_front();
    WAVETANK_ASSERT(cluster_.pending_requests > 0, cluster_.pending_requests);
    --cluster_.pending_requests;
    if (Overflows()) {
      refused.push_back(stream);
    } else {
      Serve(connection, stream, Duration::zero());
    }
  }
  if (!pending_.empty()) ConnectForPending(Duration::zero());
  PoolUser& user = cluster_.streams();
  for (const StreamId stream : refused)
    user.OnPoolFailure(stream, ResetReason::kOverflow, {{}, {}, /*of_host=*/true}, Duration::zero());
}

// Envoy: conn_pool_base.cc, tryCreateNewConnections
void HttpPool::ConnectForPending(Duration lead) {
  constexpr int kAtOnce = 3;
  if (cluster_.ends()) return;
  for (int i = 0; i < kAtOnce && pending_.size() > connecting_capacity_; ++i) {
    if (!Connect(lead)) return;
  }
}

// Envoy: conn_pool_base.cc, tryCreateNewConnection
bool HttpPool::Connect(Duration lead) {
  const bool may = cluster_.connections < cluster_.config().circuit_breakers.max_connections;
  if (!may) {
    cluster_.Count(ClusterStat::kCxOverflow);
    // A pool without any connection gets one all the same, or its streams would wait for ever.
    if (!connections_.empty()) return false;
  }
  UpstreamConnection* connection = connections_.emplace_back(std::make_unique<UpstreamConnection>(*this)).get();
  connecting_capacity_ += connection->Room();
  ++cluster_.connections;
  ++host_.connections;
  cluster_.Count(ClusterStat::kCxTotal);
  cluster_.Count(protocol_ == HttpProtocol::kHttp2 ? ClusterStat::kCxHttp2Total : ClusterStat::kCxHttp1Total);
  Process& envoy = cluster_.process();
  const Origin origin{envoy.options().workload, Origin::Who::kProxy, cluster_.config().bind_source};
  if (connection->dial_.Start(origin, host_.address, host_.more_addresses, lead)) {
    connection->OnConnected(connection->id());
    return may;
  }
  connection->connect_timer_ = envoy.host().RunAfter(lead + cluster_.config().connect_timeout, [this, connection] {
    connection->connect_timer_ = kNoTimer;
    cluster_.Count(ClusterStat::kCxConnectTimeout);
    connection->dial_.Close(CloseKind::kReset);
    OnConnectFailed(connection, ResetReason::kConnectionTimeout, {});
  });
  return may;
}

void HttpPool::Serve(UpstreamConnection* connection, StreamId stream, Duration lead) {
  WAVETANK_ASSERT(connection->remaining_ > 0);
  connection->streams_.push_back(stream);
  cluster_.process().host().Cancel(connection->idle_timer_);
  connection->idle_timer_ = kNoTimer;
  if (--connection->remaining_ == 0) {
    connection->draining_ = true;
    cluster_.Count(ClusterStat::kCxMaxRequests);
  }
  if (connection->Room() == 0) connection->Unlist();
  cluster_.streams().OnPoolReady(stream, connection, lead);
}

void HttpPool::OnConnectionReady(UpstreamConnection* connection) {
  const Call call(*this);
  WAVETANK_ASSERT(connecting_capacity_ >= connection->Room(), connecting_capacity_);
  WAVETANK_ASSERT(!connection->listed_);
  connecting_capacity_ -= connection->Room();
  connection->idle_since_ = cluster_.process().host().Now();
  connection->ArmLimits();
  if (draining_ && pending_.empty()) return connection->CloseIdle();
  connection->List();
  ServePending(connection);
}

void HttpPool::OnConnectFailed(UpstreamConnection* connection, ResetReason reason, const TransportFailure& failure) {
  const Call call(*this);
  WAVETANK_ASSERT(connecting_capacity_ >= connection->Room(), connecting_capacity_);
  connecting_capacity_ -= connection->Room();
  cluster_.Count(ClusterStat::kCxConnectFail);
  cluster_.CountDestroyed(/*local=*/reason != ResetReason::kRemoteConnectionFailure, 0);
  const std::string text(failure.text), finding(failure.finding);
  Remove(connection);
  // Everything that waits in this pool fails with the connection. Envoy: source/common/conn_pool/conn_pool_base.cc
  std::deque<StreamId> failed = std::move(pending_);
  pending_.clear();
  WAVETANK_ASSERT(cluster_.pending_requests >= failed.size(), cluster_.pending_requests, failed.size());
  cluster_.pending_requests -= static_cast<uint32_t>(failed.size());
  cluster_.Count(ClusterStat::kRqPendingFailureEject, static_cast<int64_t>(failed.size()));
  PoolUser& router = cluster_.streams();
  for (StreamId stream : failed) router.OnPoolFailure(stream, reason, {text, finding}, Duration::zero());
}

void HttpPool::CancelPending(StreamId stream) {
  const auto it = std::find(pending_.begin(), pending_.end(), stream);
  if (it == pending_.end()) return;
  pending_.erase(it);
  WAVETANK_ASSERT(cluster_.pending_requests > 0, cluster_.pending_requests);
  --cluster_.pending_requests;
  cluster_.Count(ClusterStat::kRqCancelled);
}

void HttpPool::Remove(UpstreamConnection* connection) {
  connection->CancelTimers();
  connection->Unlist();
  const auto it =
      std::find_if(connections_.begin(), connections_.end(), [&](const auto& c) { return c.get() == connection; });
  WAVETANK_ASSERT(it != connections_.end());  // removed once
  connections_.erase(it);                     // `connection` is gone
  cluster_.ConnectionClosed(host_);
}

// Connections that do not stand yet serve what waits for them, and go then. Envoy: conn_pool_base.cc,
// drainConnectionsImpl (DrainAndDelete)
void HttpPool::Drain() {
  draining_ = true;
  RetireStanding();
}

// Envoy: conn_pool_base.cc, drainConnectionsImpl (DrainExistingConnections), closeIdleConnectionsForDrainingPool
void HttpPool::DrainExisting() {
  const Call call(*this);
  RetireStanding();
  if (!pending_.empty()) return;
  std::vector<UpstreamConnection*> connecting;
  for (const auto& c : connections_) {
    if (!c->ready_) connecting.push_back(c.get());
  }
  for (UpstreamConnection* c : connecting) {
    c->dial_.Close(CloseKind::kReset);
    OnConnectFailed(c, ResetReason::kLocalConnectionFailure, {});
  }
}

void HttpPool::RetireStanding() {
  std::vector<UpstreamConnection*> idle;
  for (const auto& c : connections_) {
    if (!c->ready_) continue;
    c->Drain();
    if (c->streams_.empty()) idle.push_back(c.get());
  }
  for (UpstreamConnection* c : idle) {
    c->dial_.Close(CloseKind::kFin);
    cluster_.CountDestroyed(/*local=*/true, 0);
    Remove(c);
  }
}

void HttpPool::Abort(StopKind kind) {
  for (const auto& c : connections_) {
    c->CancelTimers();
    if (kind == StopKind::kKill) {
      c->dial_.Close(CloseKind::kReset);
    } else {
      c->dial_.Vanish();
    }
  }
  connections_.clear();
  ready_.clear();
  pending_.clear();
  connecting_capacity_ = 0;
}

// --- UpstreamConnection

UpstreamConnection::UpstreamConnection(HttpPool& pool) : pool_(pool), dial_(pool.cluster().process(), this) {
  const ClusterConfig& config = pool.cluster().config();
  remaining_ = config.max_requests_per_connection > 0 ? config.max_requests_per_connection : kUnlimited;
  at_a_time_ = multiplexes() ? config.max_concurrent_streams : 1;
  at_most_ = static_cast<uint32_t>(std::min<uint64_t>(at_a_time_, remaining_));
}

uint64_t UpstreamConnection::Room() const {
  if (draining_ || at_a_time_ <= streams_.size()) return 0;
  return std::min<uint64_t>(remaining_, at_a_time_ - streams_.size());
}

void UpstreamConnection::List() {
  if (listed_ || Room() == 0) return;
  pool_.ready_.push_back(this);
  listed_ = true;
}

void UpstreamConnection::Unlist() {
  if (!listed_) return;
  pool_.ready_.erase(std::find(pool_.ready_.begin(), pool_.ready_.end(), this));
  listed_ = false;
}

// What is on its way when a server's SETTINGS come counts against the limit that they tell.
// Envoy: http/conn_pool_base.cc, MultiplexedActiveClientBase::onSettings, onGoAway
void UpstreamConnection::OnHttp2Notice(ConnectionId /*connection*/, const Http2Notice& notice) {
  if (notice.max_concurrent_streams.has_value()) {
    at_a_time_ = std::min(*notice.max_concurrent_streams, at_most_);
    Room() > 0 ? List() : Unlist();
  }
  if (!notice.goes_away) return;
  GoAway();
  if (streams_.empty()) CloseIdle();
}

void UpstreamConnection::GoAway() {
  pool_.cluster().Count(ClusterStat::kCxCloseNotify);
  Drain();
}

void UpstreamConnection::OnConnected(ConnectionId connection) {
  std::shared_ptr<const FirstFlight> flight = pool_.Flight();
  const bool tls = flight->kind == FirstFlight::Kind::kTls;
  if (tls && !flight->tls->complete()) {
    dial_.Close(CloseKind::kReset);
    pool_.OnConnectFailed(this, ResetReason::kLocalConnectionFailure, {"TLS error: Secret is not supplied by SDS", {}});
    return;
  }
  Process& process = pool_.cluster().process();
  if (tls) sessions_ = flight->tls->sessions;
  process.fabric().SetFlight(connection, Resuming(std::move(flight), process.host().Now()),
                             tls ? process.latencies().tls_handshake : Duration::zero());
  shaking_hands_ = tls;
  if (tls) return;
  dial_.Settle(connection);
  Ready();
}

void UpstreamConnection::OnTls(ConnectionId connection, const TlsOutcome& outcome) {
  ClusterRuntime& cluster = pool_.cluster();
  cluster.CountHandshake(outcome);
  if (sessions_ != nullptr) sessions_->Keep(outcome);
  if (outcome.ok) {
    if (outcome.refused) finding_ = outcome.finding;
    server_identity_ = outcome.server_identity;
    client_identity_ = outcome.client_identity;
    session_ = {outcome.terms, outcome.server_certificate, nullptr, NumberOfSession(outcome)};
    if (!outcome.terms.client_signature.empty()) session_.own = pool_.Flight()->tls->certificate;
    dial_.Settle(connection);
    Ready();
    return;
  }
  const std::string error = cluster.Worded(outcome.error), finding = outcome.finding;
  cluster.process().fabric().Close(connection, Fabric::End::kClient, CloseKind::kTlsFailed, "alert");
  if (dial_.Failed(connection)) return;
  pool_.OnConnectFailed(this, ResetReason::kRemoteConnectionFailure, {error, finding});
}

void UpstreamConnection::Ready() {
  pool_.cluster().process().host().Cancel(connect_timer_);
  connect_timer_ = kNoTimer;
  ready_ = true;
  pool_.OnConnectionReady(this);
}

void UpstreamConnection::OnClose(ConnectionId connection, CloseKind kind, std::string_view detail) {
  if (!ready_) {
    if (dial_.Failed(connection)) return;
    std::string failure;
    const bool words = pool_.cluster().process().release().Has(EnvoyChange::kConnectErrorsAreWords);
    if (kind == CloseKind::kRefused) {
      failure = words ? "delayed connect error: Connection refused" : "delayed connect error: 111";
    }
    if (kind == CloseKind::kTimeout) {
      failure = words ? "delayed connect error: Connection timed out" : "delayed connect error: 110";
    }
    const bool in_handshake = kind == CloseKind::kReset && shaking_hands_;
    if (in_handshake) failure = pool_.cluster().ResetInHandshake();
    // What a proxy on the way says of its end, which no real one tells.
    const std::string finding(in_handshake ? detail : std::string_view());
    pool_.OnConnectFailed(this, ResetReason::kRemoteConnectionFailure, {failure, finding});
    return;
  }
  const std::vector<StreamId> streams = std::move(streams_);
  const std::string finding = std::move(finding_);
  PoolUser& router = pool_.cluster().streams();
  HttpPool& pool = pool_;
  pool.cluster().CountDestroyed(/*local=*/false, streams.size());
  // Streams count as if they had waited. Envoy: MultiplexedActiveClientBase::onStreamReset
  if (multiplexes()) {
    pool.cluster().Count(ClusterStat::kRqPendingFailureEject, static_cast<int64_t>(streams.size()));
  }
  const HttpPool::Call call(pool);
  pool.Remove(this);
  pool.ConnectForPending(Duration::zero());
  for (StreamId stream : streams) router.OnUpstreamReset(stream, ResetReason::kConnectionTermination, finding);
}

void UpstreamConnection::CancelTimers() {
  for (TimerId* timer : {&connect_timer_, &idle_timer_, &age_timer_}) {
    pool_.cluster().process().host().Cancel(*timer);
    *timer = kNoTimer;
  }
}

// Envoy: source/common/conn_pool/conn_pool_base.cc, ActiveClient::onConnectionDurationTimeout;
// source/common/http/codec_client.cc, onIdleTimeout
void UpstreamConnection::ArmLimits() {
  ArmIdle();
  const Duration age = pool_.cluster().config().max_connection_duration;
  if (age <= Duration::zero()) return;
  age_timer_ = pool_.cluster().process().host().RunAfter(age, [this] {
    age_timer_ = kNoTimer;
    pool_.cluster().Count(ClusterStat::kCxMaxDurationReached);
    if (streams_.empty()) return CloseIdle();
    Drain();
  });
}

void UpstreamConnection::ArmIdle() {
  const Duration idle = pool_.cluster().config().idle_timeout;
  if (idle <= Duration::zero() || idle >= Duration(1h)) return;
  idle_timer_ = pool_.cluster().process().host().RunAfter(idle, [this] {
    idle_timer_ = kNoTimer;
    pool_.cluster().Count(ClusterStat::kCxIdleTimeout);
    CloseIdle();
  });
}

void UpstreamConnection::CloseIdle() {
  dial_.Close(CloseKind::kFin);
  pool_.cluster().CountDestroyed(/*local=*/true, 0);
  HttpPool& pool = pool_;
  const HttpPool::Call call(pool);
  pool.Remove(this);
  pool.ConnectForPending(Duration::zero());
}

void UpstreamConnection::Drain() {
  draining_ = true;
  Unlist();
}

void UpstreamConnection::Rename(StreamId from, StreamId to) {
  const auto at = std::find(streams_.begin(), streams_.end(), from);
  WAVETANK_ASSERT(at != streams_.end());
  *at = to;
}

void UpstreamConnection::Done(StreamId stream) { Release(stream); }

void UpstreamConnection::Reset(StreamId stream, bool by_server) {
  if (multiplexes()) {
    if (!by_server) pool_.cluster().Count(ClusterStat::kRqTxReset);
    Release(stream);
    return;
  }
  dial_.Close(CloseKind::kReset);
  pool_.cluster().CountDestroyed(/*local=*/!by_server, 1);
  HttpPool& pool = pool_;
  const HttpPool::Call call(pool);
  pool.Remove(this);
  pool.ConnectForPending(Duration::zero());
}

void UpstreamConnection::Release(StreamId stream) {
  const auto at = std::find(streams_.begin(), streams_.end(), stream);
  WAVETANK_ASSERT(at != streams_.end());  // a stream ends once
  streams_.erase(at);
  idle_since_ = pool_.cluster().process().host().Now();
  if (draining_) {
    if (streams_.empty()) CloseIdle();
    return;
  }
  if (streams_.empty() && pool_.draining_ && pool_.pending_.empty()) return CloseIdle();
  if (streams_.empty()) ArmIdle();
  List();
  pool_.ServePending(this);
}

}  // namespace wavetank::envoysim
