#include "fakes/envoy/upstream/cluster_runtime.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/assert.h"
#include "fakes/envoy/tls/tls.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

// Whether a host is asked at the same place.
bool SameCheck(const EndpointCheck* a, const EndpointCheck* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->disabled == b->disabled && a->address == b->address;
}

}  // namespace

ClusterRuntime::ClusterRuntime(const UpstreamContext& context, std::shared_ptr<const ActiveCluster> active)
    : context_(context), active_(std::move(active)), created_(context.process.host().Now()) {
  if (config().type != DiscoveryType::kOriginalDst && config().type != DiscoveryType::kDynamicForward) {
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
    host->workload = e.workload;
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
  if (!lb_.has_value()) return;  // hosts are chosen by their names
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

std::vector<HostRuntime*> ClusterRuntime::ById() const {
  std::vector<HostRuntime*> hosts;
  for (const auto& [address, host] : hosts_) hosts.push_back(host.get());  // order: sorted below
  for (const auto& [name, host] : named_) hosts.push_back(host.get());
  std::sort(hosts.begin(), hosts.end(), [](const HostRuntime* a, const HostRuntime* b) { return a->id < b->id; });
  return hosts;
}

void ClusterRuntime::Retire() {
  retired_ = true;
  for (HostRuntime* host : ById()) {
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
  return active_requests == 0 && connections == 0 && pending_requests == 0 && retries == 0 && holders == 0;
}

void ClusterRuntime::Abort(StopKind kind) {
  if (checker_ != nullptr) checker_->Abort(kind);
  std::vector<HostRuntime*> hosts = ById();
  for (const auto& host : leaving_) hosts.push_back(host.get());
  std::sort(hosts.begin(), hosts.end(), [](const HostRuntime* a, const HostRuntime* b) { return a->id < b->id; });
  for (HostRuntime* host : hosts) {
    for (const auto& pool : host->pools) pool->Abort(kind);
  }
}

HostRuntime* ClusterRuntime::PickHost(const LoadBalancer::Context& context, const SocketAddress& original_dst) {
  if (!lb_.has_value()) {
    if (original_dst.empty()) return nullptr;
    const uint16_t port = config().port_override == 0 ? original_dst.port : config().port_override;
    return OriginalHost({original_dst.ip, port});
  }
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

std::shared_ptr<TlsSessionCache> ClusterRuntime::Sessions(const TransportSocket& socket, const TlsParty& party) const {
  const x509::Fingerprint certificate = party.certificate == nullptr ? 0 : party.certificate->fingerprint,
                          trusted = party.trusted_ca == nullptr ? 0 : party.trusted_ca->fingerprint();
  auto at = std::find_if(sessions_.begin(), sessions_.end(),
                         [&](const ContextSessions& each) { return each.context == socket.tls; });
  const bool known = at != sessions_.end();
  if (!known) at = sessions_.insert(at, ContextSessions());
  if (!known || at->certificate != certificate || at->trusted_ca != trusted)
    *at = {socket.tls, certificate, trusted, std::make_shared<TlsSessionCache>(socket.tls->session_keys)};
  return at->sessions;
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
  if (socket.tls->session_keys > 0) client->sessions = Sessions(socket, *client);
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

void ClusterRuntime::ForgetCounts() {
  had_connections_ = had_connections();
  stats_ = {};
  codes_.clear();
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
  for (size_t i = 0; lb_.has_value() && i < by_index_.size(); ++i) {
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
  for (const auto& [name, host] : named_) healthy += !host->lb.ejected;
  out["membership_total"] = hosts_.size() + named_.size();
  out["membership_healthy"] = lb_.has_value() || !named_.empty() ? healthy : hosts_.size();
  if (lb_.has_value()) out["membership_total"] = by_index_.size();
  out["membership_degraded"] = degraded;
  out["membership_excluded"] = excluded;
  out["upstream_cx_active"] = connections;
  out["upstream_rq_active"] = active_requests;
  out["upstream_rq_pending_active"] = pending_requests;
  const CircuitBreakers& limits = config().circuit_breakers;
  out["circuit_breakers.default.cx_open"] = connections >= limits.max_connections;
  out["circuit_breakers.default.rq_pending_open"] = pending_requests >= limits.max_pending_requests;
  out["circuit_breakers.default.rq_open"] = active_requests >= limits.max_requests;
  out["circuit_breakers.default.rq_retry_open"] = retries >= MaxRetries();
  out["circuit_breakers.default.cx_pool_open"] = 0;
  return out;
}

void ClusterRuntime::CountHandshake(const TlsOutcome& outcome) {
  if (outcome.ok) {
    Count(ClusterStat::kSslHandshake);
    if (outcome.resumed.server != 0) ++process().Counter(fmt::format("cluster.{}.ssl.session_reused", config().name));
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
std::string ClusterRuntime::ResetInHandshake() {
  return Worded("TLS_error:|33554536:system library:OPENSSL_internal:Connection reset by peer:TLS_error_end");
}

std::string ClusterRuntime::Worded(std::string_view error) {
  return process().release().Has(EnvoyChange::kTlsErrorsAreFramed) ? std::string(error) : Unframed(error);
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

// --- Names. Envoy: source/extensions/clusters/dynamic_forward_proxy/cluster.cc

HostRuntime* ClusterRuntime::PickNamed(const std::string& name) {
  const auto it = named_.find(name);
  return it == named_.end() || it->second->lb.ejected ? nullptr : it->second.get();
}

// Connections that there are stay where an address changes. Envoy: addOrUpdateHost, onDnsHostRemove
void ClusterRuntime::SetNamed(const std::string& name, const std::vector<SocketAddress>& addresses) {
  if (retired_) return;
  const auto it = named_.find(name);
  if (addresses.empty()) {
    if (it == named_.end()) return;
    HostRuntime& host = *it->second;
    if (host.lb.ejected) {
      --ejected_;
      Count(ClusterStat::kEjectionsActive, -1);
    }
    host.index = -1;
    for (const auto& pool : host.pools) pool->Drain();
    leaving_.push_back(std::move(it->second));
    named_.erase(it);
  } else if (it == named_.end()) {
    auto host = std::make_unique<HostRuntime>();
    host->id = next_host_id_++;
    host->hostname = name;
    host->socket = MatchTransportSocket(config(), nullptr);
    named_.emplace(name, std::move(host));
  }
  if (!addresses.empty()) {
    HostRuntime& host = *named_.at(name);
    host.address = addresses.front();
    host.more_addresses = addresses.size() < 2 ? nullptr
                                               : std::make_shared<const std::vector<SocketAddress>>(
                                                     addresses.begin() + 1, addresses.end());
    if (host.index >= 0) return;
  }
  Count(ClusterStat::kMembershipChange);
  by_index_.clear();
  for (HostRuntime* host : ById()) {
    host->index = static_cast<int32_t>(by_index_.size());
    by_index_.push_back(host);
  }
}

bool ClusterRuntime::Ejected(const SocketAddress& address) const {
  return std::any_of(named_.begin(), named_.end(),
                     [&](const auto& each) { return each.second->address == address && each.second->lb.ejected; });
}

std::vector<SocketAddress> ClusterRuntime::Addresses() const {
  std::vector<SocketAddress> out;
  for (const auto& [name, host] : named_) out.push_back(host->address);
  for (const auto& [address, host] : hosts_) out.push_back(address);  // order: sorted below
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace wavetank::envoysim
