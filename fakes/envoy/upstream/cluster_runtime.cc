#include "fakes/envoy/upstream/cluster_runtime.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/base/assert.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

constexpr std::string_view kStatNames[] = {
    "upstream_cx_total",
    "upstream_cx_connect_fail",
    "upstream_cx_connect_timeout",
    "upstream_cx_none_healthy",
    "upstream_cx_overflow",
    "upstream_rq_total",
    "upstream_rq_retry",
    "upstream_rq_retry_success",
    "upstream_rq_retry_overflow",
    "upstream_rq_retry_limit_exceeded",
    "upstream_rq_timeout",
    "upstream_rq_per_try_timeout",
    "upstream_rq_per_try_idle_timeout",
    "upstream_rq_pending_overflow",
    "upstream_rq_active_overflow",
    "lb_healthy_panic",
    "membership_change",
    "outlier_detection.ejections_active",
    "outlier_detection.ejections_enforced_total",
    "outlier_detection.ejections_overflow",
    "ssl.handshake",
    "ssl.connection_error",
    "ssl.fail_verify_error",
    "ssl.fail_verify_san",
    "ssl.fail_verify_no_cert",
    "ssl.fail_verify_cert_hash",
    "upstream_cx_destroy",
    "upstream_cx_destroy_local",
    "upstream_cx_destroy_remote",
    "upstream_cx_destroy_with_active_rq",
    "upstream_cx_destroy_local_with_active_rq",
    "upstream_cx_destroy_remote_with_active_rq",
    "upstream_cx_http1_total",
    "upstream_cx_http2_total",
    "upstream_cx_max_requests",
    "upstream_cx_close_notify",
    "upstream_cx_max_duration_reached",
    "upstream_cx_idle_timeout",
    "upstream_cx_protocol_error",
    "upstream_rq_pending_total",
    "upstream_rq_cancelled",
    "upstream_rq_pending_failure_eject",
    "upstream_rq_tx_reset",
    "upstream_rq_retry_backoff_exponential",
    "upstream_rq_retry_backoff_ratelimited",
    "upstream_rq_max_duration_reached",
    "outlier_detection.ejections_detected_consecutive_5xx",
    "outlier_detection.ejections_detected_consecutive_gateway_failure",
    "outlier_detection.ejections_detected_consecutive_local_origin_failure",
    "outlier_detection.ejections_enforced_consecutive_5xx",
    "outlier_detection.ejections_enforced_consecutive_gateway_failure",
    "outlier_detection.ejections_enforced_consecutive_local_origin_failure",
    "health_check.attempt",
    "health_check.success",
    "health_check.failure",
    "health_check.passive_failure",
    "health_check.network_failure",
    "health_check.verify_cluster",
    "update_attempt",
    "update_success",
};
static_assert(std::size(kStatNames) == static_cast<size_t>(ClusterStat::kCount));

// Whether a host is asked at the same place.
bool SameCheck(const EndpointCheck* a, const EndpointCheck* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->disabled == b->disabled && a->address == b->address;
}

FirstFlight::Kind PlainKind(HttpProtocol protocol) {
  return protocol == HttpProtocol::kHttp2 ? FirstFlight::Kind::kHttp2 : FirstFlight::Kind::kHttp1;
}

}  // namespace

std::string_view ClusterStatName(ClusterStat stat) { return kStatNames[static_cast<size_t>(stat)]; }

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
  }
  return "";
}

// --- HttpPool

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
      router.OnPoolFailure(stream, ResetReason::kOverflow, {}, lead);
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
  for (const StreamId stream : refused) user.OnPoolFailure(stream, ResetReason::kOverflow, {}, Duration::zero());
}

// Envoy: conn_pool_base.cc, tryCreateNewConnections
void HttpPool::ConnectForPending(Duration lead) {
  constexpr int kAtOnce = 3;
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

namespace {

// Envoy: conn_pool_base.cc (ActiveClient), http2/conn_pool.cc, calculateInitialStreamsLimit
constexpr uint64_t kUnlimited = std::numeric_limits<uint32_t>::max();

}  // namespace

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
  pool_.cluster().process().fabric().SetFlight(
      connection, std::move(flight), tls ? pool_.cluster().process().latencies().tls_handshake : Duration::zero());
  shaking_hands_ = tls;
  if (tls) return;
  dial_.Settle(connection);
  Ready();
}

void UpstreamConnection::OnTls(ConnectionId connection, const TlsOutcome& outcome) {
  ClusterRuntime& cluster = pool_.cluster();
  cluster.CountHandshake(outcome);
  if (outcome.ok) {
    if (outcome.refused) finding_ = outcome.finding;
    dial_.Settle(connection);
    Ready();
    return;
  }
  const std::string error = outcome.error, finding = outcome.finding;
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
    std::string_view failure;
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

// --- ClusterRuntime

ClusterRuntime::ClusterRuntime(const UpstreamContext& context, std::shared_ptr<const ActiveCluster> active)
    : context_(context), active_(std::move(active)), created_(context.process.host().Now()) {
  if (config().type != DiscoveryType::kOriginalDst) {
    lb_.emplace(config().lb, context_.process.NewStream(fmt::format("lb/{}", config().name)),
                context_.process.release().Has(EnvoyChange::kDrainingIsExcluded));
    SetTable(active_->endpoints);
    updated_once_ = false;  // the hosts that a cluster begins with are no update
  }
}

ClusterRuntime::~ClusterRuntime() {
  context_.process.host().Cancel(interval_timer_);
  context_.process.host().Cancel(merge_timer_);
  context_.process.host().Cancel(cleanup_timer_);
  context_.process.host().Cancel(failed_timer_);
  context_.process.host().Cancel(first_round_timer_);
}

void ClusterRuntime::DrawAnew() {
  if (lb_.has_value()) lb_->DrawFrom(context_.process.NewStream(fmt::format("lb/{}", config().name)));
}

NameId ClusterRuntime::trace_name() {
  if (trace_name_ == kNoName) trace_name_ = context_.process.host().Intern(config().name);
  return trace_name_;
}

void ClusterRuntime::Update(std::shared_ptr<const ActiveCluster> active) {
  leaving_.erase(std::remove_if(leaving_.begin(), leaving_.end(), [](const auto& h) { return h->idle(); }),
                 leaving_.end());
  if (active == active_) return;
  active_ = std::move(active);
  if (lb_.has_value()) SetTable(active_->endpoints);
}

HostRuntime* ClusterRuntime::AddHost(const SocketAddress& address) {
  auto host = std::make_unique<HostRuntime>();
  host->id = next_host_id_++;
  host->address = address;
  // Until it was asked. Envoy: upstream_impl.cc, updateDynamicHostList; static_cluster.cc, startPreInit
  host->lb.failed_check = config().health_check != nullptr;
  host->checked.pending = host->lb.failed_check && config().unchecked_are_excluded;
  return hosts_.emplace(address, std::move(host)).first->second.get();
}

void ClusterRuntime::SetTable(std::shared_ptr<const EndpointTable> table) {
  if (table == nullptr) table = std::make_shared<const EndpointTable>();
  if (checker_ != nullptr) table = WithKept(std::move(table));
  std::vector<HostRuntime*> before = std::move(by_index_);
  by_index_.clear();
  for (HostRuntime* host : before) host->index = -1;
  // Each priority of which hosts come or go is a change of its own.
  std::set<uint32_t> changed;
  absl::flat_hash_map<const HostRuntime*, uint32_t> priorities;
  for (size_t i = 0; i < before.size(); ++i) priorities[before[i]] = table_->endpoints[i].priority;
  const auto leave = [&](HostRuntime* host) {
    changed.insert(priorities[host]);
    if (host->lb.ejected) {
      WAVETANK_ASSERT(ejected_ > 0, ejected_);
      --ejected_;
      Count(ClusterStat::kEjectionsActive, -1);
    }
    if (checker_ != nullptr) checker_->Remove(*host);
    for (const auto& pool : host->pools) pool->Drain();
    const auto it = hosts_.find(host->address);
    WAVETANK_ASSERT(it != hosts_.end());  // a host leaves once
    leaving_.push_back(std::move(it->second));
    hosts_.erase(it);
  };
  for (const LbEndpoint& e : table->endpoints) {
    auto it = hosts_.find(e.address);
    const LbLocality& locality = table->localities[e.locality];
    // In another locality it is another host, and where it is asked elsewhere; only in the latter case it has to be
    // asked anew. Envoy: upstream_impl.cc, updateDynamicHostList
    std::optional<std::pair<LbHost, CheckedHost>> known;
    if (it != hosts_.end() && it->second->index < 0) {
      HostRuntime* old = it->second.get();
      const bool asked_elsewhere = config().health_check != nullptr && !SameCheck(old->check.get(), e.check.get());
      if (asked_elsewhere || old->locality != locality.Name()) {
        if (!asked_elsewhere) known.emplace(old->lb, old->checked);
        before.erase(std::remove(before.begin(), before.end(), old), before.end());
        leave(old);
        it = hosts_.end();
      }
    }
    HostRuntime* host = it != hosts_.end() ? it->second.get() : AddHost(e.address);
    if (it == hosts_.end()) {
      host->locality = locality.Name();
      if (e.check != nullptr && e.check->disabled) host->lb.failed_check = host->checked.pending = false;
      if (known.has_value()) {
        host->lb.failed_check = known->first.failed_check;
        host->lb.degraded_check = known->first.degraded_check;
        host->checked = known->second;
      }
    }
    host->check = e.check;
    if (const auto was = priorities.find(host); it == hosts_.end() || was == priorities.end()) {
      changed.insert(e.priority);
    } else if (was->second != e.priority) {
      changed.insert({was->second, e.priority});
    }
    host->index = static_cast<int32_t>(by_index_.size());
    host->hostname = e.hostname;
    host->more_addresses = e.more_addresses;
    host->metadata = e.transport_socket_match;
    host->socket = MatchTransportSocket(config(), host->metadata.get());
    by_index_.push_back(host);
  }
  for (HostRuntime* host : before) {
    if (host->index < 0) leave(host);
  }
  Count(ClusterStat::kMembershipChange, static_cast<int64_t>(changed.size()));
  table_ = std::move(table);
  RebuildLb();
  if (checker_ != nullptr) AskNew();
}

std::shared_ptr<const EndpointTable> ClusterRuntime::WithKept(std::shared_ptr<const EndpointTable> table) {
  const bool keeps = !config().removed_whatever_health && config().type != DiscoveryType::kLogicalDns;
  std::set<SocketAddress> given;
  for (const LbEndpoint& e : table->endpoints) given.insert(e.address);
  std::shared_ptr<EndpointTable> merged;
  for (size_t i = 0; i < by_index_.size(); ++i) {
    HostRuntime& host = *by_index_[i];
    const LbEndpoint& e = table_->endpoints[i];
    host.checked.removed = false;
    const bool asked = e.check == nullptr || !e.check->disabled;
    if (!keeps || given.contains(host.address) || host.lb.failed_check || e.health == EdsHealth::kUnhealthy || !asked) {
      continue;
    }
    host.checked.removed = true;
    if (merged == nullptr) merged = std::make_shared<EndpointTable>(*table);
    const LbLocality& was = table_->localities[e.locality];
    auto at = std::find_if(merged->localities.begin(), merged->localities.end(),
                           [&](const LbLocality& l) { return l.priority == was.priority && l.Name() == was.Name(); });
    if (at == merged->localities.end()) {
      at = merged->localities.insert(at, was);
      at->weight = 0;
    }
    LbEndpoint& kept = merged->endpoints.emplace_back(e);
    kept.locality = static_cast<uint32_t>(at - merged->localities.begin());
    merged->priorities = std::max(merged->priorities, kept.priority + 1);
  }
  if (merged == nullptr) return table;
  // Where nobody comes or goes the hosts stay in their order. Envoy: upstream_impl.cc, updateDynamicHostList, which
  // then says that nothing changed
  std::map<SocketAddress, size_t> places;
  for (size_t i = 0; i < by_index_.size(); ++i) places.emplace(by_index_[i]->address, i);
  const bool same = merged->endpoints.size() == by_index_.size() &&
                    std::all_of(merged->endpoints.begin(), merged->endpoints.end(),
                                [&](const LbEndpoint& e) { return places.contains(e.address); });
  if (same) {
    std::stable_sort(merged->endpoints.begin(), merged->endpoints.end(), [&](const LbEndpoint& a, const LbEndpoint& b) {
      return places.at(a.address) < places.at(b.address);
    });
  }
  return merged;
}

void ClusterRuntime::AskNew() {
  for (HostRuntime* host : by_index_) {
    if (host->check == nullptr || !host->check->disabled) checker_->Add(*host);
  }
}

bool ClusterRuntime::StartChecks(bool had_connections, Callback first_round) {
  WAVETANK_ASSERT(checker_ == nullptr, config().name);
  had_connections_ = had_connections;
  checker_ = std::make_unique<HealthChecker>(*this);
  unasked_ = static_cast<size_t>(std::count_if(by_index_.begin(), by_index_.end(), [](const HostRuntime* host) {
    return host->check == nullptr || !host->check->disabled;
  }));
  if (unasked_ == 0) return false;
  first_round_ = std::move(first_round);
  AskNew();
  return true;
}

void ClusterRuntime::OnChecked(HostRuntime& host, bool changed, bool passed) {
  if (retired_) return;
  if (unasked_ > 0) {
    if (--unasked_ > 0) return;
    first_round_timer_ = context_.process.host().RunAfter(Duration::zero(), [this] {
      first_round_timer_ = kNoTimer;
      RebuildLb();
      updated_once_ = false;  // as of the hosts that a cluster begins with
      Callback done = std::exchange(first_round_, nullptr);
      done();
    });
    return;
  }
  // Envoy: outlier_detection_impl.cc, DetectorImpl::initialize
  if (passed && host.lb.ejected && !host.lb.failed_check && config().outlier->passed_check_returns_host) Return(host);
  if (!changed) return;
  const bool failed = host.lb.failed_check;
  if (failed) DrainLater(host);
  // What is gone from the assignment stays only as long as it is well. Envoy: eds.cc, reloadHealthyHostsHelper
  if (failed && host.checked.removed) return SetTable(active_->endpoints);
  HealthChanged();
}

void ClusterRuntime::FailNow(HostRuntime& host) {
  if (checker_ != nullptr && host.index >= 0) checker_->FailNow(host);
}

void ClusterRuntime::RebuildLb() {
  context_.process.host().Cancel(merge_timer_);
  merge_timer_ = kNoTimer;
  last_update_ = context_.process.host().Now();
  updated_once_ = true;
  std::vector<const LbHost*> hosts;
  hosts.reserve(by_index_.size());
  const bool slow = config().lb.slow_start_window > Duration::zero();
  for (size_t i = 0; i < by_index_.size(); ++i) {
    LbHost& host = by_index_[i]->lb;
    host.excluded = by_index_[i]->checked.pending || by_index_[i]->checked.told_to_go;
    const bool healthy = HealthOf(table_->endpoints[i], host) == EdsHealth::kHealthy;
    if (slow && healthy && !host.healthy_since.has_value()) host.healthy_since = last_update_;
    hosts.push_back(&host);
  }
  lb_->Update(table_, hosts, last_update_);
}

void ClusterRuntime::Retire() {
  retired_ = true;
  std::vector<HostRuntime*> hosts;
  for (const auto& [address, host] : hosts_) hosts.push_back(host.get());  // order: sorted below
  std::sort(hosts.begin(), hosts.end(), [](const HostRuntime* a, const HostRuntime* b) { return a->id < b->id; });
  for (HostRuntime* host : hosts) {
    for (const auto& pool : host->pools) pool->Drain();
  }
  context_.process.host().Cancel(interval_timer_);
  context_.process.host().Cancel(merge_timer_);
  context_.process.host().Cancel(cleanup_timer_);
  context_.process.host().Cancel(failed_timer_);
  context_.process.host().Cancel(first_round_timer_);
  interval_timer_ = merge_timer_ = cleanup_timer_ = failed_timer_ = first_round_timer_ = kNoTimer;
  checker_ = nullptr;
}

bool ClusterRuntime::idle() const {
  return active_requests == 0 && connections == 0 && pending_requests == 0 && retries == 0;
}

void ClusterRuntime::Abort(StopKind kind) {
  if (checker_ != nullptr) checker_->Abort(kind);
  std::vector<HostRuntime*> hosts;
  for (const auto& [address, host] : hosts_) hosts.push_back(host.get());  // order: sorted below
  for (const auto& host : leaving_) hosts.push_back(host.get());
  std::sort(hosts.begin(), hosts.end(), [](const HostRuntime* a, const HostRuntime* b) { return a->id < b->id; });
  for (HostRuntime* host : hosts) {
    for (const auto& pool : host->pools) pool->Abort(kind);
  }
}

HostRuntime* ClusterRuntime::PickHost(const LoadBalancer::Context& context, const SocketAddress& original_dst) {
  if (!lb_.has_value()) return original_dst.empty() ? nullptr : OriginalHost(original_dst);
  LoadBalancer::Context timed = context;
  timed.now = context_.process.host().Now();
  const uint64_t panics = lb_->panics();
  const int32_t index = lb_->Pick(timed);
  Count(ClusterStat::kLbHealthyPanic, static_cast<int64_t>(lb_->panics() - panics));
  return index == LoadBalancer::kNone ? nullptr : by_index_[index];
}

HostRuntime* ClusterRuntime::PickHost(std::optional<uint64_t> hash, const std::vector<uint32_t>& avoid,
                                      uint32_t reselections, const std::vector<bool>* without,
                                      const SocketAddress& original_dst) {
  LoadBalancer::Context context;
  context.hash = hash;
  context.without = without;
  const auto tried = [&](uint32_t index) {
    return std::find(avoid.begin(), avoid.end(), by_index_[index]->id) != avoid.end();
  };
  if (reselections > 0 && !avoid.empty()) {
    context.avoid.emplace(tried);
    context.reselections = reselections;
    return PickHost(context, original_dst);
  }
  return PickHost(context, original_dst);
}

std::optional<uint32_t> ClusterRuntime::PriorityOf(const HostRuntime& host) const {
  if (host.index < 0 || table_ == nullptr) return std::nullopt;
  return table_->endpoints[host.index].priority;
}

const TransportSocket& ClusterRuntime::Socket(const HostRuntime& host) const {
  return host.socket >= 0 ? config().socket_matches[host.socket].socket : config().socket;
}

std::shared_ptr<const FirstFlight> ClusterRuntime::Flight(const HostRuntime& host, FirstFlight::Kind plain,
                                                          const std::vector<std::string>& alpn,
                                                          const SocketOptions& options) const {
  return FlightBy(Socket(host), plain, alpn, options);
}

// Envoy: health_checker_base_impl.cc, initTransportSocketMatchMetadata; proxy_protocol.cc, generateHeader
std::shared_ptr<const FirstFlight> ClusterRuntime::FlightOfCheck(const HostRuntime& host,
                                                                 FirstFlight::Kind plain) const {
  const HealthCheckConfig& check = *config().health_check;
  const int match =
      check.socket_criteria.has_value() ? MatchTransportSocket(config(), &*check.socket_criteria) : host.socket;
  const TransportSocket& socket = match >= 0 ? config().socket_matches[match].socket : config().socket;
  SocketOptions options;
  if (socket.proxy_protocol == 1) {
    options.announced = std::make_shared<const AnnouncedAddresses>(
        AnnouncedAddresses{1, {context_.process.options().ip, 0}, host.address});
  } else if (socket.proxy_protocol != 0) {
    options.announced = std::make_shared<const AnnouncedAddresses>(
        AnnouncedAddresses{static_cast<uint8_t>(socket.proxy_protocol), {}, {}});
  }
  return FlightBy(socket, plain, check.alpn, options);
}

std::shared_ptr<FirstFlight> ClusterRuntime::FlightBy(const TransportSocket& socket, FirstFlight::Kind plain,
                                                      const std::vector<std::string>& alpn,
                                                      const SocketOptions& options) const {
  auto flight = std::make_shared<FirstFlight>();
  flight->announced = options.announced;
  if (socket.tls == nullptr) {
    flight->kind = plain;
    return flight;
  }
  flight->kind = FirstFlight::Kind::kTls;
  flight->sni = options.server_name.empty() ? socket.tls->sni : options.server_name;
  flight->alpn = alpn.empty() ? socket.tls->alpn : alpn;
  auto client = std::make_shared<TlsClient>();
  static_cast<TlsParty&>(*client) = context_.secrets.Party(socket.tls);
  if (!options.verified_name.empty()) {
    auto context = std::make_shared<TlsContext>(*client->context);
    context->sans = {{SanType::kDns, StringMatch::Make(StringMatch::Kind::kExact, options.verified_name, false)}};
    context->asked_name = options.verified_name;
    client->context = std::move(context);
  }
  flight->tls = std::move(client);
  flight->client = &context_.process.host();
  return flight;
}

HttpPool& ClusterRuntime::Pool(HostRuntime& host, HttpProtocol protocol, const std::vector<std::string>& alpn,
                               uint64_t alpn_id, SocketOptions options) {
  for (const auto& pool : host.pools) {
    if (pool->Is(protocol, alpn_id, options)) return *pool;
  }
  // What is in no use makes room: with the PROXY protocol each client has a pool of its own, and most never come again.
  // Envoy: cluster_manager_impl.cc, httpConnPoolIsIdle
  for (const auto& pool : host.pools) pool->CloseOverdue();
  host.pools.erase(std::remove_if(host.pools.begin(), host.pools.end(), [](const auto& pool) { return pool->idle(); }),
                   host.pools.end());
  return *host.pools.emplace_back(std::make_unique<HttpPool>(*this, host, protocol, alpn, alpn_id, std::move(options)));
}

// Envoy: source/common/http/codes.cc, chargeResponseStat and chargeBasicResponseStat
void ClusterRuntime::CountCode(uint16_t code, bool retried, bool internal) {
  auto at = std::find_if(codes_.begin(), codes_.end(), [&](const CodeCount& c) { return c.code == code; });
  if (at == codes_.end()) at = codes_.insert(at, CodeCount{code});
  ++(retried ? at->retried : internal ? at->internal : at->external);
}

std::map<std::string, uint64_t> ClusterRuntime::CodeCounters() const {
  std::map<std::string, uint64_t> out;
  const auto add = [&](std::string_view prefix, uint16_t code, uint64_t count) {
    if (count == 0) return;
    out[fmt::format("{}upstream_rq_{}", prefix, code)] += count;
    out[fmt::format("{}upstream_rq_{}xx", prefix, code / 100)] += count;
    out[fmt::format("{}upstream_rq_completed", prefix)] += count;
  };
  for (const CodeCount& c : codes_) {
    add("", c.code, c.external + c.internal);
    add("external.", c.code, c.external);
    add("internal.", c.code, c.internal);
    add("retry.", c.code, c.retried);
  }
  return out;
}

std::map<std::string, uint64_t> ClusterRuntime::Gauges() const {
  std::map<std::string, uint64_t> out;
  uint64_t healthy = 0, degraded = 0, excluded = 0;
  const bool excludes = context_.process.release().Has(EnvoyChange::kDrainingIsExcluded);
  for (size_t i = 0; i < by_index_.size(); ++i) {
    const LbHost& host = by_index_[i]->lb;
    excluded += host.excluded || (excludes && table_->endpoints[i].draining);
    const EdsHealth health = HealthOf(table_->endpoints[i], host);
    healthy += health == EdsHealth::kHealthy;
    degraded += health == EdsHealth::kDegraded;
  }
  if (checker_ != nullptr) {
    out["health_check.healthy"] = checker_->healthy();
    out["health_check.degraded"] = checker_->degraded();
  }
  out["membership_total"] = lb_.has_value() ? by_index_.size() : hosts_.size();
  out["membership_healthy"] = lb_.has_value() ? healthy : hosts_.size();
  out["membership_degraded"] = degraded;
  out["membership_excluded"] = excluded;
  out["upstream_cx_active"] = connections;
  out["upstream_rq_active"] = active_requests;
  out["upstream_rq_pending_active"] = pending_requests;
  const CircuitBreakers& limits = config().circuit_breakers;
  out["circuit_breakers.default.cx_open"] = connections >= limits.max_connections;
  out["circuit_breakers.default.rq_pending_open"] = pending_requests >= limits.max_pending_requests;
  out["circuit_breakers.default.rq_open"] = active_requests >= limits.max_requests;
  out["circuit_breakers.default.rq_retry_open"] = retries >= limits.max_retries;
  out["circuit_breakers.default.cx_pool_open"] = 0;
  return out;
}

void ClusterRuntime::CountHandshake(const TlsOutcome& outcome) {
  if (outcome.ok) {
    Count(ClusterStat::kSslHandshake);
    ForEachTerm(outcome.terms, outcome.terms.server_signature, [&](std::string_view kind, std::string_view name) {
      ++process().Counter(fmt::format("cluster.{}.ssl.{}{}", config().name, kind, name));
    });
  }
  constexpr ClusterStat kFound[] = {ClusterStat::kSslFailVerifyError, ClusterStat::kSslFailVerifySan,
                                    ClusterStat::kSslFailVerifyNoCert, ClusterStat::kSslFailVerifyCertHash};
  for (const ClusterStat stat : kFound) {
    if (ClusterStatName(stat).substr(std::string_view("ssl.").size()) == outcome.counter) Count(stat);
  }
  if (outcome.refused || (!outcome.ok && !outcome.local)) Count(ClusterStat::kSslConnectionError);
}

// Measured with 1.40: what BoringSSL says of ECONNRESET. Envoy: ssl_socket.cc, drainErrorQueue
std::string_view ClusterRuntime::ResetInHandshake() {
  return process().release().Has(EnvoyChange::kTlsErrorsAreFramed)
             ? "TLS_error:|33554536:system library:OPENSSL_internal:Connection reset by peer:TLS_error_end"
             : "TLS error: 33554536:system library:OPENSSL_internal:Connection reset by peer";
}

void ClusterRuntime::CountDestroyed(bool local, size_t requests) {
  Count(ClusterStat::kCxDestroy);
  Count(local ? ClusterStat::kCxDestroyLocal : ClusterStat::kCxDestroyRemote);
  if (requests == 0) return;
  Count(ClusterStat::kCxDestroyWithActiveRq);
  Count(local ? ClusterStat::kCxDestroyLocalWithActiveRq : ClusterStat::kCxDestroyRemoteWithActiveRq);
}

void ClusterRuntime::EndRequest(HostRuntime& host) {
  WAVETANK_ASSERT(host.lb.active_requests > 0, config().name);
  WAVETANK_ASSERT(active_requests >= host.lb.active_requests, active_requests, host.lb.active_requests, config().name);
  --host.lb.active_requests;
  --active_requests;
}

void ClusterRuntime::ConnectionClosed(HostRuntime& host) {
  WAVETANK_ASSERT(host.connections > 0, config().name);
  WAVETANK_ASSERT(connections >= host.connections, connections, host.connections, config().name);
  --host.connections;
  --connections;
}

// --- ORIGINAL_DST. Envoy: source/extensions/clusters/original_dst/original_dst_cluster.cc

HostRuntime* ClusterRuntime::OriginalHost(const SocketAddress& address) {
  const auto it = hosts_.find(address);
  if (it != hosts_.end()) {
    it->second->chosen = true;
    return it->second.get();
  }
  HostRuntime* host = AddHost(address);
  host->socket = MatchTransportSocket(config(), nullptr);
  host->chosen = true;
  Count(ClusterStat::kMembershipChange);
  ArmCleanup();
  return host;
}

void ClusterRuntime::ArmCleanup() {
  if (cleanup_timer_ != kNoTimer || retired_) return;
  // As ArmInterval().
  const Duration interval = config().cleanup_interval;
  const Duration phase = (context_.process.host().Now() - created_) % interval;
  cleanup_timer_ = context_.process.host().RunAfter(interval - phase, [this] {
    cleanup_timer_ = kNoTimer;
    CleanUp();
  });
}

// A host goes that was not chosen since the last time and is in no pool.
void ClusterRuntime::CleanUp() {
  const size_t before = hosts_.size();
  // order: what goes is idle and tells nobody
  absl::erase_if(hosts_, [](const auto& entry) {
    HostRuntime& host = *entry.second;
    const bool pooled = std::any_of(host.pools.begin(), host.pools.end(), [](const auto& p) { return !p->empty(); });
    return !std::exchange(host.chosen, false) && !pooled && host.idle();
  });
  if (hosts_.size() != before) Count(ClusterStat::kMembershipChange);
  if (!hosts_.empty()) ArmCleanup();
}

std::vector<SocketAddress> ClusterRuntime::Addresses() const {
  std::vector<SocketAddress> out;
  for (const auto& [address, host] : hosts_) out.push_back(address);  // order: sorted below
  std::sort(out.begin(), out.end());
  return out;
}

// --- outlier detection. Envoy: source/common/upstream/outlier_detection_impl.cc; docs/real-envoy.md 6.

void ClusterRuntime::Report(HostRuntime& host, OutlierResult result, uint32_t code) {
  if (!config().outlier.has_value() || retired_) return;
  const OutlierConfig& o = *config().outlier;
  if (result == OutlierResult::kConnected || result == OutlierResult::kTcpConnected) {
    if (o.split_external_local_origin_errors) {
      host.consecutive_local = 0;
    } else if (result == OutlierResult::kTcpConnected) {
      host.consecutive_5xx = host.consecutive_gateway = 0;
    }
    return;
  }
  const bool local = result != OutlierResult::kHttpCode;
  if (o.split_external_local_origin_errors) {
    if (local) {
      if (++host.consecutive_local == o.consecutive_local_origin_failure) {
        host.consecutive_local = 0;
        ConsecutiveFailures(host, o.enforcing_consecutive_local_origin_failure, ClusterStat::kEjectionsDetectedLocal,
                            ClusterStat::kEjectionsEnforcedLocal);
      }
      return;
    }
  } else if (local) {
    code = result == OutlierResult::kTimeout ? 504 : 503;
  }
  if (code < 500) {
    host.consecutive_5xx = host.consecutive_gateway = 0;
    return;
  }
  if (code >= 502 && code <= 504) {
    if (++host.consecutive_gateway == o.consecutive_gateway_failure) {
      host.consecutive_gateway = 0;
      ConsecutiveFailures(host, o.enforcing_consecutive_gateway_failure, ClusterStat::kEjectionsDetectedGateway,
                          ClusterStat::kEjectionsEnforcedGateway);
    }
  } else {
    host.consecutive_gateway = 0;
  }
  if (++host.consecutive_5xx == o.consecutive_5xx) {
    host.consecutive_5xx = 0;
    ConsecutiveFailures(host, o.enforcing_consecutive_5xx, ClusterStat::kEjectionsDetected5xx,
                        ClusterStat::kEjectionsEnforced5xx);
  }
}

void ClusterRuntime::ConsecutiveFailures(HostRuntime& host, uint32_t enforcing, ClusterStat detected,
                                         ClusterStat enforced) {
  if (host.lb.ejected || host.index < 0) return;
  Count(detected);
  const OutlierConfig& o = *config().outlier;
  const uint64_t percent = std::min<uint32_t>(o.max_ejection_percent, 100);
  const EnvoyRelease release = process().release();
  const bool room = release.Has(EnvoyChange::kEjectionCountsItself)
                        ? uint64_t{100} * (ejected_ + 1) <= percent * by_index_.size()
                        : uint64_t{100} * ejected_ < percent * by_index_.size();
  const bool always_one = o.always_eject_one_host || !release.Has(EnvoyChange::kEjectionPercentIsStrict);
  if (!room && !(always_one && ejected_ == 0)) {
    Count(ClusterStat::kEjectionsOverflow);
    return;
  }
  if (enforcing < 100 && context_.process.random().Below(100) >= enforcing) return;
  Count(enforced);
  Eject(host);
}

void ClusterRuntime::Eject(HostRuntime& host) {
  const OutlierConfig& o = *config().outlier;
  WAVETANK_ASSERT(!host.lb.ejected, config().name);
  WAVETANK_ASSERT(host.index >= 0, config().name);  // of the hosts that are balanced over
  host.lb.ejected = true;
  host.ejected_at = context_.process.host().Now();
  if (host.ejection_backoff * o.base_ejection_time < o.max_ejection_time + o.base_ejection_time)
    ++host.ejection_backoff;
  ++ejected_;
  WAVETANK_ASSERT(ejected_ <= by_index_.size(), ejected_, by_index_.size(), config().name);
  Count(ClusterStat::kEjectionsActive);
  Count(ClusterStat::kEjectionsEnforcedTotal);
  ArmInterval();
  HealthChanged();
  DrainLater(host);
}

// Workers hear of it once what they are at is done. Envoy: cluster_manager_impl.cc, postThreadLocalHealthFailure
void ClusterRuntime::DrainLater(const HostRuntime& host) {
  failed_.push_back(host.id);
  if (failed_timer_ != kNoTimer) return;
  failed_timer_ = context_.process.host().RunAfter(Duration::zero(), [this] {
    failed_timer_ = kNoTimer;
    DrainFailed();
  });
}

// Envoy: cluster_manager_impl.cc, onHostHealthFailure
void ClusterRuntime::DrainFailed() {
  const std::vector<uint32_t> failed = std::exchange(failed_, {});
  const std::vector<HostRuntime*> hosts = by_index_;
  for (HostRuntime* host : hosts) {
    if (std::find(failed.begin(), failed.end(), host->id) == failed.end()) continue;
    for (const auto& pool : host->pools) pool->DrainExisting();
    const std::vector<HostUser*> users = host->users;
    for (HostUser* user : users) {
      if (std::find(host->users.begin(), host->users.end(), user) != host->users.end()) user->OnHostFailed();
    }
  }
}

void ClusterRuntime::ArmInterval() {
  if (interval_timer_ != kNoTimer) return;
  // Envoy's timer runs from the cluster's beginning; here it is only set while it has something to do.
  const Duration interval = config().outlier->interval;
  const Duration phase = (context_.process.host().Now() - created_) % interval;
  interval_timer_ = context_.process.host().RunAfter(interval - phase, [this] {
    interval_timer_ = kNoTimer;
    OnInterval();
  });
}

void ClusterRuntime::OnInterval() {
  if (!config().outlier.has_value()) return;
  const OutlierConfig& o = *config().outlier;
  const Time now = context_.process.host().Now();
  bool again = false;
  for (HostRuntime* host : by_index_) {
    if (!host->lb.ejected) {
      if (host->ejection_backoff > 0) --host->ejection_backoff;
    } else if (now - host->ejected_at >=
               std::min<Duration>(host->ejection_backoff * o.base_ejection_time, o.max_ejection_time)) {
      Return(*host);
    }
    again |= host->lb.ejected || host->ejection_backoff > 0;
  }
  if (again) ArmInterval();
}

void ClusterRuntime::Return(HostRuntime& host) {
  host.lb.ejected = false;
  host.consecutive_5xx = host.consecutive_gateway = host.consecutive_local = 0;
  WAVETANK_ASSERT(ejected_ > 0, ejected_, config().name);
  --ejected_;
  Count(ClusterStat::kEjectionsActive, -1);
  HealthChanged();
}

// A change of health alone waits if another update came less than a merge window ago: one timer of a whole window,
// started by the first of them. Envoy: source/common/upstream/cluster_manager_impl.cc, scheduleUpdate
void ClusterRuntime::HealthChanged() {
  const Duration window = config().update_merge_window;
  if (window == Duration::zero() || !updated_once_ || context_.process.host().Now() - last_update_ > window) {
    RebuildLb();
    return;
  }
  if (merge_timer_ != kNoTimer) return;
  merge_timer_ = context_.process.host().RunAfter(window, [this] {
    merge_timer_ = kNoTimer;
    RebuildLb();
  });
}

}  // namespace wavetank::envoysim
