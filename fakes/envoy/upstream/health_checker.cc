#include "fakes/envoy/upstream/health_checker.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/upstream/cluster_runtime.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

bool InStatuses(const HealthCheckConfig::Statuses& ranges, uint64_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const auto& r) { return code >= r.first && code < r.second; });
}

}  // namespace

class HealthChecker::Session final : public ConnectionHandler, public ExchangeOwner {
 public:
  Session(HealthChecker& checker, HostRuntime& host) : checker_(checker), host_(host) {
    if (!host.lb.failed_check) ++checker_.healthy_;
    if (host.lb.degraded_check) ++checker_.degraded_;
  }
  ~Session() override {
    for (TimerId timer : {interval_, timeout_, answer_, passive_}) clock().Cancel(timer);
    Drop();
    if (!host_.lb.failed_check) --checker_.healthy_;
    if (host_.lb.degraded_check) --checker_.degraded_;
  }

  // Envoy: health_checker_base_impl.cc, onInitialInterval
  void Start() {
    const Duration jitter = checker_.config().initial_jitter;
    if (jitter == Duration::zero()) return Ask();
    interval_ = clock().RunAfter(checker_.WithJitter(Duration::zero(), jitter), [this] {
      interval_ = kNoTimer;
      Ask();
    });
  }

  // Told by a worker. Envoy: health_checker_base_impl.cc, setUnhealthyCrossThread
  void FailNow() {
    clock().Cancel(passive_);
    passive_ = clock().RunAfter(Duration::zero(), [this] {
      passive_ = kNoTimer;
      Failed(Failure::kPassive, /*retriable=*/false, /*again=*/false);
    });
  }

  void Abort(StopKind kind) {
    for (TimerId* timer : {&interval_, &timeout_, &answer_, &passive_}) clock().Cancel(std::exchange(*timer, kNoTimer));
    if (exchange_ != kNoExchange) fabric().Abandon(std::exchange(exchange_, kNoExchange));
    if (connection_ == kNoConnection) return;
    const ConnectionId id = std::exchange(connection_, kNoConnection);
    if (kind == StopKind::kKill) {
      fabric().Close(id, Fabric::End::kClient, CloseKind::kReset);
    } else {
      fabric().Vanish(id, Fabric::End::kClient);
    }
  }

  bool first() const { return first_; }

 private:
  Host& clock() { return checker_.cluster_.process().host(); }
  Fabric& fabric() { return checker_.cluster_.process().fabric(); }

  void Ask() {
    checker_.cluster_.Count(ClusterStat::kHealthCheckAttempt);
    timeout_ = clock().RunAfter(checker_.config().timeout, [this] {
      timeout_ = kNoTimer;
      // A call is reset alone. Envoy: grpc/health_checker_impl.cc, onTimeout
      const bool alone = checker_.config().kind == HealthCheckConfig::Kind::kGrpc && exchange_ != kNoExchange &&
                         checker_.config().reuse_connection && !goes_away_;
      if (alone) {
        fabric().ResetRequest(std::exchange(exchange_, kNoExchange));
      } else {
        Drop();
      }
      Failed(Failure::kTimeout, false);
    });
    if (connection_ == kNoConnection) return Connect();
    if (ready_) Send();
  }

  void Connect() {
    Process& process = checker_.cluster_.process();
    const Origin origin{process.options().workload, Origin::Who::kProxy, checker_.cluster_.config().bind_source};
    ready_ = goes_away_ = false;
    const SocketAddress& address = host_.check != nullptr ? host_.check->address : host_.address;
    checker_.cluster_.process().NewConnection();
    const ConnectionId id = connection_ = fabric().Connect(origin, address, this);
    if (fabric().state(id) == Fabric::State::kConnected) OnConnected(id);
  }

  void OnConnected(ConnectionId id) override {
    const bool http2 = checker_.config().http2;
    const FirstFlight::Kind plain = checker_.config().kind == HealthCheckConfig::Kind::kTcp ? FirstFlight::Kind::kSilent
                                    : http2                                                 ? FirstFlight::Kind::kHttp2
                                                                                            : FirstFlight::Kind::kHttp1;
    std::shared_ptr<const FirstFlight> flight = checker_.cluster_.FlightOfCheck(host_, plain);
    const bool tls = flight->kind == FirstFlight::Kind::kTls;
    if (tls && !flight->tls->complete()) {
      Drop();
      return Later(Duration::zero(), [this] { Failed(Failure::kNetwork, false); });
    }
    // In plain text a connection that only shows that it stands says nothing.
    if (tls || checker_.config().kind != HealthCheckConfig::Kind::kTcp || flight->announced != nullptr) {
      const Duration lead = tls ? checker_.cluster_.process().latencies().tls_handshake : Duration::zero();
      if (tls) sessions_ = flight->tls->sessions;
      fabric().SetFlight(id, Resuming(std::move(flight), clock().Now()), lead);
    }
    if (!tls) Ready();
  }

  void OnTls(ConnectionId, const TlsOutcome& outcome) override {
    checker_.cluster_.CountHandshake(outcome);
    if (sessions_ != nullptr) sessions_->Keep(outcome);
    if (outcome.ok) return Ready();
    fabric().Close(std::exchange(connection_, kNoConnection), Fabric::End::kClient, CloseKind::kTlsFailed, "alert");
    Failed(Failure::kNetwork, false);
  }

  void Ready() {
    ready_ = true;
    if (checker_.config().kind != HealthCheckConfig::Kind::kTcp) return Send();
    // Over a local path the caller is not done yet.
    answer_ = clock().RunAfter(Duration::zero(), [this] {
      answer_ = kNoTimer;
      Drop(CloseKind::kFin);
      Passed(/*degraded=*/false);
    });
  }

  void Send() {
    if (timeout_ == kNoTimer) return;  // nobody waits for it any more
    if (spec_ == nullptr || !checker_.config().headers.empty()) MakeRequest();
    exchange_ = fabric().NewExchange(connection_, *spec_, this, 0, kNoExchange, 0, spec_);
    fabric().Dispatch(exchange_, Duration::zero());
  }

  void MakeRequest() {
    const std::string& cluster = checker_.cluster_.config().name;
    const std::string own = host_.check != nullptr ? host_.check->hostname : std::string();
    spec_ = HealthCheckRequest(checker_.config(), cluster, own, host_.address, clock().Now());
  }

  // What is under way is of no interest any more; the connection ends.
  void Drop(CloseKind kind = CloseKind::kReset) {
    clock().Cancel(std::exchange(answer_, kNoTimer));
    if (exchange_ != kNoExchange) fabric().Abandon(std::exchange(exchange_, kNoExchange));
    if (connection_ != kNoConnection) {
      fabric().Close(std::exchange(connection_, kNoConnection), Fabric::End::kClient, kind);
    }
    ready_ = false;
  }

  void OnFirstFlight(ConnectionId, const std::shared_ptr<const FirstFlight>&, Duration) override {}
  void OnRequest(ConnectionId, ExchangeId, const RequestSpec&, Duration) override {}

  void OnHttp2Notice(ConnectionId, const Http2Notice& notice) override {
    if (!notice.goes_away) return;
    goes_away_ = true;  // what is under way ends well
    if (timeout_ == kNoTimer) Drop(CloseKind::kFin);
  }

  void OnClose(ConnectionId, CloseKind, std::string_view) override {
    connection_ = kNoConnection;
    if (exchange_ != kNoExchange) fabric().Abandon(std::exchange(exchange_, kNoExchange));
    ready_ = false;
    if (timeout_ == kNoTimer || answer_ != kNoTimer) return;  // between two checks, or answered already
    Failed(Failure::kNetwork, false);
  }

  void OnReply(uint64_t, const Reply& reply, Duration lead) override {
    exchange_ = kNoExchange;
    if (reply.code == 0 || reply.refused) {
      if (reply.code == 0 && !checker_.config().http2) Drop();
      // Not within a call that a local path has answered ahead of the clock.
      return Later(lead, [this] { Failed(Failure::kNetwork, false); });
    }
    if (reply.close || goes_away_ || !checker_.config().reuse_connection) {
      Drop(CloseKind::kFin);
    }
    const uint64_t code = reply.code;
    if (checker_.config().kind == HealthCheckConfig::Kind::kGrpc) {
      // Of most applications the message is not known: whose call went well serves.
      // Envoy: grpc/health_checker_impl.cc, isHealthCheckSucceeded
      const bool known = !reply.body.empty();
      const bool serves = code == 200 && reply.grpc_status == 0 && (!known || reply.body == kServing);
      return Later(lead, [this, serves] { serves ? Passed(false) : Failed(Failure::kActive, false); });
    }
    const bool degraded = FindHeaderLine(reply.headers, "x-envoy-degraded").has_value();
    const bool told_to_go = FindHeaderLine(reply.headers, "x-envoy-immediate-health-check-fail").has_value();
    const std::string checked(FindHeaderLine(reply.headers, "x-envoy-upstream-healthchecked-cluster").value_or(""));
    Later(lead, [=, this] { Judge(code, degraded, told_to_go, checked); });
  }

  template <typename Then>
  void Later(Duration lead, Then then) {
    clock().Cancel(answer_);
    answer_ = clock().RunAfter(lead, [this, then] {
      answer_ = kNoTimer;
      then();
    });
  }

  // Envoy: http/health_checker_impl.cc, healthCheckResult
  void Judge(uint64_t code, bool degraded, bool told_to_go, const std::string& checked) {
    const HealthCheckConfig& config = checker_.config();
    if (!InStatuses(config.expected, code)) {
      if (told_to_go) host_.checked.told_to_go = true;
      return Failed(Failure::kActive, InStatuses(config.retriable, code));
    }
    if (config.service_name.has_value()) {
      checker_.cluster_.Count(ClusterStat::kHealthCheckVerifyCluster);
      if (!config.service_name->Matches(checked)) return Failed(Failure::kActive, false);
    }
    Passed(degraded);
  }

  // Envoy: health_checker_base_impl.cc, handleSuccess. It may be gone afterwards.
  void Passed(bool degraded) {
    failures_ = 0;
    Change change = Change::kNone;
    LbHost& lb = host_.lb;
    if (lb.failed_check) {
      if (first_ || ++passes_ == checker_.config().healthy_threshold) {
        host_.checked.timed_out = host_.checked.told_to_go = false;
        lb.failed_check = false;
        ++checker_.healthy_;
        change = Change::kChanged;
      } else {
        change = Change::kPending;
      }
    }
    if (std::exchange(host_.checked.pending, false)) change = Change::kChanged;
    if (degraded != lb.degraded_check) {
      lb.degraded_check = degraded;
      // The gauge does not go down here (measured with 1.40): Envoy's handleSuccess has no decDegraded() for it.
      if (degraded) ++checker_.degraded_;
      if (change == Change::kNone) change = Change::kChanged;
    }
    checker_.cluster_.Count(ClusterStat::kHealthCheckSuccess);
    first_ = false;
    Next(/*healthy=*/true, change);
    checker_.cluster_.OnChecked(host_, change == Change::kChanged, /*passed=*/true);
  }

  // Envoy: the same, setUnhealthy, handleFailure. It may be gone afterwards.
  void Failed(Failure failure, bool retriable, bool again = true) {
    passes_ = 0;
    const bool network = failure == Failure::kNetwork || failure == Failure::kTimeout;
    Change change = Change::kNone;
    LbHost& lb = host_.lb;
    if (!lb.failed_check) {
      if ((!network && !retriable) || ++failures_ == checker_.config().unhealthy_threshold) {
        lb.failed_check = true;
        --checker_.healthy_;
        change = Change::kChanged;
      } else {
        change = Change::kPending;
      }
    }
    host_.checked.timed_out = failure == Failure::kTimeout && lb.failed_check;
    if (std::exchange(host_.checked.pending, false)) change = Change::kChanged;
    checker_.cluster_.Count(ClusterStat::kHealthCheckFailure);
    if (network) checker_.cluster_.Count(ClusterStat::kHealthCheckNetworkFailure);
    if (failure == Failure::kPassive) checker_.cluster_.Count(ClusterStat::kHealthCheckPassiveFailure);
    first_ = false;
    if (again) Next(/*healthy=*/false, change);
    checker_.cluster_.OnChecked(host_, change == Change::kChanged, /*passed=*/false);
  }

  void Next(bool healthy, Change change) {
    clock().Cancel(std::exchange(timeout_, kNoTimer));
    clock().Cancel(interval_);
    interval_ = clock().RunAfter(checker_.Interval(healthy, change), [this] {
      interval_ = kNoTimer;
      Ask();
    });
  }

  static constexpr std::string_view kServing{"\0\0\0\0\2\x08\x01", 7};  // HealthCheckResponse{status: SERVING}

  HealthChecker& checker_;
  HostRuntime& host_;
  // `timeout_` runs while a check is under way; `answer_` while its answer is ahead of the clock.
  TimerId interval_ = kNoTimer, timeout_ = kNoTimer, answer_ = kNoTimer, passive_ = kNoTimer;
  ConnectionId connection_ = kNoConnection;
  std::shared_ptr<TlsSessionCache> sessions_;
  ExchangeId exchange_ = kNoExchange;
  std::shared_ptr<const RequestSpec> spec_;
  bool ready_ = false, goes_away_ = false;
  bool first_ = true;
  uint32_t passes_ = 0, failures_ = 0;  // in a row
};

HealthChecker::HealthChecker(ClusterRuntime& cluster)
    : cluster_(cluster), random_(cluster.process().NewStream(fmt::format("health_check/{}", cluster.config().name))) {}

HealthChecker::~HealthChecker() = default;

const HealthCheckConfig& HealthChecker::config() const { return *cluster_.config().health_check; }

void HealthChecker::Add(HostRuntime& host) {
  std::unique_ptr<Session>& session = sessions_[host.id];
  if (session != nullptr) return;
  session = std::make_unique<Session>(*this, host);
  session->Start();
}

void HealthChecker::Remove(HostRuntime& host) {
  const auto it = sessions_.find(host.id);
  if (it == sessions_.end()) return;
  const bool unasked = it->second->first();
  sessions_.erase(it);
  // Whoever waits for its first check need not any more. Envoy: health_checker_base_impl.cc, onDeferredDeleteBase
  if (unasked) cluster_.OnChecked(host, /*changed=*/false, !host.lb.failed_check);
}

void HealthChecker::FailNow(HostRuntime& host) {
  const auto it = sessions_.find(host.id);
  if (it == sessions_.end()) return;
  host.checked.told_to_go = true;
  it->second->FailNow();
}

void HealthChecker::Abort(StopKind kind) {
  for (const auto& [id, session] : sessions_) session->Abort(kind);
}

// Envoy: health_checker_base_impl.cc, interval
Duration HealthChecker::Interval(bool healthy, Change change) {
  const HealthCheckConfig& c = config();
  const bool edge = change == Change::kPending;
  Duration base;
  if (!cluster_.had_connections()) {
    base = healthy && !edge ? c.no_traffic_healthy_interval : c.no_traffic_interval;
  } else if (healthy) {
    base = edge ? c.healthy_edge_interval : c.interval;
  } else {
    base = edge ? c.unhealthy_edge_interval : c.unhealthy_interval;
  }
  return WithJitter(base, c.interval_jitter);
}

// Envoy: the same, intervalWithJitter
Duration HealthChecker::WithJitter(Duration base, Duration jitter) {
  int64_t ms = base / 1ms;
  const int64_t share = static_cast<int64_t>(config().interval_jitter_percent) * ms / 100;
  if (share > 0) ms += static_cast<int64_t>(random_.Below(static_cast<uint64_t>(share)));
  if (jitter > Duration::zero()) ms += static_cast<int64_t>(random_.Below(static_cast<uint64_t>(jitter / 1ms)));
  return std::max<int64_t>(ms, 1) * 1ms;
}

}  // namespace wavetank::envoysim
